/* SPDX-License-Identifier: MIT */
/**
 * Which process a number means: the number is another process's when the first one has ended and was waited for. A
 * descriptor of the process tells; where the kernel has none to give, the moment at which the process began does.
 */
#ifndef XHEAP_OS_IDENTITY_H
#define XHEAP_OS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct identity {
	pid_t pid;           /**< 0: nobody */
	int pidfd;           /**< -1: none could be had (an old kernel, a sandbox, the limit of descriptors) */
	uint64_t start_time; /**< as proc_start_time(), where there is no pidfd; 0: not known */
};

/** Nobody. */
#define IDENTITY_NONE ((struct identity){.pidfd = -1})

/** Take the identity of pid, for identity_drop() to give back. What is found out about pid after that is about this
    process, unless it has ended. */
struct identity identity_take(pid_t pid);
void identity_drop(struct identity *identity);

/** Whether it can be told from a process that gets the number later. */
bool identity_is_known(const struct identity *identity);

/** Whether the process has ended, waited for or not. Nobody has. */
bool identity_has_ended(const struct identity *identity);

/** Whether the process still has its number: it runs, or was not waited for. */
bool identity_is_there(const struct identity *identity);

void identity_send_signal(const struct identity *identity, int signal);

#endif
