/* SPDX-License-Identifier: MIT */
/** The lifetimes of the allocations that a window counts, in a list for each cell. */
#ifndef XHEAP_QUERY_LIFETIMES_H
#define XHEAP_QUERY_LIFETIMES_H

#include <stdint.h>

struct heap_filter;
struct heap_table;
struct heap_window;

/** Lifetimes of allocations, in lists: list i is from values[starts[i]] up to values[starts[i + 1]]. */
struct heap_lifetimes {
	int64_t *values;
	uint64_t *starts;
};

/** Collect the lifetimes of the allocations that the window counts, without those of its sums, of a sample the recorded
 *  ones: those of cell i are in list_of[i], of `count`, or HEAP_NONE. */
void heap_window_lifetimes(struct heap_lifetimes *lifetimes, const struct heap_window *window,
			   const struct heap_table *table, const struct heap_filter *filter, const uint32_t *list_of,
			   uint32_t count);

/** Free the lists. */
void heap_lifetimes_fini(struct heap_lifetimes *lifetimes);

#endif
