/* SPDX-License-Identifier: MIT */
/**
 * All threads of a trace as one sequence in order of time, ties by process, then thread, then the thread's own order.
 * One decoded block per thread that is under way is held, whatever the length of the trace.
 */
#ifndef XHEAP_MATCH_POINT_STREAM_H
#define XHEAP_MATCH_POINT_STREAM_H

#include "trace/trace.h"

/** What the sequence consists of. */
enum heap_order {
	/** where blocks end and begin: a moving ReAlloc comes twice, at its entry and at its return */
	HEAP_ORDER_POINTS,
	HEAP_ORDER_EVENTS, /**< each event once, at its time_ns */
	HEAP_ORDER_MATCHED /**< as points, with what of event blocks could be matched apart (match/block_match.h) */
};

enum heap_point_kind {
	HEAP_POINT_NONE, /**< an event without a point (failed, never returned, of another kind) */
	HEAP_POINT_END,  /**< gives a block back */
	HEAP_POINT_BEGIN /**< gains one */
};

struct heap_point {
	int64_t time_ns;
	enum heap_point_kind kind;       /**< HEAP_POINT_NONE when ordered by events */
	const struct trace_block *block; /**< valid until the next heap_stream_next() */
	uint32_t row;                    /**< of the block */
};

/** A place in a decoded block. */
struct point_place {
	int64_t time_ns;
	uint64_t address; /**< that the point is about */
	uint32_t row;
	uint32_t kind; /**< enum heap_point_kind */
};

/** The first place of a thread that was not gone through: of its block `block`, or of the first one behind that. */
struct heap_position {
	uint32_t block, place;
};

/** How far earlier looks at a trace that grows have come. */
struct heap_passed {
	int64_t time_ns;                 /**< of the latest point; INT64_MIN: there was none */
	uint32_t thread;                 /**< that point's */
	struct heap_position *positions; /**< by thread */
};

/** Points of one thread that come one after the other. */
struct heap_run {
	const struct trace_block *block; /**< valid until the next call */
	const struct point_place *places;
	uint32_t count;          /**< 1 at least */
	uint32_t known;          /**< with those that come later, behind points of other threads */
	struct heap_position at; /**< where it begins */
	/** of a run that is a whole event block: what it tells by itself; else NULL */
	struct block_match *within;
};

struct heap_stream;
struct block_match;
struct worker_pool;

/** Blocks that end before from_ns or begin after to_ns are passed over (their other points are not filtered). */
struct heap_stream *heap_stream_new(const struct trace *trace, enum heap_order order, int64_t from_ns, int64_t to_ns);

/** From where earlier looks have ended; `passed` stays the caller's, and may change from then on. */
struct heap_stream *heap_stream_go_on(const struct trace *trace, enum heap_order order,
				      const struct heap_passed *passed, int64_t to_ns);

/** The latest time up to `until_ns` at which no event block is cut that could be matched by itself, and from which no
    thread goes back. */
int64_t heap_stream_cut(const struct trace *trace, const struct heap_passed *passed, int64_t until_ns);

/** Events in the blocks that were passed over because they end before from_ns. */
uint64_t heap_stream_skipped(const struct heap_stream *stream);

/** The points up to the next one of another thread: 1; 0 at the end; or a negative errno with the reason in diag. */
int heap_stream_run(struct heap_stream *stream, struct heap_run *run, struct diag *diag);

/** Keep the run's `within` for longer, or take one that nobody uses, and give it back. */
struct block_match *heap_stream_keep(struct heap_stream *stream);
struct block_match *heap_stream_take(struct heap_stream *stream);
void heap_stream_give_back(struct heap_stream *stream, struct block_match *within);

/** Those that decode for it. */
struct worker_pool *heap_stream_pool(const struct heap_stream *stream);

/** The next point, when there was no heap_stream_run(): 1; 0 at the end; or a negative errno with the reason in
    diag. */
int heap_stream_next(struct heap_stream *stream, struct heap_point *point, struct diag *diag);

void heap_stream_free(struct heap_stream *stream);

/** Whether the lanes are in order, each is in the heap once at most, and what is decoded ahead is counted
    (base/check.h). */
bool heap_stream_is_valid(const struct heap_stream *stream);

#endif
