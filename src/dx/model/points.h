/* SPDX-License-Identifier: MIT */
/** Points of blocks: the steps that tell apart the points of one nanosecond. The table of allocations keeps times
    without steps, so they are found in the events of the trace. */
#ifndef XHEAP_DX_POINTS_H
#define XHEAP_DX_POINTS_H

#include <stddef.h>

#include "base/diag.h"
#include "table/allocation.h"

struct dx_query;
struct trace;
struct trace_dictionary;

/** A point at which a block begins or ends. */
struct dx_point {
	int64_t time_ns;
	uint64_t address;
	uint32_t process, thread; /**< thread: that made the call; HEAP_NONE: not known */
	uint32_t step;            /**< from 1; of a point that is searched for: not used */
	bool is_end;
	bool is_destroy; /**< an end of all blocks of a heap, whose point has no address */
};

/** Points of the trace, in their order. */
struct dx_points {
	struct dx_point *items;
	uint32_t count;
	size_t capacity;
};

/** Collect the points of one nanosecond. Only the event blocks around it are read. 0, or a negative errno. */
int dx_points_at(struct dx_points *points, const struct trace *trace, int64_t time_ns, struct diag *diag);

/** Return the step of the point; 0: it is not among them. */
uint32_t dx_points_step(const struct dx_points *points, const struct dx_point *point);

/** Free the points. */
void dx_points_fini(struct dx_points *points);

/** Return the point at which a block began, or ended. An end at HEAP_END_GAP or later is no point. */
struct dx_point dx_point_of(const struct trace_dictionary *dictionary, const struct heap_allocation *row,
			    const struct heap_details *details, bool is_end);

/** Find the step of a point of the trace; 0: there is no such point. The first searches read the event blocks around
    them; later ones use a list of all nanoseconds that have several points, which one pass over the trace makes. */
uint32_t dx_step_of(struct dx_query *query, const struct dx_point *point);

#endif
