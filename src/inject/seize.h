/* SPDX-License-Identifier: MIT */
/** Tracing begins with a thread that runs on. */
#ifndef XHEAP_INJECT_SEIZE_H
#define XHEAP_INJECT_SEIZE_H

#include <stdint.h>
#include <sys/types.h>

/** How long seizes have waited in a minute, and for nothing. Zero it to begin. One thread at a time uses it. */
struct seize_wait {
	uint64_t minute, spent_ns;
};

/** Seize a thread, with these options of ptrace. Return 0 or an errno. ETIMEDOUT: for seconds the kernel has let
    nobody, since another thread of the process is in an exec that waits for a file. Seizes that share `wait` wait
    seconds together in a minute, and a moment each; NULL: this one shares with none. */
int seize_thread(pid_t tid, uint64_t options, struct seize_wait *wait_or_null);

#endif
