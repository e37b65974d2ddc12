/* SPDX-License-Identifier: MIT */
/** The clock of a session: how ticks become nanoseconds. */
#ifndef XHEAP_SESSION_SESSION_CLOCK_H
#define XHEAP_SESSION_SESSION_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "region/layout.h"
#include "session/options.h"
#include "trace/writer.h"

struct session_clock {
	enum region_clock kind;
	struct writer_clock writer;
	uint64_t ticks_per_ms;
	uint64_t first_ticks, first_ns; /**< one moment by both clocks */
	bool is_exact;                  /**< the rate is what it will stay */
};

/**
 * Begin: the rate comes from the kernel where it tells (perf's mapped page). Elsewhere it is measured, and at first
 * only roughly: good for limits of time, not for a trace. Where the processor's time stamp counter is not to be
 * trusted, the kernel's clock is used instead, at the price of a system call for each reading.
 */
void session_clock_read(struct session_clock *clock, enum session_clock_choice choice);

/** Whether the measurement has lasted long enough. */
bool session_clock_is_due(const struct session_clock *clock);

/** End the measurement, if there is one. */
void session_clock_settle(struct session_clock *clock);

/** A difference of ticks in nanoseconds. */
uint64_t session_clock_ns(const struct session_clock *clock, uint64_t ticks);

/** Events' times are no finer than this in the trace: reading the clock takes twice as long, and no block goes from one
 *  thread to another in less, so that order stays what it was. */
enum { SESSION_RESOLUTION_NS = 4 };

#endif
