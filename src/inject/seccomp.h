/* SPDX-License-Identifier: MIT */
/** The answers of a thread's seccomp filters to the system calls that it makes for the logger. */
#ifndef XHEAP_INJECT_SECCOMP_H
#define XHEAP_INJECT_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

/** Check that the filters of a stopped, traced thread, if it has any, allow all calls of an injection. Return 0, or a
    negative errno with the reason. Without the privilege to read filters (CAP_SYS_ADMIN) nothing is known of a thread
    that has some, and the check fails. */
int filter_check(pid_t tid, struct diag *diag);

/** Return whether the filters of a stopped, traced thread are known to allow all system calls of the recorder; true if
    it has none. Strict mode is not seen here. */
bool filter_allows_recorder(pid_t tid);

/** As filter_allows_recorder(), for the call by which the kernel resumes some calls that a stop has interrupted. */
bool filter_allows_restart(pid_t tid);

/** As filter_allows_recorder(), for the calls of inject/write_watch.h. */
bool filter_allows_watch(pid_t tid);

/** Run a filter of `count` instructions on a call, as the kernel does. Return its answer; SECCOMP_RET_KILL_PROCESS if
    the filter makes no sense. */
uint32_t filter_run(const struct sock_filter *filter, uint32_t count, const struct seccomp_data *call);

#endif
