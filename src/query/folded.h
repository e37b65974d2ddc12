/* SPDX-License-Identifier: MIT */
/**
 * What a trace has sums of in place of events (docs/decisions/018). A question gets the sums of blocks that all pass,
 * and none of those of which none do; where some of a sum's blocks would pass and others not, it cannot be answered.
 */
#ifndef XHEAP_QUERY_FOLDED_H
#define XHEAP_QUERY_FOLDED_H

#include "query/window.h"

/** Up to when; INT64_MIN: it has none. */
int64_t heap_folded_until_ns(const struct heap_table *table);

/** 0, or -ENOTSUP with the reason in diag: what the sums do not tell, and what may be asked. The filter was prepared
    with the table. */
int heap_folded_check(const struct heap_table *table, const struct heap_filter *filter, struct heap_range range,
		      enum heap_by by, struct diag *diag);

/**
 * Bytes of blocks from before that were found behind the folded time, by a later attach: they were live all of that
 * time, and the peak that was kept of it has to have them. Of one fold.
 */
uint64_t heap_folded_late_bytes(const struct heap_table *table);

/** Whether the peak of the question is known for all of its range. */
bool heap_folded_knows_peak(const struct heap_table *table, const struct heap_filter *filter, struct heap_range range);

/** How a sum's blocks count in a window. */
struct heap_folded_part {
	bool is_row;   /**< in the rows, with a place in `cell` */
	bool is_total; /**< in the totals, too */
	bool is_outstanding, is_at_peak;
	struct heap_allocation like; /**< one of them, for its cell */
};

/** False when none of them count. Where that is not known none do: ask heap_folded_check() before. */
bool heap_folded_count(struct heap_folded_part *part, const struct heap_window *window,
		       const struct heap_filter *filter, const struct trace_sum *sum, uint32_t site);

/** The most that was live in the range, folded time included, if that is known: see heap_window.peak_from_ns. False: it
 *  is to be searched for from from_ns on. */
bool heap_folded_peak(struct heap_peak *peak, const struct heap_table *table, const struct heap_filter *filter,
		      struct heap_range range, int64_t *from_ns, bool *is_folded);

#endif
