/* SPDX-License-Identifier: MIT */
/** The clock of events, in ticks: the processor's time stamp counter, or the kernel's CLOCK_MONOTONIC_RAW in ns.
    session/control/session_clock.h has the rate of ticks. */
#ifndef XHEAP_OS_CLOCK_H
#define XHEAP_OS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/** Choose the clock of clock_event_ticks() for this process; the default is the counter. Call it before other threads
    begin. */
void clock_use_kernel(bool is_kernel);

/** Return the present time by the chosen clock, in ticks. */
uint64_t clock_event_ticks(void);

/** Return the present time by the kernel's clock (ns) or by the counter, independent of the choice. */
uint64_t clock_ticks_of(bool is_kernel);

#endif
