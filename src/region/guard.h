/* SPDX-License-Identifier: MIT */
/**
 * Guards for mappings of files that other processes may shorten or punch holes into. Without a guard, an access to a
 * missing page, or to one for which the file system has no room, ends this process.
 * With a guard, such a page reads as zeros and is private from then on, and the mapping counts as damaged.
 */
#ifndef XHEAP_REGION_GUARD_H
#define XHEAP_REGION_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Install the handler for SIGBUS that makes guards work, once in a process. */
void guard_begin(void);

/** Guard a mapping. Return the guard's number, or 0 if there are too many guards. Any thread may call it. */
uint32_t guard_add(const void *mapping, size_t bytes);

/** Remove a guard, before its mapping is unmapped. 0, here and below, is no guard and never damaged. Any thread may
    call it. */
void guard_remove(uint32_t guard);

/** Return whether some page of the mapping was missing. */
bool guard_is_damaged(uint32_t guard);

#endif
