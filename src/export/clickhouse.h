/* SPDX-License-Identifier: MIT */
/**
 * A push as a row of ClickHouse's table `arrivals` (fleet/clickhouse_tables.c), in its format RowBinary: no names,
 * numbers of the machine's byte order, a text or an array after its length. It has the stacks that changed since the
 * last push. Now and then a push is whole: it has all stacks that have blocks in use. What a stack has in use now is
 * the sum of its steps since the last whole one.
 */
#ifndef XHEAP_EXPORT_CLICKHOUSE_H
#define XHEAP_EXPORT_CLICKHOUSE_H

#include "base/map.h"
#include "export/report.h"

/** A stack, as the last push that had it. */
struct clickhouse_stack {
	uint64_t id;       /**< a hash of the names of its functions and files */
	uint64_t function; /**< one of the function that asked for memory, with its file */
	uint64_t inuse_bytes, inuse_objects;
	double variance;                                           /**< of inuse_bytes, because they are a sample */
	uint64_t now_bytes, now_objects, made_bytes, made_objects; /**< of the push that is made */
	double now_variance;
	uint32_t leaf;    /**< a node of that push's tree; 0: it is not there */
	int64_t named_ns; /**< the time of the last push that had its names; 0: none has */
};

/** What earlier pushes had. Memory grows with the number of stacks. Zero it, but for what the caller sets. */
struct clickhouse_past {
	struct map map; /**< id -> number of the stack */
	struct clickhouse_stack *stacks;
	size_t capacity;
	uint64_t session; /**< the caller's: a number for these pushes, which no others have */
	const char *name; /**< the caller's: of the session on its host */
	int64_t time_ns;  /**< the caller's: of the push that is made; since 1970 */
	uint32_t pushes;  /**< made; the next one's number */
	uint32_t whole;   /**< the number of the last whole one */
	int64_t whole_ns; /**< its time in the trace */
	bool is_lost;     /**< the caller's: a push did not arrive, so the next one is whole, with all names */
};

/** Free what it has. */
void clickhouse_past_fini(struct clickhouse_past *past);

#endif
