/* SPDX-License-Identifier: MIT */
/** What a filter says of whole groups of rows, whose summaries are read instead of them. */
#ifndef XHEAP_PLAN_BOUNDS_H
#define XHEAP_PLAN_BOUNDS_H

#include "plan/plan.h"

/** Rows that pass a plan's filter are within these; not all that are within pass. */
struct plan_bounds {
	int64_t from_ns, to_ns;      /**< beginnings, or times of events; earlier blocks are not bound to it */
	int64_t end_from_ns;         /**< ends; open blocks are not bound to it */
	uint64_t size_from, size_to; /**< sizes */
};

/** Set the bounds of a plan's filter, and of the moment of its allocations. */
void plan_bounds_find(struct plan_bounds *bounds, const struct plan *plan);

/** Return whether a group may have rows within the bounds; sizes: NULL if they are not known. */
bool plan_bounds_have(const struct plan_bounds *bounds, const struct heap_group *group, const struct heap_sizes *sizes);

#endif
