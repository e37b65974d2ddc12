/* SPDX-License-Identifier: MIT */
/** The identity of a process. A pid belongs to another process once the first one has ended and was waited for. A pidfd
    identifies a process for good; if the kernel has none to give, its start time does. */
#ifndef XHEAP_OS_IDENTITY_H
#define XHEAP_OS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** A process. */
struct identity {
	pid_t pid;           /**< 0: no process */
	int pidfd;           /**< -1: unavailable (an old kernel, a sandbox, the limit of descriptors) */
	uint64_t start_time; /**< proc_start_time() if there is no pidfd; 0: unknown */
};

/** No process. */
#define IDENTITY_NONE ((struct identity){.pidfd = -1})

/** Take the identity of `pid`; identity_drop() releases it. Facts read of `pid` afterwards are about this process,
    unless it has ended. */
struct identity identity_take(pid_t pid);
/** Close the pidfd and set *identity to IDENTITY_NONE. */
void identity_drop(struct identity *identity);

/** Return whether the process can be distinguished from a later one with the same pid. */
bool identity_is_known(const struct identity *identity);

/** Return whether the process has ended, waited for or not. False for IDENTITY_NONE. */
bool identity_has_ended(const struct identity *identity);

/** Return whether the process still has its pid: it runs, or was not waited for. */
bool identity_is_there(const struct identity *identity);

/** Send the process a signal, unless its pid belongs to another process. */
void identity_send_signal(const struct identity *identity, int signal);

#endif
