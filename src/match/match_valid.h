/* SPDX-License-Identifier: MIT */
/** The invariants of matching between two points (base/check.h). */
#ifndef XHEAP_MATCH_MATCH_VALID_H
#define XHEAP_MATCH_MATCH_VALID_H

#include <stdbool.h>

struct matching;

/** Whether all that is known between two looks holds together: live sets, nests, late frees, history (base/check.h). */
bool matching_is_valid(const struct matching *matching);

#endif
