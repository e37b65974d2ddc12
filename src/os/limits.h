/* SPDX-License-Identifier: MIT */
/** The limits of resources that a shell or a service manager sets: our own made as wide as they may be, and named where
    they are in the way. */
#ifndef XHEAP_OS_LIMITS_H
#define XHEAP_OS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct limits {
	struct rlimit limit[RLIM_NLIMITS];
};

/** Raise the soft limits of this process to the hard ones, but for stacks and core files. before: as they were; or
    NULL. */
void limits_raise(struct limits *before);

void limits_restore(const struct limits *before);

/** Bytes of memory that this process may have: the machine's, or less where a limit of it or of its cgroups says so. */
uint64_t limits_memory_bytes(void);

/** Add to text the limit of process pid (0: this one) by which a call fails with this error, if there is such a
    limit. */
void limits_explain(pid_t pid, int error, char *text, size_t size);

/** Whether fd is one of the last descriptors that this process may have: those are for what is open for a moment. */
bool limits_is_last_descriptor(int fd);

#endif
