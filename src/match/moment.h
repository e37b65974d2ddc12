/* SPDX-License-Identifier: MIT */
/** Moments within a nanosecond: which blocks begin and end before and behind a position of it. */
#ifndef XHEAP_MATCH_MOMENT_H
#define XHEAP_MATCH_MOMENT_H

#include "query/filter.h"

/** Set the members of a moment behind its position: read the points of its nanosecond, and if it lies between them,
    find the allocations. No effect unless it is asked for. Return 0, or a negative errno with the reason in `diag`. */
int heap_moment_find(struct heap_moment *moment, const struct heap_table *table, struct diag *diag);

#endif
