/* SPDX-License-Identifier: MIT */
/** When most was live. */
#ifndef XHEAP_QUERY_PEAK_H
#define XHEAP_QUERY_PEAK_H

#include "query/filter.h"
#include "query/scan.h"

/**
 * The peak of each of `parts` equal parts of the range, of the allocations that pass the filter, which was prepared
 * with the table. A block is live from its beginning up to, not at, its end; all that happens at one time is taken
 * together.
 */
void heap_peaks(struct heap_peak *peaks, uint32_t parts, const struct heap_table *table,
		const struct heap_filter *filter, struct heap_range range);

/**
 * Begin the same search for a caller who goes through the allocations anyway, in heap_scan_width() threads. Each thread
 * adds the rows that it sees, once. Rows have times and sizes; among them are all of the range and all that was live at
 * its start. End it with heap_peak_search_finish().
 */
struct heap_peak_search *heap_peak_search_new(const struct heap_table *table, const struct heap_filter *filter,
					      struct heap_range range, uint32_t parts);

/** Begin such a search whose parts lie between `parts` + 1 ascending bounds: part i has the times behind bounds[i], up
    to bounds[i + 1]. What is live at bounds[i] counts in it, too. sites: as in struct heap_scan_plan, and rows that are
    added are of these. Both arrays stay the caller's, until the end. There are at most UINT16_MAX - 1 parts. */
struct heap_peak_search *heap_peak_search_new_between(const struct heap_table *table, const struct heap_filter *filter,
						      const bool *sites, const int64_t *bounds, uint32_t parts);

/** Where the times of rows lie among bounds: how many bounds are before the beginning, and before the end. A row from
    before the trace begins before all bounds, one that never ends does so behind all of them. */
struct heap_row_moments {
	uint16_t begins[PACK_ROWS], ends[PACK_ROWS]; /**< of the rows that are wanted */
};

/** Add rows to a search between bounds, as heap_peak_search_add() does, for a caller who knows where they lie. */
void heap_peak_search_add_between(struct heap_peak_search *search, unsigned thread, const struct heap_rows *rows,
				  const struct heap_row_moments *moments);

/** Add the rows that thread number `thread` has seen. Threads may call it at once, each with its own number. */
void heap_peak_search_add(struct heap_peak_search *search, unsigned thread, const struct heap_rows *rows);

/** Find the peaks, and free the search. */
void heap_peak_search_finish(struct heap_peak_search *search, struct heap_peak *peaks);

#endif
