/* SPDX-License-Identifier: MIT */
/** The table of a trace that is still recorded: who writes it tells now and then up to when everything is in the file
    (match/match.h). */
#ifndef XHEAP_MATCH_FOLLOW_H
#define XHEAP_MATCH_FOLLOW_H

#include "match/match.h"

struct heap_follow;

/** path has to stay. Opening a trace takes reading all its heads: a look is worth so many new events. how: without
 *  until_ns; its file is closed by heap_follow_free() unless the table has it. */
struct heap_follow *heap_follow_new(const char *path, const struct heap_build *how, uint64_t increment_events);

/** All that happened up to until_ns is in the first size_bytes of the file: match it, if it is worth the look, step by
 *  step, until another thread sets *is_over. 0; -ESTALE with the reason in diag when this trace cannot be matched
 *  before it is whole; or another negative errno. */
int heap_follow_advance(struct heap_follow *follow, int64_t until_ns, uint64_t size_bytes, const bool *is_over,
			struct diag *diag);

/** The trace is whole: match the rest, which any thread may do. Trace and table are the caller's. 0, or as above. */
int heap_follow_end(struct heap_follow *follow, struct trace **trace, struct heap_table **table, struct diag *diag);
void heap_follow_free(struct heap_follow *follow);

#endif
