/* SPDX-License-Identifier: MIT */
/**
 * The clock that events are timed by, as ticks: the processor's time stamp counter, or the kernel's CLOCK_MONOTONIC_RAW
 * in nanoseconds. session/session_clock.h knows how many ticks make a nanosecond.
 */
#ifndef XHEAP_OS_CLOCK_H
#define XHEAP_OS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/** Choose the clock of clock_event_ticks() for this process; the counter without this call. Call it before other
    threads begin. */
void clock_use_kernel(bool is_kernel);

/** Now, by the chosen clock. */
uint64_t clock_event_ticks(void);

/** Now, by the kernel's clock or by the counter, whatever was chosen. */
uint64_t clock_ticks_of(bool is_kernel);

#endif
