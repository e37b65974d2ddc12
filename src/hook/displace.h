/* SPDX-License-Identifier: MIT */
/** How many bytes of a function make way for the jump to its hook. */
#ifndef XHEAP_HOOK_DISPLACE_H
#define XHEAP_HOOK_DISPLACE_H

#include "hook/hook.h"

/** Decode the first instructions of a target from the file's bytes: sets displaced and original, or reason. Whether
 *  something branches into the displaced bytes is not looked at here. */
void displace_measure(struct hook_target *target, const uint8_t *code, size_t available);

#endif
