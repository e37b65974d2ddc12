/* SPDX-License-Identifier: MIT */
/** Whether a file can be traced when it is executed, asked before it runs, so that the answer is a reason and not a
    ruin. */
#ifndef XHEAP_HOOK_INSPECT_H
#define XHEAP_HOOK_INSPECT_H

struct diag;
struct hook_directories;

/** Check, before an executable runs, that it can be traced; "#!" lines are followed. path is relative to directory
    descriptor dirfd (AT_FDCWD: the current one). Return 0, or a negative errno with the reason in `diag`. */
int hook_inspect_executable(int dirfd, const char *path, struct diag *diag);

/** As hook_inspect_executable(), as a process sees the path. An empty path means dirfd itself. The reason has
    `name`. */
int hook_inspect_executable_in(const struct hook_directories *process, int dirfd, const char *path, const char *name,
			       struct diag *diag);

/** Check that the file that a running process executes is for this processor. executed: a descriptor of it, or -1.
    Return 0, or a negative errno with the reason. 0 if it is unknown. */
int hook_inspect_running(int executed, struct diag *diag);

#endif
