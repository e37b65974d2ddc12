/* SPDX-License-Identifier: MIT */
/** Where the rows of a stream (xheap_query_arrow()) come from: allocations and events, or the lists of a trace. */
#ifndef XHEAP_API_ARROW_SOURCE_H
#define XHEAP_API_ARROW_SOURCE_H

#include "api/api.h"
#include "api/arrow_array.h"

/** Rows of a stream. The source is begun by one of the functions below, in api_run_locked(). */
struct arrow_source {
	struct xheap_trace *trace;
	struct arrow_field *fields;
	uint32_t field_count;
	size_t field_capacity;
	bool needs_lock; /**< next() needs the trace's lock: it makes names */
	/** Append rows to the columns, which have room for `room` more, at least one. Return how many; 0: there are no
	    more; or a negative errno with the reason in `diag`. */
	int64_t (*next)(struct arrow_source *source, struct arrow_column *columns, uint32_t room, struct diag *diag);
	void (*end)(struct arrow_source *source);
	void *state;
};

/** Add a field to those of the source; it is zeroed but for the name, a copy. */
struct arrow_field *arrow_field_add(struct arrow_source *source, const char *name, enum arrow_kind kind);

/** Return the labels of all threads, "pid 17 thread 18 worker", as reports have them. */
struct arrow_words *arrow_words_of_threads(const struct trace_dictionary *dictionary);

/** Begin the rows of allocations or events, or of a plan. Return 0 or a negative errno with the reason in `diag`. */
int arrow_rows_begin(struct arrow_source *source, const xheap_query *query, struct diag *diag);

/** Begin the rows of one of the other tables. Return as arrow_rows_begin(). */
int arrow_lists_begin(struct arrow_source *source, const xheap_query *query, struct diag *diag);

#endif
