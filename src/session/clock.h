/* SPDX-License-Identifier: MIT */
/** The clock of a session: how ticks become nanoseconds. */
#ifndef XHEAP_SESSION_CLOCK_H
#define XHEAP_SESSION_CLOCK_H

#include <stdint.h>

#include "trace/writer.h"

struct session_clock {
	struct writer_clock writer;
	uint64_t ticks_per_ms;
};

/** Read the rate of the time stamp counter from the kernel (perf's mapped page), or measure it over some milliseconds. */
void session_clock_read(struct session_clock *clock);

/** A difference of ticks in nanoseconds. */
uint64_t session_clock_ns(const struct session_clock *clock, uint64_t ticks);

#endif
