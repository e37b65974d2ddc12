/* SPDX-License-Identifier: MIT */
/** The table of a trace that is still being recorded. Its writer says now and then up to which time the file is
    complete (match/match.h). */
#ifndef XHEAP_MATCH_FOLLOW_H
#define XHEAP_MATCH_FOLLOW_H

#include "match/match.h"

struct diag;

/** A trace that is followed. */
struct heap_follow;

/** How far increments go. To read on in a trace takes time, so an increment may be made only for enough new
    events. */
struct heap_follow_increments {
	uint64_t least_events; /**< so many of them; 0: each look is worth one, */
	uint32_t least_part;   /**< and one in so many of all events; 0: any part */
	uint64_t step_events;  /**< matched between two looks at *is_over */
};

/** Begin to follow. path stays the caller's and must outlive the result. how: without until_ns; heap_follow_free()
    closes its file unless the table has it. */
struct heap_follow *heap_follow_new(const char *path, const struct heap_build *how,
				    const struct heap_follow_increments *increments);

/** Match everything up to until_ns, which is in the first size_bytes of the file, if that is enough for an increment.
    Work in steps until another thread sets *is_over. Return 0 or a negative errno; -ESTALE, with the reason in `diag`:
    this trace can only be matched when it is whole. */
int heap_follow_advance(struct heap_follow *follow, int64_t until_ns, uint64_t size_bytes, const bool *is_over,
			struct diag *diag);

/** Copy the sums of what is matched so far (match/match.h). The thread that advances may call it, also from the
    function for progress. */
bool heap_follow_sums(const struct heap_follow *follow, struct matching_sums *sums);

/** Return the trace as it was last read, whose dictionary has all that the sums refer to; NULL before the first look.
    Valid until the next one. */
const struct trace *heap_follow_trace(const struct heap_follow *follow);

/** Bring all that is matched so far to the watcher of rows (match/match.h). */
bool heap_follow_watch_settle(struct heap_follow *follow);

/** Match the rest of the whole trace; any thread may call it. The caller owns *trace and *table. Return 0, or as
    heap_follow_advance(). */
int heap_follow_end(struct heap_follow *follow, struct trace **trace, struct heap_table **table, struct diag *diag);
/** Stop following and free everything that heap_follow_end() has not handed out; NULL is allowed. */
void heap_follow_free(struct heap_follow *follow);

#endif
