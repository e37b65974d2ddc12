/* SPDX-License-Identifier: MIT */
/** The index of a trace, made by a process of its own (src/cli/index.c) while the trace is recorded. The logger never
    waits for it but at the very end. */
#ifndef XHEAP_SESSION_INDEXING_H
#define XHEAP_SESSION_INDEXING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

/** The word by which the command is told to make an index; a trace's path follows. */
#define INDEXING_WORD "--index"

/** To its standard input, whenever more is in the file: all that happened up to until_ns, in the first size_bytes. Its
    end: the trace is whole. */
struct indexing_cut {
	int64_t until_ns;
	uint64_t size_bytes;
};

/** From its standard output. */
struct indexing_progress {
	uint64_t done, all;   /**< points */
	uint64_t index_bytes; /**< the index is there; 0: not yet */
};

struct indexing;

/** Begin; NULL with the reason in diag when it cannot be. */
struct indexing *indexing_begin(const char *trace_path, struct diag *diag);

/** All that happened up to until_ns is in the file, which has so many bytes and events. */
void indexing_tell(struct indexing *indexing, int64_t until_ns, uint64_t size_bytes, uint64_t event_count);

/** Whether it is time to write all, with so many events written, so that it can be told. */
bool indexing_wants_cut(const struct indexing *indexing, uint64_t event_count);

/** The trace is whole. Then call indexing_wait() until it has ended. */
void indexing_finish(struct indexing *indexing);

/** Wait up to so long. True when it has ended. `progress` is the newest. */
bool indexing_wait(struct indexing *indexing, int timeout_ms, struct indexing_progress *progress);

/** Nobody wants it any more: nothing is left of it. */
void indexing_cancel(const struct indexing *indexing);

/** Free; what became of it: 0, or a negative errno with the reason in diag. */
int indexing_end(struct indexing *indexing, struct diag *diag);

#endif
