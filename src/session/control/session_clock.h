/* SPDX-License-Identifier: MIT */
/** The clock of a session, and the rate that turns ticks into nanoseconds. */
#ifndef XHEAP_SESSION_SESSION_CLOCK_H
#define XHEAP_SESSION_SESSION_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "region/layout.h"
#include "session/control/options.h"
#include "trace/writer.h"

/** The state of the clock. ticks_per_ms may be rough until is_exact. */
struct session_clock {
	enum region_clock kind;
	struct writer_clock writer;
	uint64_t ticks_per_ms;
	uint64_t first_ticks, first_ns; /**< one moment by both clocks */
	bool is_exact;                  /**< the rate is final */
};

/**
 * Begin to use the chosen clock.
 * The kernel's mapped perf page gives the rate if it has one. Otherwise the rate is measured and at first rough: good
 * for time limits, not for a trace. With SESSION_CLOCK_AUTO, a processor whose counter is unreliable gets the kernel's
 * clock, at the price of a system call for each reading.
 */
void session_clock_read(struct session_clock *clock, enum session_clock_choice choice);

/** Return whether the measurement of the rate has lasted long enough. */
bool session_clock_is_due(const struct session_clock *clock);

/** End the measurement, if one is under way. */
void session_clock_settle(struct session_clock *clock);

/** Return a difference of ticks in nanoseconds. */
uint64_t session_clock_ns(const struct session_clock *clock, uint64_t ticks);

/** The resolution of times in the trace. Reading the clock takes twice as long, and no block passes from one thread to
    another in less time: the order of events is kept. */
enum { SESSION_RESOLUTION_NS = 4 };

#endif
