/* SPDX-License-Identifier: MIT */
/** A trace that is open for questions: its allocations, and the names of its code, each made when it is needed first.
    Several threads may hold it and ask. */
#ifndef XHEAP_ANALYSIS_OPENED_TRACE_H
#define XHEAP_ANALYSIS_OPENED_TRACE_H

#include <pthread.h>

#include "analysis/caller.h"
#include "query/frame_names.h"

/** What indexes are used for. Traces of index_events_least() events are worth one. */
enum index_use {
	INDEX_MADE, /**< of a trace that is worth one: read if there is one, else made */
	INDEX_READ, /**< read if there is one */
	INDEX_UNUSED
};

/** How a trace is opened. Zero it: an index is made if the trace is worth one, and all files are read for names. */
struct opened_options {
	enum index_use index;
	bool without_files;    /**< names come from the trace alone */
	bool without_separate; /**< as symbols_leave_separate() */
	bool is_small;         /**< as in struct heap_build; without an index */
	int64_t until_ns;      /**< of a trace that is recorded: as of this time, never in an index; 0: all of it */
};

struct opened_trace {
	char *path;
	struct trace *trace;
	/* Made when they are needed. */
	struct heap_table *table; /**< NULL: not made yet */
	char *index_path;         /**< that the table came from; NULL: it was built */
	struct symbols *symbols;
	struct heap_names *names[2];              /**< the second one has a frame for each line; NULL: not made yet */
	uint64_t begin_ns, opened_ns, matched_ns; /**< when opening began, when it was open, when the table was there */
	/* Its own. */
	struct opened_options options;
	pthread_mutex_t lock; /**< of what is made when it is needed */
	unsigned references;
	struct heap_table **damaged; /**< earlier tables, which others may still read */
	size_t damaged_count, damaged_capacity;
	bool is_resolved; /**< by opened_trace_resolve(), all of it */
};

/** Open the file. Return 0 and the trace in *out, which the caller ends by opened_trace_release(); or a negative errno
    with the reason in `diag`. */
int opened_trace_open(struct opened_trace **out, const char *path, const struct opened_options *options,
		      const struct analysis_caller *caller, struct diag *diag);

/** Count one more holder. */
void opened_trace_hold(struct opened_trace *opened);

/** Count one less, and close the trace after the last one; NULL is allowed. */
void opened_trace_release(struct opened_trace *opened);

/** Set *out to the table, which is made by the first thread that needs it; it stays the trace's. Return 0, or a
    negative errno with the reason in `diag`. */
int opened_trace_table(struct opened_trace *opened, struct heap_table **out, const struct analysis_caller *caller,
		       struct diag *diag);

/** Make the table anew after a part of it, `damaged`, could not be read: remove its index, with a note. Others may
    go on with the damaged table; if one of them has made a new one already, that will do. Return as
    opened_trace_table(). */
int opened_trace_mend(struct opened_trace *opened, const struct heap_table *damaged,
		      const struct analysis_caller *caller, struct diag *diag);

/** Return whether all of the table could be read so far. Any thread may ask. */
static inline bool opened_table_is_good(const struct heap_table *table)
{
	return !__atomic_load_n(table->is_damaged, __ATOMIC_RELAXED);
}

/** Return whether the trace is worth an index: it is complete, and large. */
bool opened_trace_is_worth_an_index(const struct trace *trace);

/** Return the symbols, which stay the trace's. */
struct symbols *opened_trace_symbols(struct opened_trace *opened);

/** Search the symbols of all code addresses ahead, so that naming them takes no time. A thread that nobody waits for
    does it if the caller may cancel: a single search may take long. Without a caller that may cancel, do nothing.
    Return 0, or -ECANCELED with the reason in `diag`. */
int opened_trace_resolve(struct opened_trace *opened, const struct analysis_caller *caller, struct diag *diag);

/** Return a hash of all names that code of the trace has on this machine now. */
uint64_t opened_trace_names_hash(struct opened_trace *opened);

/** Return the names, which stay the trace's. One thread at a time may use them, and those of with_lines. */
struct heap_names *opened_trace_names(struct opened_trace *opened, bool with_lines);

#endif
