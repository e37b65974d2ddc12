/* SPDX-License-Identifier: MIT */
/** A pusher that goes on by itself. */
#ifndef XHEAP_PUSH_APART_H
#define XHEAP_PUSH_APART_H

#include "base/diag.h"

/** Start the command with these words, which end with NULL, in a session of its own, in no terminal and without an
    output; it is nobody's child. Return 0, or a negative errno with the reason in `diag`. */
int push_begin_apart(const char *const *words, struct diag *diag);

#endif
