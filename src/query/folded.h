/* SPDX-License-Identifier: MIT */
/**
 * Folded time: sums in place of events (docs/decisions/018). A question gets a sum if all of its blocks pass, and not
 * if none do. If some would pass and others not, the question has no answer.
 */
#ifndef XHEAP_QUERY_FOLDED_H
#define XHEAP_QUERY_FOLDED_H

#include "query/window.h"

struct trace_sum;

/** Return the last time that is folded, in ns; INT64_MIN: nothing is. */
int64_t heap_folded_until_ns(const struct heap_table *table);

/** Return 0, or -ENOTSUP with the reason in diag: which part of the question the sums do not answer, and what may be
    asked. The filter was prepared with the table. */
int heap_folded_check(const struct heap_table *table, const struct heap_filter *filter, struct heap_range range,
		      enum heap_by by, struct diag *diag);

/**
 * Return the bytes of earlier blocks that a later attach found, behind the folded time. They were live all of that
 * time, so they belong to its peak. The trace has one fold.
 */
uint64_t heap_folded_late_bytes(const struct heap_table *table);

/** Return whether the peak of the question is known for all of its range. */
bool heap_folded_knows_peak(const struct heap_table *table, const struct heap_filter *filter, struct heap_range range);

/** How a sum's blocks count in a window. */
struct heap_folded_part {
	bool is_row;   /**< in the rows, with a place in `cell` */
	bool is_total; /**< in the totals, too */
	bool is_outstanding, is_at_peak;
	struct heap_allocation like; /**< one of them, for its cell */
};

/** Find out how the sum counts. Return false if none of its blocks do. If that is not known, none do: call
    heap_folded_check() before. */
bool heap_folded_count(struct heap_folded_part *part, const struct heap_window *window,
		       const struct heap_filter *filter, const struct trace_sum *sum, uint32_t site);

/** The most that was live in the range, folded time included, if that is known: see heap_window.peak_from_ns. False: it
 *  is to be searched for from from_ns on. */
bool heap_folded_peak(struct heap_peak *peak, const struct heap_table *table, const struct heap_filter *filter,
		      struct heap_range range, int64_t *from_ns, bool *is_folded);

#endif
