/* SPDX-License-Identifier: MIT */
/** StackWalkingFilter: the calls that get stacks, as documented bytes, as ids or as names. */
#ifndef XHEAP_AUTOLOGGER_STACK_FILTER_H
#define XHEAP_AUTOLOGGER_STACK_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

/** Parse "62 02 00 00, 20 10 00 00" (ids of four bytes, the lowest first), "0x1021+0x1022" or "HeapAlloc+HeapFree" into
    OPTION_STACK_* bits. Return 0, or a negative errno with the reason in `why`. */
int stack_filter_parse(const char *text, uint64_t *bits, struct diag *why);

/** Return whether a valid text has the id 0x0262, of VirtualAlloc, which has no bit. */
bool stack_filter_has_ignored(const char *text);

#endif
