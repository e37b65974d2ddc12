/* SPDX-License-Identifier: MIT */
/** The bytes of a function that are displaced by the jump to its hook. */
#ifndef XHEAP_HOOK_DISPLACE_H
#define XHEAP_HOOK_DISPLACE_H

#include "hook/hook.h"

/** Decode a target's first instructions from the file's bytes: set `displaced` and `original`, or `reason`.
    branches_find() checks separately for branches into the displaced bytes. */
void displace_measure(struct hook_target *target, const uint8_t *code, size_t available);

#endif
