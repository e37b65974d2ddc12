/* SPDX-License-Identifier: MIT */
/** Syscall user dispatch: the kernel sends a thread SIGSYS for a system call that it makes outside of a range of
    addresses, while a byte of its memory, the selector, says so (prctl, PR_SET_SYSCALL_USER_DISPATCH). */
#ifndef XHEAP_INJECT_DISPATCH_H
#define XHEAP_INJECT_DISPATCH_H

#include <stdbool.h>
#include <sys/types.h>

enum dispatch {
	DISPATCH_OFF,
	DISPATCH_PASSES, /**< on, but the selector lets all calls pass now */
	DISPATCH_BLOCKS, /**< on: calls from outside of the range are not made */
	DISPATCH_UNKNOWN /**< the kernel, older than 6.4, does not say */
};

/** Return the dispatch of a stopped, traced thread. */
enum dispatch dispatch_of(pid_t tid);

#endif
