/* SPDX-License-Identifier: MIT */
/** What the kernel did for want of memory: hits of the limits of cgroups, and kills. Both versions of cgroups. */
#ifndef XHEAP_OS_CGROUPS_H
#define XHEAP_OS_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CGROUPS_ROOT "/sys/fs/cgroup"

/** Return the kernel's text of the process's cgroups, which the caller frees; NULL if it is gone. */
char *cgroups_of(pid_t pid);

/** Return whether the text of cgroups_of() has the unit of the machine's service manager in a path. Only slices stand
    above such a unit; a container or a user's service manager has units of its own. */
bool cgroups_have_unit(const char *cgroups, const char *unit);

/** Get how often the memory limit of these cgroups was hit. root: where cgroup file systems are mounted. Return false
    if the kernel does not say. */
bool cgroups_limit_hits(const char *cgroups, const char *root, uint64_t *hits);

/** Get how many processes of these cgroups the kernel has killed for want of memory, in the same way. */
bool cgroups_kills(const char *cgroups, const char *root, uint64_t *kills);

/** Get how many processes of the machine the kernel has killed for want of memory. False: it does not say. */
bool cgroups_machine_kills(uint64_t *kills);

#endif
