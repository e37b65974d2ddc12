/* SPDX-License-Identifier: MIT */
/** The monotonic clock in ns, and waiting. It is not the clock of events (os/clock.h). */
#ifndef XHEAP_OS_MONOTONIC_H
#define XHEAP_OS_MONOTONIC_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

/** Return the present time in ns. */
static inline uint64_t monotonic_now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/** Convert a time for calls that wait until then. */
static inline struct timespec monotonic_at(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

/** Sleep for `ns`, or less if a signal arrives. */
static inline void monotonic_pause(uint64_t ns)
{
	struct timespec time = monotonic_at(ns);
	nanosleep(&time, NULL);
}

#endif
