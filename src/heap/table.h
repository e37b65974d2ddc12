/* SPDX-License-Identifier: MIT */
/**
 * The model: every allocation of a trace, matched with what ended it. Reports are scans of this table.
 *
 * Allocations are in the order of their beginnings, `ends` lists those that ended in the order of their ends; read
 * side by side the two give what was live at any time, for any choice of allocations, without sorting.
 */
#ifndef XHEAP_HEAP_TABLE_H
#define XHEAP_HEAP_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"

#define HEAP_NONE UINT32_MAX

/** How an allocation ended. Those up to HEAP_END_CONFLICT were given back; the others are outstanding. */
enum heap_end {
	HEAP_END_FREE,
	HEAP_END_REALLOC,
	HEAP_END_DESTROY,
	HEAP_END_GAP,      /**< in a gap of the recording: its address was allocated again */
	HEAP_END_CONFLICT, /**< its address was allocated again and nothing tells why */
	HEAP_END_EXIT,     /**< alive when its process ended or its image was replaced */
	HEAP_END_OPEN      /**< alive at the end of the trace */
};

enum heap_allocation_flag {
	HEAP_REALLOC = 1,   /**< came from a realloc of an existing block */
	HEAP_MOVED = 2,     /**< and to another address */
	HEAP_TEMPORARY = 4, /**< freed by the very next event of the thread that made it */
	HEAP_EARLIER = 8    /**< began before the trace: live from T = 0, in no total */
};

struct heap_allocation {
	int64_t birth_ns;
	int64_t end_ns;              /**< of open ones: the end of the trace */
	uint64_t size_bytes : 48, end : 8, flags : 8;
	uint32_t site;               /**< where it was allocated, in heap_table.sites */
	uint32_t end_site;           /**< where it was freed or reallocated, or HEAP_NONE */
	uint32_t thread;             /**< that allocated it; it tells the process */
	uint32_t heap;               /**< place in the trace's heaps, or TRACE_NONE */
};
_Static_assert(sizeof(struct heap_allocation) == 40, "ten million allocations are 400 MB");

/** What few reports ask for. */
struct heap_details {
	uint64_t address;
	uint32_t slack_bytes;        /**< usable bytes beyond the size, UINT32_MAX at most */
	uint32_t previous;           /**< the allocation that a realloc made it from, or HEAP_NONE */
	uint32_t end_thread;         /**< that gave it back, or HEAP_NONE */
};

/** A stack and the allocation function that it called. */
struct heap_site {
	uint32_t stack;              /**< node of the trace; 0: not recorded */
	uint32_t entry;              /**< HEAP_NONE: where blocks from before the trace come from */
};

/** A process, as far as the model knows more than the trace. */
struct heap_process {
	int64_t end_ns;              /**< not before its last point */
	int64_t last_loss_ns;        /**< end of its last gap that lost frees; INT64_MIN when there is none */
	uint64_t live_count, live_bytes; /**< at its end */
	uint64_t inherited_count, inherited_bytes; /**< live in its parent when it was forked */
	uint64_t inherited_freed;    /**< of those, freed or reallocated by this process */
	uint64_t unknown_frees, order_conflicts;
};

struct heap_table {
	const struct trace *trace;
	const struct trace_dictionary *dictionary;
	struct heap_allocation *allocations;
	struct heap_details *details; /**< one for each allocation; NULL when they were not asked for */
	uint32_t count;
	uint32_t *ends;              /**< allocations given back or ended by their process, in the order of their ends */
	uint32_t end_count;
	size_t capacity;             /**< rows that there is room for */
	struct heap_site *sites;
	uint32_t site_count;
	struct heap_process *processes;
	uint64_t unknown_frees, order_conflicts;
	int64_t duration_ns;         /**< latest time of any point */
};

/** Match all points of the trace. Details cost more than half as much memory again. 0 and the table in *out, or a negative errno with the
 *  reason in diag. */
int heap_table_build(struct heap_table **out, const struct trace *trace, bool with_details, struct diag *diag);
void heap_table_free(struct heap_table *table);

/** From beginning to end, or the age that it reached. Times of a trace may be anything: what does not fit is the most. */
static inline int64_t heap_lifetime_ns(const struct heap_allocation *allocation)
{
	int64_t lifetime_ns;
	return __builtin_sub_overflow(allocation->end_ns, allocation->birth_ns, &lifetime_ns) ? INT64_MAX : lifetime_ns;
}

/** True when it was given back, false when it stayed alive to the end of its process or of the trace. */
static inline bool heap_end_is_given_back(unsigned end)
{
	return end <= HEAP_END_CONFLICT;
}

#endif
