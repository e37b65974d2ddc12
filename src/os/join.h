/* SPDX-License-Identifier: MIT */
/** Waiting for a thread for a limited time. */
#ifndef XHEAP_OS_JOIN_H
#define XHEAP_OS_JOIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "os/monotonic.h"

/** Join the thread if it ends within so many ns. Return whether it has. */
static inline bool join_within(pthread_t thread, uint64_t ns)
{
#ifdef __SANITIZE_THREAD__
	/* ThreadSanitizer does not know pthread_clockjoin_np(), and takes what the thread wrote for a race. */
	uint64_t until_ns = monotonic_now_ns() + ns;
	while (pthread_tryjoin_np(thread, NULL) != 0) {
		if (monotonic_now_ns() > until_ns)
			return false;
		monotonic_pause(ns / 16);
	}
	return true;
#else
	const struct timespec until = monotonic_at(monotonic_now_ns() + ns);
	return pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until) == 0;
#endif
}

#endif
