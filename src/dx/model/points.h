/* SPDX-License-Identifier: MIT */
/** Points of blocks, by which their events are found. */
#ifndef XHEAP_DX_POINTS_H
#define XHEAP_DX_POINTS_H

#include "base/diag.h"
#include "table/allocation.h"
#include "trace/trace.h"

/** A point at which a block begins or ends. */
struct dx_point {
	int64_t time_ns;
	uint64_t address;
	uint32_t process, thread; /**< thread: that made the call; HEAP_NONE: not known */
	bool is_end;
	bool is_destroy; /**< an end of all blocks of a heap, whose point has no address */
};

/** Find the last step of a nanosecond at which a block begins or ends; 0: there is none. Only the event blocks around
    it are read. Return 0, or a negative errno with the reason in `diag`. */
int dx_last_step(uint32_t *last, const struct trace *trace, int64_t time_ns, struct diag *diag);

/** Return the point at which a block began, or ended. An end at HEAP_END_GAP or later is no point. */
struct dx_point dx_point_of(const struct trace_dictionary *dictionary, const struct heap_allocation *row,
			    const struct heap_details *details, bool is_end);

#endif
