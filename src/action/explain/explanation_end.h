/* SPDX-License-Identifier: MIT */
/** How a process came to its end: the heap calls that had not returned, and earlier ones that were wrong. */
#ifndef XHEAP_ACTION_EXPLANATION_END_H
#define XHEAP_ACTION_EXPLANATION_END_H

#include <stdbool.h>
#include <stdint.h>

struct diag;
struct explanation;

/** Find the calls of the explanation's process. Return 0, or a negative errno with the reason in `diag`. */
int explanation_end_find(struct explanation *explanation, struct diag *diag);

/** Return whether the signal is one that a fault of the program itself raises. */
bool explain_is_crash(int32_t signal);

#endif
