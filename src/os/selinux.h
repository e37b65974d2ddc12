/* SPDX-License-Identifier: MIT */
/** Questions to SELinux: whether a program runs in another domain than the process that executes it. `root` is a
    directory before /sys/fs/selinux and /proc, for tests; "" is this machine. A context is a text
    "user:role:type:range". */
#ifndef XHEAP_OS_SELINUX_H
#define XHEAP_OS_SELINUX_H

#include <stdbool.h>
#include <sys/types.h>

enum { SELINUX_CONTEXT_BYTES = 256 };

/** Name of the extended attribute with a file's context. */
#define SELINUX_LABEL "security.selinux"

/** Return whether the machine has a policy and enforces it. */
bool selinux_is_enforcing(const char *root);

/** Get the context of a thread. Return false if the kernel does not say it, or it is too long. */
bool selinux_context(const char *root, pid_t tid, char context[SELINUX_CONTEXT_BYTES]);

/** Get the context that a process in the context `process` has when it has executed a file with the context `file`.
    Return false if the kernel does not say it. */
bool selinux_executed(const char *root, const char *process, const char *file, char context[SELINUX_CONTEXT_BYTES]);

/** Get the context that the thread asks for by itself at its next exec. Return false if it asks for none. */
bool selinux_asked_context(const char *root, pid_t tid, char context[SELINUX_CONTEXT_BYTES]);

#endif
