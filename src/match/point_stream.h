/* SPDX-License-Identifier: MIT */
/** All threads of a trace as one sequence in order of time; ties are ordered by process, then thread, then the thread's
    own order. One decoded block is held for each thread, however long the trace is. */
#ifndef XHEAP_MATCH_POINT_STREAM_H
#define XHEAP_MATCH_POINT_STREAM_H

#include <stdbool.h>
#include <stdint.h>

/** The elements of the sequence. */
enum heap_order {
	/** beginnings and ends of blocks: a moving ReAlloc comes twice, at its entry and at its return */
	HEAP_ORDER_POINTS,
	HEAP_ORDER_EVENTS, /**< each event once, at its time_ns */
	HEAP_ORDER_MATCHED /**< as points, with block matches of event blocks (match/block_match.h) */
};

/** The effect of a point. */
enum heap_point_kind {
	HEAP_POINT_NONE, /**< an event without a point (failed, never returned, of another kind) */
	HEAP_POINT_END,  /**< ends a block */
	HEAP_POINT_BEGIN /**< begins a block */
};

/** A point of the sequence. */
struct heap_point {
	int64_t time_ns;
	enum heap_point_kind kind;       /**< HEAP_POINT_NONE in the order of events */
	const struct trace_block *block; /**< valid until the next heap_stream_next() */
	uint32_t row;                    /**< index in the block */
};

/** A point in a decoded block. */
struct point_place {
	int64_t time_ns;
	uint64_t address; /**< of the block that begins or ends */
	uint32_t row;
	uint32_t kind; /**< enum heap_point_kind */
};

/** The first unmatched place of a thread: in its block `block`, or in the first block after that. */
struct heap_position {
	uint32_t block, place;
};

/** How far the increments of a growing trace have come. */
struct heap_passed {
	int64_t time_ns;                 /**< of the latest point; INT64_MIN: none */
	uint32_t thread;                 /**< of the latest point */
	struct heap_position *positions; /**< by thread */
};

/** Times, ascending. */
struct heap_times {
	const int64_t *items;
	uint32_t count;
};

/** Consecutive points of one thread. */
struct heap_run {
	const struct trace_block *block; /**< valid until the next call */
	const struct point_place *places;
	uint32_t count; /**< at least 1 */
	/** points of the block from here on, including those behind points of other threads */
	uint32_t known;
	struct heap_position at; /**< where the run begins */
	/** the block match of a run that is a whole event block; else NULL. It belongs to the stream */
	struct block_match *match;
	bool is_crowded;   /**< two points of the block, not necessarily of the run, have one time */
	bool is_row_order; /**< the block's points lie in the order of its rows: no call began inside another one */
};

struct block_match;
struct diag;
struct heap_stream;
struct trace;
struct trace_block;
struct worker_pool;

/** Begin a stream. Blocks that end before from_ns or begin after to_ns are skipped; points of other blocks are not
    filtered. */
struct heap_stream *heap_stream_new(const struct trace *trace, enum heap_order order, int64_t from_ns, int64_t to_ns);

/** Begin a stream of the blocks that have, or enclose, one of the times: all points of these times are in it. Not for
    block matches. `times` may end with the call. */
struct heap_stream *heap_stream_at(const struct trace *trace, enum heap_order order, const struct heap_times *times);

/** Set *count to the events in the blocks that heap_stream_at() skipped, as far as they lie before a time. Return false
    if one of these blocks has, or encloses, the time: then points of it may be missing. */
bool heap_stream_skipped_before(const struct heap_stream *stream, int64_t time_ns, uint64_t *count);

/** Continue after earlier increments. `passed` stays the caller's and may change from then on. */
struct heap_stream *heap_stream_go_on(const struct trace *trace, enum heap_order order,
				      const struct heap_passed *passed, int64_t to_ns);

/** Begin again with the event blocks of some processes, in which all points that *passed has of them are:
    is_wanted[process]. Points behind those may follow. */
struct heap_stream *heap_stream_again(const struct trace *trace, const struct heap_passed *passed,
				      const bool *is_wanted);

/** Return the latest time up to until_ns that cuts no isolated event block. From later points no thread goes back
    before it. */
int64_t heap_stream_cut(const struct trace *trace, const struct heap_passed *passed, int64_t until_ns);

/** Return the number of events in the blocks skipped by from_ns. */
uint64_t heap_stream_skipped(const struct heap_stream *stream);

/** Get the points up to the next one of another thread. Return 1; 0 at the end; or a negative errno with the reason in
    `diag`. */
int heap_stream_run(struct heap_stream *stream, struct heap_run *run, struct diag *diag);

/** Take the run's block match out of the stream; heap_stream_give_back() returns it. */
struct block_match *heap_stream_keep(struct heap_stream *stream);
/** Take an unused block match. */
struct block_match *heap_stream_take(struct heap_stream *stream);
/** Return a block match to the stream; NULL is allowed. */
void heap_stream_give_back(struct heap_stream *stream, struct block_match *match);

/** Return the thread pool that decodes for the stream. */
struct worker_pool *heap_stream_pool(const struct heap_stream *stream);

/** Get the next point; not to be mixed with heap_stream_run(). Return 1; 0 at the end; or a negative errno with the
    reason in `diag`. */
int heap_stream_next(struct heap_stream *stream, struct heap_point *point, struct diag *diag);

/** Free the stream. */
void heap_stream_free(struct heap_stream *stream);

/** Whether the lanes are in order, each is in the heap once at most, and what is decoded ahead is counted
    (base/check.h). */
bool heap_stream_is_valid(const struct heap_stream *stream);

#endif
