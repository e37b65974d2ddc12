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
 * The same for a caller who goes through the allocations anyway: in heap_scan_width() threads, each of which adds the
 * rows that it sees, once. They have times and sizes, and among them are all of the range and what was live at its
 * start.
 */
struct heap_peak_search *heap_peak_search_new(const struct heap_table *table, const struct heap_filter *filter,
					      struct heap_range range, uint32_t parts);
void heap_peak_search_add(struct heap_peak_search *search, unsigned thread, const struct heap_rows *rows);

/** Find the peaks, and free the search. */
void heap_peak_search_finish(struct heap_peak_search *search, struct heap_peak *peaks);

#endif
