/* SPDX-License-Identifier: MIT */
/** The index of a trace, made by a process of its own (src/cli/record/index.c) while the trace is recorded. The logger
    waits for that process only after the trace is whole. */
#ifndef XHEAP_SESSION_INDEXING_H
#define XHEAP_SESSION_INDEXING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

/** The word by which the command is asked to make an index; a trace's path follows, and perhaps INDEXING_IDLE. */
#define INDEXING_WORD "--index"
#define INDEXING_IDLE "idle"

/** How long the end of a recording may be put off for an index that nobody asked for. */
enum { INDEXING_END_MS = 500 };

/** A message to the indexer's standard input: everything up to until_ns is in the first size_bytes of the file, which
    has this many events; until_ns 0: nothing is. End of input: the trace is whole. */
struct indexing_cut {
	int64_t until_ns;
	uint64_t size_bytes, event_count;
};

/** A message from the indexer's standard output. */
struct indexing_progress {
	uint64_t done, all;   /**< points matched, and points in all */
	uint64_t index_bytes; /**< size of the finished index; 0: not finished */
};

struct indexing;

/** Begin to make an index; is_idle: only while a processor is idle, and within the limits of src/cli/record/index.c.
    Return NULL, with the reason in `diag`, on failure. */
struct indexing *indexing_begin(const char *trace_path, bool is_idle, struct diag *diag);

/** Announce a cut of the file. */
void indexing_tell(struct indexing *indexing, const struct indexing_cut *cut);

/** Return whether, at this many written events, it is time to flush everything and call indexing_tell(). */
bool indexing_wants_cut(const struct indexing *indexing, uint64_t event_count);

/** Announce that the trace is whole. Then call indexing_wait() until the indexer has ended. */
void indexing_finish(struct indexing *indexing);

/** Wait up to timeout_ms for the indexer. Return true if it has ended; set *progress to its newest message. */
bool indexing_wait(struct indexing *indexing, int timeout_ms, struct indexing_progress *progress);

/** Stop the indexer and leave no index behind. */
void indexing_cancel(const struct indexing *indexing);

/** Free it. Return 0, or a negative errno with the reason for the failure in `diag`. */
int indexing_end(struct indexing *indexing, struct diag *diag);

#endif
