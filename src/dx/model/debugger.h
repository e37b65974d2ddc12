/* SPDX-License-Identifier: MIT */
/** What queries share: the trace, the current process, thread and position, user variables, and facts that are computed
    once. */
#ifndef XHEAP_DX_DEBUGGER_H
#define XHEAP_DX_DEBUGGER_H

#include "base/sink.h"
#include "dx/core/query.h"
#include "query/frame_names.h"
#include "table/table.h"

struct trace_dictionary;

struct dx_variable {
	struct dx_variable *next;
	struct dx_arena arena;
	char *name;
	struct dx_value value;
	unsigned uses; /**< enum dx_use, of the query that made the value: its limits are those of what is made of it */
};

/** What a query has asked for: its limits are to be printed with the answer. */
enum dx_use {
	DX_USE_CALLS,       /**< heap calls */
	DX_USE_BLOCKS,      /**< blocks that were allocated in the recorded time, or their sums */
	DX_USE_LIVE,        /**< blocks that are live at a position */
	DX_USE_LIVE_SUMS,   /**< sums of those */
	DX_USE_NO_POSITION, /**< one of both at no position, if none is set */
	DX_USE_COUNT
};

/** Zero it, set the first fields, and call dx_session_init(). */
struct dx_session {
	const struct trace *trace;
	const struct trace_dictionary *dictionary;
	/** Return the table of the trace, made when it is needed first; NULL after a message. */
	struct heap_table *(*table_get)(void *context);
	/** Return the names of its code. */
	struct heap_names *(*names_get)(void *context);
	void *context;
	struct sink *out; /**< where SeekTo() says where it went */

	struct dx_budget budget; /**< of variables */
	struct dx_arena whole;   /**< lives as long as the session, and frees the facts below */
	struct dx_variable *variables;
	struct dx_variable *removed; /**< in this query, which may still use their values */
	uint32_t process, thread;    /**< the current ones, ids; TRACE_NONE: the trace has none */
	struct dx_value position;    /**< DX_ABSENT: no position, which is a state of its own until one is set */
	struct heap_table *table;    /**< NULL: not needed yet */
	struct heap_names *names;
	uint64_t *entry_addresses; /**< by entry: in its image, 0: not asked for yet, UINT64_MAX: not known; or NULL */
	unsigned uses;             /**< bits of enum dx_use */
	bool has_extras;           /**< members beyond the documented ones are shown, too */
	bool has_nested;           /**< some heap lies in another; known once it was asked for */
	bool is_nested_known;
	struct dx_group_cache *group;         /**< of the table, read last; NULL: none */
	struct dx_found_events *found;        /**< the trace's events, if many are searched for; NULL: none was */
	struct dx_block_events *block_events; /**< events of blocks in another order; likewise */
	struct dx_faults *faults;             /**< frees that end no block; NULL: not searched yet */
	struct dx_block_ends *ends;           /**< blocks by their ends; NULL: not needed yet */
	struct dx_callers *callers;           /**< what frames reports fold; NULL: not known yet */
};

/** Begin with the trace's first process. */
void dx_session_init(struct dx_session *session);
void dx_session_fini(struct dx_session *session);

/** Make a process and its thread the current ones. thread TRACE_NONE: the first one of the process, if it has any. */
void dx_session_switch(struct dx_session *session, uint32_t process, uint32_t thread);

/** Return the table; NULL after a message. */
struct heap_table *dx_session_table(struct dx_session *session);

/** Return the names of the code. */
struct heap_names *dx_session_names(struct dx_session *session);

/** Set what a name at the top, such as Debugger, stands for. False: nothing. */
bool dx_session_name(struct dx_query *query, const char *name, struct dx_value *value);

/** Return the user variable, NULL: there is none. */
const struct dx_variable *dx_session_find(const struct dx_session *session, const char *name);

/** Return the value of @$name. */
struct dx_value dx_session_variable(struct dx_query *query, const char *name);

/** Store a copy of the value as @$name. The copy refers to nothing of the query. */
void dx_session_assign(struct dx_query *query, const char *name, const struct dx_value *value);

/** Remove @$name. False: there is none. Its value ends with the query. */
bool dx_session_remove(struct dx_session *session, const char *name);

/** Free what a query has removed, after dx_query_fini(). */
void dx_session_clean(struct dx_session *session);

#endif
