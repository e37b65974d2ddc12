/* SPDX-License-Identifier: MIT */
/** The invariants of a drain between two calls of its interface (base/check.h). */
#ifndef XHEAP_SESSION_DRAIN_VALID_H
#define XHEAP_SESSION_DRAIN_VALID_H

#include <stdbool.h>

struct drain;

/** Return whether the owners of streams and the lists of held buffers are consistent (base/check.h). */
bool drain_is_valid(const struct drain *drain);

#endif
