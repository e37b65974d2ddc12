/* SPDX-License-Identifier: MIT */
/** Tracing begins with a thread that runs on. */
#ifndef XHEAP_INJECT_SEIZE_H
#define XHEAP_INJECT_SEIZE_H

#include <stdint.h>
#include <sys/types.h>

/** Seize a thread, with these options of ptrace. Return 0 or an errno. ETIMEDOUT: for seconds the kernel has let
    nobody, since another thread of the process is in an exec that waits for a file. */
int seize_thread(pid_t tid, uint64_t options);

#endif
