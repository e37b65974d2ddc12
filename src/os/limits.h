/* SPDX-License-Identifier: MIT */
/** The resource limits that a shell or a service manager sets. Those of this process are raised as far as allowed; a
    limit that made a call fail is named. */
#ifndef XHEAP_OS_LIMITS_H
#define XHEAP_OS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/** All soft and hard limits of a process. */
struct limits {
	struct rlimit limit[RLIM_NLIMITS];
};

/** Raise the soft limits of this process to the hard ones, except for stacks and core files. before: set to the old
    limits; or NULL. */
void limits_raise(struct limits *before);

/** Set the limits of this process to *before. */
void limits_restore(const struct limits *before);

/** Return the memory that this process may have, in bytes: the machine's, or less by its limits and those of its
    cgroups. */
uint64_t limits_memory_bytes(void);

/** Return whether a cgroup of this process, or one above it, limits its processor time. What it spends is missing to
    others of the cgroup then, whatever else the processors do. */
bool limits_have_processor_time(void);

/** The memory that a process may have, in bytes; UINT64_MAX: no limit, or unknown. */
struct limits_memory {
	uint64_t address_space, data; /**< soft limits of its resources */
	uint64_t cgroup;              /**< the least one of its cgroup and of those above it */
	uint64_t machine;             /**< the machine's memory */
};

/** Return the limits of process `pid`. */
struct limits_memory limits_of_process(pid_t pid);

/** Append to `text` the limit of process `pid` (0: this one) that makes calls fail with this error, if it is set. */
void limits_explain(pid_t pid, int error, char *text, size_t size);

/** Return whether fd is one of the last descriptors that this process may have. They are reserved for short use. */
bool limits_is_last_descriptor(int fd);

#endif
