/* SPDX-License-Identifier: MIT */
/** The table of a trace, from its index or from its events. */
#ifndef XHEAP_ANALYSIS_TRACE_TABLE_H
#define XHEAP_ANALYSIS_TRACE_TABLE_H

#include "analysis/caller.h"
#include "base/diag.h"
#include "table/index_cache.h"

/** What indexes are used for. Traces of XHEAP_INDEX_EVENTS events (a million) are worth one. */
enum index_use {
	INDEX_MADE, /**< of a trace that is worth one: read if there is one, else made */
	INDEX_READ, /**< read if there is one */
	INDEX_UNUSED
};

/** Return whether the trace is worth an index: it is complete, and large. */
bool trace_table_is_worth_an_index(const struct trace *trace);

/** Make the table of a trace. *index_path is the index that the table came from, the caller's (free), or NULL. Return
    0; or a negative errno with the reason in `diag`, which names the path. */
int trace_table_make(struct heap_table **table, const struct trace *trace, const char *path, enum index_use use,
		     char **index_path, const struct analysis_caller *caller, struct diag *diag);

/** Make the table again after a part of it could not be read. Its index, *index_path, is damaged: it is removed, with a
    note, and made anew. *use: INDEX_UNUSED from then on if it cannot be removed. The earlier table stays the caller's.
    Return as trace_table_make(). */
int trace_table_mend(struct heap_table **table, const struct trace *trace, const char *path, enum index_use *use,
		     char **index_path, const struct analysis_caller *caller, struct diag *diag);

/** Return whether all of the table could be read so far. Any thread may ask. */
static inline bool trace_table_is_good(const struct heap_table *table)
{
	return !__atomic_load_n(table->is_damaged, __ATOMIC_RELAXED);
}

#endif
