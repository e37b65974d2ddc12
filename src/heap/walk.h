/* SPDX-License-Identifier: MIT */
/** What is live, from moment to moment. */
#ifndef XHEAP_HEAP_WALK_H
#define XHEAP_HEAP_WALK_H

#include "heap/filter.h"

/**
 * Beginnings and ends are both in order of time, so one pass over the two adds up what is live. All that happens at one time is taken
 * together, since a block is live from its beginning up to, not at, its end: the order among equal times makes no difference.
 */
struct heap_walk {
	const struct heap_table *table;
	const struct heap_filter *filter;
	uint32_t birth, end;         /**< places that come next */
	int64_t birth_ns, end_ns;    /**< and their times, INT64_MAX when there is none */
	int64_t time_ns;             /**< of the moment */
	uint64_t live_bytes, live_count; /**< from it on, up to the next */
};

/** Begin before the first moment, with what was there before the trace. The filter was prepared with the table. */
void heap_walk_begin(struct heap_walk *walk, const struct heap_table *table, const struct heap_filter *filter);

/** The time of the next moment, INT64_MAX when there is none. */
static inline int64_t heap_walk_next_time(const struct heap_walk *walk)
{
	return walk->birth_ns < walk->end_ns ? walk->birth_ns : walk->end_ns;
}

/** Go to the next moment; false when there is none. */
bool heap_walk_next(struct heap_walk *walk);

#endif
