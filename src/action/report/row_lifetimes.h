/* SPDX-License-Identifier: MIT */
/** The lifetimes of a row's blocks: the shortest, the median, the longest. */
#ifndef XHEAP_ACTION_ROW_LIFETIMES_H
#define XHEAP_ACTION_ROW_LIFETIMES_H

#include "action/report/action.h"

/** Set them from the blocks' lifetimes in ns, which are put into another order; nothing if there are none. */
void row_lifetimes(struct action_figures *row, int64_t *values, size_t count);

/** Set them for a row that has folded blocks, too: `sums` are its sums of the dictionary. The median is known by its
    class (query/lifetime.h). */
void row_lifetimes_folded(struct action_figures *row, const struct trace_dictionary *dictionary, const uint32_t *sums,
			  size_t sum_count, const int64_t *values, size_t count);

#endif
