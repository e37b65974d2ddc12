/* SPDX-License-Identifier: MIT */
/**
 * Mappings of files that other processes may cut or punch while we read them: an access to what is not there any more,
 * or that the file system has no room for, would end us. With a guard such a page reads as zeros, is ours alone from
 * then on, and the mapping counts as damaged.
 */
#ifndef XHEAP_REGION_GUARD_H
#define XHEAP_REGION_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Set the handler that makes guards work (SIGBUS), once in a process. */
void guard_begin(void);

/** Guard a mapping from now on: its number, 0 when there are too many. May be called by any thread, as
    guard_remove(). */
uint32_t guard_add(const void *mapping, size_t bytes);

/** Before the mapping goes. guard, here and below: 0 has none, and is never damaged. */
void guard_remove(uint32_t guard);

/** Whether a part of the mapping was not there. */
bool guard_is_damaged(uint32_t guard);

#endif
