/* SPDX-License-Identifier: MIT */
/** What a trace does not have: events that were lost, and calls after its early end. */
#ifndef XHEAP_TRACE_GAP_ROWS_H
#define XHEAP_TRACE_GAP_ROWS_H

#include <stdint.h>

#include "base/events.h"

/** Events that were not recorded, or were recorded without stacks. */
struct trace_gap {
	uint32_t process, thread;
	int64_t from_ns, to_ns;
	uint64_t count[EVENT_KIND_COUNT]; /**< lost events by kind */
	uint64_t bytes[EVENT_KIND_COUNT]; /**< requested bytes of those */
	uint64_t stacks;                  /**< events that were kept without their stack */
};

/** Recording ended before the processes that it recorded: the disk was full, or the file as large as it may be. */
struct trace_early_end {
	/** that still ran then, or began later; TRACE_NONE: the row is of the recording, and has the reason */
	uint32_t process;
	int64_t time_ns; /**< every call up to then is in the trace, but for those in gaps */
	/** of the process that were made later and counted; TRACE_NONE: those of processes without a row */
	uint64_t calls;
	const char *reason; /**< "" in rows of processes */
};

#endif
