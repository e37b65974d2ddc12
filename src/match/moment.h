/* SPDX-License-Identifier: MIT */
/** Moments within a nanosecond: which blocks begin and end before and behind a position of it. */
#ifndef XHEAP_MATCH_MOMENT_H
#define XHEAP_MATCH_MOMENT_H

#include "query/filter.h"

/** Set the members of a moment behind its position: find the allocations that begin or end in its nanosecond, behind
    it. No effect unless it is asked for. */
void heap_moment_find(struct heap_moment *moment, const struct heap_table *table);

#endif
