/* SPDX-License-Identifier: MIT */
/** A heap call that failed for want of memory shortly before a process failed. */
#ifndef XHEAP_ACTION_EXPLANATION_MEMORY_H
#define XHEAP_ACTION_EXPLANATION_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sink.h"

struct diag;
struct explain_call;
struct explanation;

/** Return whether the process exited with a status other than 0, and calls of the trace failed. */
bool explanation_may_lack_memory(const struct explanation *explanation, uint32_t process);

/** Find the last such call of the explanation's process, as docs/semantics.md defines it, with its fault and certainty.
    is_crash: a signal of its own fault ended the process.
    Return 1, 0 if there is none, or a negative errno with the reason in `diag`. */
int explanation_memory_find(const struct explanation *explanation, bool is_crash, struct explain_call *call,
			    struct diag *diag);

/** Write "malloc of 1.0 MiB failed for want of memory; the limit RLIMIT_AS (ulimit -v) is 390.6 MiB". */
void explanation_memory_put(const struct explanation *explanation, const struct explain_call *call, struct sink *out);

#endif
