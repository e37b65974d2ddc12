/* SPDX-License-Identifier: MIT */
/** What a process allocated before it became known that it was forked. */
#ifndef XHEAP_MATCH_MATCH_HISTORY_H
#define XHEAP_MATCH_MATCH_HISTORY_H

#include <stdint.h>

struct diag;
struct history;
struct matching;
struct trace;

/** Return the history of an allocation, or of a number with COPY_BIT. */
struct history *matching_history(const struct matching *matching, uint32_t id);

/** Add a number with COPY_BIT. Return it, or HEAP_NONE if there are too many. */
uint32_t matching_history_add(struct matching *matching, const struct history *history);

/** Make the history of all processes that lack it, of everything that earlier increments passed. Return 0 or a negative
    errno. */
int matching_history_make(struct matching *matching, const struct trace *trace, struct diag *diag);

#endif
