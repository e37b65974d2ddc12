/* SPDX-License-Identifier: MIT */
/**
 * All threads of a trace as one sequence in order of time, ties by process, then thread, then the thread's own order.
 * One decoded block per thread that is under way is held, whatever the length of the trace.
 */
#ifndef XHEAP_HEAP_STREAM_H
#define XHEAP_HEAP_STREAM_H

#include "trace/trace.h"

/** What the sequence consists of. */
enum heap_order {
	HEAP_ORDER_POINTS, /**< where blocks end and begin: a moving ReAlloc comes twice, at its entry and at its return */
	HEAP_ORDER_EVENTS  /**< each event once, at its time_ns */
};

enum heap_point_kind {
	HEAP_POINT_NONE,   /**< an event without a point (failed, never returned, of another kind) */
	HEAP_POINT_END,    /**< gives a block back */
	HEAP_POINT_BEGIN   /**< gains one */
};

struct heap_point {
	int64_t time_ns;
	enum heap_point_kind kind;           /**< HEAP_POINT_NONE when ordered by events */
	const struct trace_block *block;     /**< valid until the next heap_stream_next() */
	uint32_t row;                        /**< of the block */
};

struct heap_stream;

/** Blocks that end before from_ns or begin after to_ns are passed over (their other points are not filtered). */
struct heap_stream *heap_stream_new(const struct trace *trace, enum heap_order order, int64_t from_ns, int64_t to_ns);

/** Events in the blocks that were passed over because they end before from_ns. */
uint64_t heap_stream_skipped(const struct heap_stream *stream);

/** The next point: 1; 0 at the end; or a negative errno with the reason in diag. */
int heap_stream_next(struct heap_stream *stream, struct heap_point *point, struct diag *diag);

void heap_stream_free(struct heap_stream *stream);

#endif
