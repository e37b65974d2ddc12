/* SPDX-License-Identifier: MIT */
/** What a thread's seccomp filters say to the system calls that are made by it on our behalf. */
#ifndef XHEAP_INJECT_SECCOMP_H
#define XHEAP_INJECT_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

/** Whether all calls of an injection are allowed to a stopped thread that we trace: 0, or a negative errno with the
 *  reason. Without the privilege to read its filters (CAP_SYS_ADMIN) nothing is known, and nothing allowed. */
int filter_check(pid_t tid, struct diag *diag);

/** What one filter of `count` instructions answers to a call, as the kernel runs it; SECCOMP_RET_KILL_PROCESS when it
    makes no sense. */
uint32_t filter_run(const struct sock_filter *filter, uint32_t count, const struct seccomp_data *call);

#endif
