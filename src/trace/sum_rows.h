/* SPDX-License-Identifier: MIT */
/** Sums of ended blocks, in the place of their events. */
#ifndef XHEAP_TRACE_SUM_ROWS_H
#define XHEAP_TRACE_SUM_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/events.h"

/** Properties of the blocks of a sum. */
enum trace_sum_flag {
	TRACE_SUM_OPEN = 1,       /**< they were alive when their process ended; else they were given back */
	TRACE_SUM_EARLIER = 2,    /**< they were there before the trace */
	TRACE_SUM_NESTED = 4,     /**< they lay in other blocks */
	TRACE_SUM_HAS_NESTED = 8, /**< other blocks lay in them */
	TRACE_SUM_THREADS = 16    /**< of several threads of the process that have ended; `thread` is one of them */
};

/** The sum of ended blocks of one thread, heap, stack and function that began in one interval of time. Their events are
    not in the trace. */
struct trace_sum {
	uint32_t thread, heap; /**< heap: place in trace->heaps, or TRACE_NONE */
	uint32_t stack, entry; /**< node, and place in trace->entries, or TRACE_NONE */
	uint8_t flags;         /**< enum trace_sum_flag, of all of them */
	int64_t birth_first_ns, birth_last_ns, end_first_ns, end_last_ns;
	uint64_t lifetime_min_ns, lifetime_max_ns, size_min, size_max;
	uint64_t recorded; /**< blocks; the numbers below are estimates if the trace is a sample */
	uint64_t count, bytes, reallocs, moved, temporary;
	double count_variance, bytes_variance;
	uint64_t peak_count, peak_bytes; /**< live when most was live of what is folded, see struct trace_fold */
	double peak_count_variance, peak_bytes_variance;
	uint32_t first, spread; /**< places in trace->lifetimes, and how many */
};

/** How many blocks of a sum lived about so long. */
struct trace_lifetime {
	uint32_t class; /**< query/lifetime.h explains it */
	uint64_t count;
};

/** The time whose ended blocks are in sums. */
struct trace_fold {
	int64_t until_ns;    /**< points up to then are folded; of what was live then everything is there */
	int64_t interval_ns; /**< sums are of times from a multiple of it to the next */
	int64_t peak_at_ns;
	uint64_t peak_bytes; /**< the most that was live up to then */
	/** events that are not there any more */
	uint64_t event_count, kind_count[EVENT_KIND_COUNT], failed, in_flight;
	struct stack_ends ends; /**< of their stacks */
	bool is_whole_known;    /**< ends.whole is a number: the trace is not older than it */
	uint64_t unknown_frees, order_conflicts;
};

#endif
