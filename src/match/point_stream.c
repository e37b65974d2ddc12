/* SPDX-License-Identifier: MIT */
/*
 * A merge over threads. A thread's blocks, in file order, are its lane; a binary heap holds the lanes by their next
 * time:
 *
 *     lane of thread 4:   [block 0][block 7]        waiting: keyed by the header's first time, nothing decoded
 *     lane of thread 9:        [block 2: ...|....]  open: keyed by its next point
 *
 * A lane is decoded only when its bound comes up, and its cursor goes to the next lane when it ends. So a trace with
 * ten thousand short threads needs as many cursors as threads that overlapped, not ten thousand.
 *
 * While one block of a lane is passed, threads of the pool decode the next ones.
 *
 * Within a thread, events lie in the order of their returns. Points may not: the first point of a ReAlloc lies before
 * those of calls that a signal handler made inside it, and so does a Free's entry. So the points of a block are sorted
 * if necessary.
 */
#include "match/point_stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/events.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/priority_queue.h"
#include "base/worker_pool.h"
#include "match/block_match.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { LANE_AHEAD_MAX = 3 };

struct lane {
	int64_t time_ns; /* of the next point, or a lower bound of it while not open */
	uint32_t process, thread;
	const uint32_t *blocks; /* those still to be decoded */
	uint32_t block_count;
	uint32_t next, count; /* places of the open block */
	/* index of the first place in the next block, if earlier increments have passed some */
	uint32_t first;
	struct reader *reader;                /* NULL while nothing is decoded */
	struct reader *ahead[LANE_AHEAD_MAX]; /* decode the next blocks, in their order */
	uint32_t ahead_count;
};

/* A decoded block takes some megabytes. */
enum {
	AHEAD_FEW = 8 /* blocks that are decoded ahead, whatever their lanes */,
	AHEAD_MAX = 64 /* blocks that are decoded ahead, one of each lane */
};

/* The state of a lane while one of its blocks is open. */
struct reader {
	struct trace_cursor *cursor;
	struct trace_block block;
	struct point_place *places, *scratch;
	size_t capacity, scratch_capacity;
	uint32_t place_count;
	bool is_crowded;   /* two places have one time */
	bool is_row_order; /* the places did not have to be sorted */
	struct reader *next_free;
	/* Work for another thread. */
	struct worker_task task;
	enum heap_order order;
	uint32_t block_number;
	int error;
	struct diag diag;
	/* Of an isolated block, else NULL. */
	struct block_match *match;
};

/* A block that a stream of some times skips, or several: those that begin up to here. */
struct skipped {
	int64_t first_ns, last_ns; /* last_ns: the latest of all of them */
	uint64_t count;            /* events of all of them */
};

struct heap_stream {
	const struct trace *trace;
	enum heap_order order;
	int64_t from_ns;
	const struct heap_passed *passed; /* at earlier looks; NULL: there were none */
	const struct heap_times *times;   /* until the lanes are made; NULL: all from from_ns on */
	struct skipped *skipped_blocks;   /* of a stream of some times, by first_ns */
	size_t skipped_count, skipped_capacity;
	const bool *is_again; /* by process: those whose passed points are gone through; NULL: no such */
	struct lane *lanes;
	struct lane **heap;
	uint32_t lane_count, heap_count;
	uint32_t *blocks;
	uint64_t skipped;
	/* by block: it is all in the range, and no other thread has points between its first and its last one; or
	   NULL */
	bool *is_isolated;
	struct block_match **free_matches; /* unused ones */
	size_t free_match_count, free_match_capacity;
	struct reader *free_readers;
	uint32_t ahead_count;
	struct worker_pool *pool;
	uint32_t pending;    /* points of the top lane that were handed out and must be passed */
	struct heap_run run; /* what heap_stream_next() has of these */
	uint32_t run_next;
};

/* Return whether the lane's points of a time come before the next one of another. */
static bool lane_time_is_before(const struct lane *a, int64_t time_ns, const struct lane *b)
{
	if (time_ns != b->time_ns)
		return time_ns < b->time_ns;
	if (a->process != b->process)
		return a->process < b->process;
	return a->thread < b->thread;
}

static bool lane_is_before(const struct lane *a, const struct lane *b)
{
	return lane_time_is_before(a, a->time_ns, b);
}

PRIORITY_QUEUE(lane_queue, struct lane *, const void *, lane_is_before(*one, *other))

/* Return whether a block is not wanted: earlier increments have passed it, or it ends before the range. */
static bool is_gone_through(const struct heap_stream *stream, const struct trace_block *head, uint32_t block)
{
	if (stream->is_again) {
		const struct heap_position *end = &stream->passed->positions[head->thread];
		return !stream->is_again[trace_dictionary(stream->trace)->threads[head->thread].process] ||
		       block >= end->block + (end->place > 0);
	}
	return stream->passed ? block < stream->passed->positions[head->thread].block : head->last_ns < stream->from_ns;
}

/* Return whether the block has, or encloses, one of the times. */
static bool has_time(const struct heap_times *times, const struct trace_block *head)
{
	uint32_t place;
	BISECT(place, times->count, i, times->items[i] < head->first_ns);
	return place < times->count && times->items[place] <= head->last_ns;
}

static bool is_left_out(struct heap_stream *stream, const struct trace_block *head)
{
	if (!stream->times || has_time(stream->times, head))
		return false;
	memory_grow(stream->skipped_blocks, stream->skipped_count, stream->skipped_capacity);
	stream->skipped_blocks[stream->skipped_count++] = (struct skipped){head->first_ns, head->last_ns, head->count};
	return true;
}

/* Make the lanes of blocks that overlap the range. A counting sort of block numbers by thread keeps their order. */
static void stream_make_lanes(struct heap_stream *stream, int64_t to_ns)
{
	uint32_t block_count = trace_block_count(stream->trace);
	uint32_t thread_count = trace_dictionary(stream->trace)->thread_count;
	uint32_t *starts = memory_zeroed((size_t)thread_count + 1, sizeof(*starts));
	bool *is_wanted = memory_zeroed(block_count, sizeof(*is_wanted));
	for (uint32_t i = 0; i < block_count; i++) {
		struct trace_block head;
		trace_block_head(stream->trace, i, &head);
		bool is_passed = head.thread < thread_count && is_gone_through(stream, &head, i);
		stream->skipped += is_passed ? head.count : 0;
		is_wanted[i] = head.count && !is_passed && head.first_ns <= to_ns && head.thread < thread_count &&
			       !is_left_out(stream, &head);
		if (is_wanted[i])
			starts[head.thread + 1]++;
	}
	for (uint32_t i = 0; i < thread_count; i++) {
		stream->lane_count += starts[i + 1] > 0;
		starts[i + 1] += starts[i];
	}
	stream->blocks = memory_zeroed(starts[thread_count], sizeof(*stream->blocks));
	stream->lanes = memory_zeroed(stream->lane_count, sizeof(*stream->lanes));
	stream->heap = memory_zeroed(stream->lane_count, sizeof(*stream->heap));
	struct lane **by_thread = memory_zeroed(thread_count, sizeof(*by_thread));
	uint32_t lane_count = 0;
	for (uint32_t i = 0; i < block_count; i++) {
		if (!is_wanted[i])
			continue;
		struct trace_block head;
		trace_block_head(stream->trace, i, &head);
		struct lane *lane = by_thread[head.thread];
		if (!lane) {
			lane = by_thread[head.thread] = &stream->lanes[lane_count++];
			*lane = (struct lane){.time_ns = head.first_ns,
					      .process = head.process,
					      .thread = head.thread,
					      .blocks = &stream->blocks[starts[head.thread]]};
			const struct heap_position *position =
				stream->passed && !stream->is_again ? &stream->passed->positions[head.thread] : NULL;
			lane->first = position && position->block == i ? position->place : 0;
		}
		stream->blocks[starts[head.thread] + lane->block_count++] = i;
	}
	free(by_thread);
	free(is_wanted);
	free(starts);
}

static uint32_t stream_block_count(const struct heap_stream *stream)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < stream->lane_count; i++)
		count += stream->lanes[i].block_count;
	return count;
}

uint64_t heap_stream_skipped(const struct heap_stream *stream)
{
	return stream->skipped;
}

/* ---- some times ---- */

static int skipped_order(const void *one, const void *other)
{
	const struct skipped *a = one, *b = other;
	return (a->first_ns > b->first_ns) - (a->first_ns < b->first_ns);
}

static void skipped_sort(struct heap_stream *stream)
{
	struct skipped *skipped = stream->skipped_blocks;
	if (stream->skipped_count)
		qsort(skipped, stream->skipped_count, sizeof(*skipped), skipped_order);
	for (size_t i = 1; i < stream->skipped_count; i++) {
		skipped[i].count += skipped[i - 1].count;
		if (skipped[i].last_ns < skipped[i - 1].last_ns)
			skipped[i].last_ns = skipped[i - 1].last_ns;
	}
}

bool heap_stream_skipped_before(const struct heap_stream *stream, int64_t time_ns, uint64_t *count)
{
	size_t place;
	BISECT(place, stream->skipped_count, i, stream->skipped_blocks[i].first_ns <= time_ns);
	*count = place ? stream->skipped_blocks[place - 1].count : 0;
	return !place || stream->skipped_blocks[place - 1].last_ns < time_ns;
}

/* ---- isolated event blocks ---- */

struct bounds {
	int64_t first_ns, last_ns;
	uint32_t block, thread;
};

COMPARE_BY(bounds_compare, struct bounds, first_ns)

/* Return whether blocks of other threads before it, by their first times, end before it begins. */
static void isolated_from_before(bool *is_isolated, const struct bounds *bounds, uint32_t count)
{
	const struct bounds *last = NULL, *other = NULL; /* of two threads, those that end last */
	for (uint32_t i = 0; i < count; i++) {
		const struct bounds *at = &bounds[i], *before = last && last->thread != at->thread ? last : other;
		is_isolated[at->block] = !before || before->last_ns < at->first_ns;
		if (last && last->thread != at->thread && last->last_ns <= at->last_ns)
			other = last;
		else if (last && last->thread != at->thread && (!other || other->last_ns < at->last_ns))
			other = at;
		if (!last || last->last_ns <= at->last_ns)
			last = at;
	}
}

/* Return whether a block comes after everything that earlier increments passed: blocks that the lanes do not have may
   not be over. */
static bool is_behind_all_passed(const struct heap_stream *stream, const struct bounds *at)
{
	const struct heap_passed *passed = stream->passed;
	return passed ? at->first_ns > passed->time_ns ||
				(at->first_ns == passed->time_ns && at->thread == passed->thread)
		      : at->first_ns >= stream->from_ns;
}

static void stream_find_isolated(struct heap_stream *stream)
{
	uint32_t count = 0;
	struct bounds *bounds = memory_zeroed(stream_block_count(stream), sizeof(*bounds));
	for (uint32_t i = 0; i < stream->lane_count; i++) {
		for (uint32_t k = 0; k < stream->lanes[i].block_count; k++) {
			struct trace_block head;
			trace_block_head(stream->trace, stream->lanes[i].blocks[k], &head);
			bounds[count++] =
				(struct bounds){head.first_ns, head.last_ns, stream->lanes[i].blocks[k], head.thread};
		}
	}
	qsort(bounds, count, sizeof(*bounds), bounds_compare);
	stream->is_isolated = memory_zeroed(trace_block_count(stream->trace), sizeof(*stream->is_isolated));
	isolated_from_before(stream->is_isolated, bounds, count);
	/* And whether those behind it begin when it has ended. */
	const struct bounds *next = NULL;
	for (uint32_t i = count; i-- > 0;) {
		if (i + 1 < count && bounds[i + 1].thread != bounds[i].thread)
			next = &bounds[i + 1];
		stream->is_isolated[bounds[i].block] &=
			(!next || next->first_ns > bounds[i].last_ns) && is_behind_all_passed(stream, &bounds[i]);
	}
	free(bounds);
}

/* Return a cut that suits this lane; see heap_stream_cut(). */
static int64_t lane_cut(const struct heap_stream *stream, const struct lane *lane, int64_t until_ns)
{
	int64_t before_ns = INT64_MIN;
	for (uint32_t i = 0; i < lane->block_count; i++) {
		struct trace_block head;
		trace_block_head(stream->trace, lane->blocks[i], &head);
		int64_t last_ns =
			stream->is_isolated[lane->blocks[i]] && head.last_ns > before_ns ? head.last_ns : before_ns;
		if (head.first_ns <= until_ns && last_ns > until_ns)
			until_ns = head.first_ns > INT64_MIN ? head.first_ns - 1 : INT64_MIN;
		before_ns = head.last_ns > before_ns ? head.last_ns : before_ns;
	}
	return until_ns;
}

static void lanes_free(struct heap_stream *stream)
{
	free(stream->is_isolated);
	free(stream->lanes);
	free(stream->heap);
	free(stream->blocks);
}

int64_t heap_stream_cut(const struct trace *trace, const struct heap_passed *passed, int64_t until_ns)
{
	/* Later blocks count as well: a thread may go back from there. */
	struct heap_stream all = {.trace = trace, .passed = passed};
	stream_make_lanes(&all, INT64_MAX);
	stream_find_isolated(&all);
	for (int64_t before_ns = INT64_MAX; before_ns != until_ns;) {
		before_ns = until_ns;
		for (uint32_t i = 0; i < all.lane_count; i++)
			until_ns = lane_cut(&all, &all.lanes[i], until_ns);
	}
	lanes_free(&all);
	return until_ns;
}

struct block_match *heap_stream_take(struct heap_stream *stream)
{
	return stream->free_match_count ? stream->free_matches[--stream->free_match_count]
					: memory_zeroed(1, sizeof(struct block_match));
}

struct block_match *heap_stream_keep(struct heap_stream *stream)
{
	assert(stream->heap_count > 0 && stream->heap[0]->reader);
	struct reader *reader = stream->heap[0]->reader;
	struct block_match *match = reader->match;
	reader->match = NULL;
	return match;
}

void heap_stream_give_back(struct heap_stream *stream, struct block_match *match)
{
	if (!match)
		return;
	memory_grow(stream->free_matches, stream->free_match_count, stream->free_match_capacity);
	stream->free_matches[stream->free_match_count++] = match;
}

/* ---- readers ---- */

static struct reader *reader_take(struct heap_stream *stream)
{
	struct reader *reader = stream->free_readers;
	if (reader) {
		stream->free_readers = reader->next_free;
		return reader;
	}
	reader = memory_zeroed(1, sizeof(*reader));
	reader->cursor = trace_cursor_new(stream->trace);
	if (!reader->cursor)
		memory_exhausted(0);
	return reader;
}

static void reader_free(struct reader *reader)
{
	if (reader->match)
		block_match_fini(reader->match);
	free(reader->match);
	trace_cursor_free(reader->cursor);
	free(reader->places);
	free(reader->scratch);
	free(reader);
}

static uint32_t event_places(const struct trace_block *block, uint32_t row, struct point_place *to)
{
	*to = (struct point_place){block->time_ns[row], block->address[row], row, HEAP_POINT_NONE};
	return 1;
}

/* Set the event's points. An event that never returned has taken effect at its entry if it freed a block, and not at
   all if it was to allocate one. */
static uint32_t point_places(const struct trace_block *block, uint32_t row, struct point_place *to)
{
	int64_t time_ns = block->time_ns[row];
	uint64_t address = block->address[row], previous = block->previous[row];
	bool has_begun = !(block->flags[row] & EVENT_IN_FLIGHT) && address;
	uint32_t count = 0;
	if (block->flags[row] & EVENT_FAILED)
		return event_places(block, row, to);
	switch (block->kind[row]) {
	case EVENT_FREE:
		if (address)
			to[count++] = (struct point_place){time_ns, address, row, HEAP_POINT_END};
		break;
	case EVENT_REALLOC:
		if (previous && !(block->flags[row] & EVENT_FOLDED_BEFORE))
			to[count++] =
				(struct point_place){(int64_t)((uint64_t)time_ns - (uint64_t)block->duration_ns[row]),
						     previous, row, HEAP_POINT_END};
		/* fall through */
	case EVENT_ALLOC:
	case EVENT_EARLIER:
		if (has_begun)
			to[count++] = (struct point_place){time_ns, address, row, HEAP_POINT_BEGIN};
		break;
	}
	return count ? count : event_places(block, row, to);
}

/* List the points of a block. Normally an event has one point; which of the two cannot be predicted. */
static uint32_t block_places(const struct trace_block *block, struct point_place *to)
{
	static const uint8_t kinds[EVENT_KIND_COUNT] = {
		[EVENT_ALLOC] = HEAP_POINT_BEGIN, [EVENT_FREE] = HEAP_POINT_END};
	uint32_t count = 0;
	for (uint32_t row = 0; row < block->count; row++) {
		uint32_t kind = kinds[block->kind[row]];
		uint64_t address = block->address[row];
		if ((kind != HEAP_POINT_NONE) & !(block->flags[row] & (EVENT_FAILED | EVENT_IN_FLIGHT)) &
		    (address != 0))
			to[count++] = (struct point_place){block->time_ns[row], address, row, kind};
		else
			count += point_places(block, row, &to[count]);
	}
	return count;
}

static uint32_t block_events(const struct trace_block *block, struct point_place *to)
{
	for (uint32_t row = 0; row < block->count; row++)
		event_places(block, row, &to[row]);
	return block->count;
}

/* Sort by merging from the bottom up, stably. Only called if something is out of order, which is rare. */
static struct point_place *places_sort(struct point_place *places, struct point_place *scratch, size_t count)
{
	for (size_t width = 1; width < count; width *= 2) {
		for (size_t start = 0; start < count; start += 2 * width) {
			size_t middle = start + width < count ? start + width : count;
			size_t end = start + 2 * width < count ? start + 2 * width : count;
			for (size_t left = start, right = middle, to = start; to < end; to++) {
				bool is_left = left < middle &&
					       (right >= end || places[left].time_ns <= places[right].time_ns);
				scratch[to] = places[is_left ? left++ : right++];
			}
		}
		struct point_place *swapped = places;
		places = scratch;
		scratch = swapped;
	}
	return places;
}

static void reader_make_places(struct reader *reader, enum heap_order order)
{
	const struct trace_block *block = &reader->block;
	size_t most = (size_t)block->count * 2;
	if (most > reader->capacity) {
		reader->capacity = most;
		reader->places = memory_resize(reader->places, most, sizeof(*reader->places));
	}
	uint32_t filled =
		order == HEAP_ORDER_EVENTS ? block_events(block, reader->places) : block_places(block, reader->places);
	bool is_sorted = true, is_crowded = false;
	reader->place_count = filled;
	for (uint32_t i = 1; i < filled; i++) {
		is_sorted &= reader->places[i].time_ns >= reader->places[i - 1].time_ns;
		is_crowded |= reader->places[i].time_ns == reader->places[i - 1].time_ns;
	}
	reader->is_crowded = is_crowded || !is_sorted;
	reader->is_row_order = is_sorted;
	if (is_sorted)
		return;
	if (reader->scratch_capacity < reader->capacity) {
		reader->scratch_capacity = reader->capacity;
		reader->scratch = memory_resize(reader->scratch, reader->capacity, sizeof(*reader->scratch));
	}
	struct point_place *sorted = places_sort(reader->places, reader->scratch, filled);
	if (sorted != reader->places) {
		reader->scratch = reader->places;
		reader->places = sorted;
	}
}

/* ---- decoding ---- */

static void reader_decode(void *context)
{
	struct reader *reader = context;
	reader->diag = (struct diag){""};
	reader->error = trace_cursor_read(reader->cursor, reader->block_number, &reader->block, &reader->diag);
	if (reader->error)
		return;
	reader_make_places(reader, reader->order);
	if (reader->match)
		block_match_make(reader->match, &reader->block, reader->places, reader->place_count);
}

/* Return the reader of the lane's next block, which is to be decoded. */
static struct reader *lane_take_block(struct heap_stream *stream, struct lane *lane)
{
	assert(lane->block_count > 0);
	struct reader *reader = reader_take(stream);
	reader->task = (struct worker_task){.run = reader_decode, .context = reader};
	reader->order = stream->order;
	reader->block_number = *lane->blocks++;
	lane->block_count--;
	if (stream->is_isolated && stream->is_isolated[reader->block_number])
		reader->match = heap_stream_take(stream);
	return reader;
}

static void lane_read_ahead(struct heap_stream *stream, struct lane *lane)
{
	while (worker_pool_helpers(stream->pool) && lane->block_count && lane->ahead_count < LANE_AHEAD_MAX &&
	       stream->ahead_count < (lane->ahead_count ? AHEAD_FEW : AHEAD_MAX)) {
		struct reader *reader = lane_take_block(stream, lane); /* it may find no memory */
		lane->ahead[lane->ahead_count++] = reader;
		stream->ahead_count++;
		worker_pool_give(stream->pool, &reader->task);
	}
}

static void reader_give_back(struct heap_stream *stream, struct reader *reader)
{
	heap_stream_give_back(stream, reader->match);
	reader->match = NULL;
	reader->next_free = stream->free_readers;
	stream->free_readers = reader;
}

static int lane_open(struct heap_stream *stream, struct lane *lane, struct diag *diag)
{
	assert(lane->next >= lane->count);
	if (lane->reader)
		reader_give_back(stream, lane->reader);
	if (lane->ahead_count) {
		lane->reader = lane->ahead[0];
		memmove(lane->ahead, lane->ahead + 1, --lane->ahead_count * sizeof(*lane->ahead));
		stream->ahead_count--;
		worker_pool_wait(stream->pool, &lane->reader->task);
	} else {
		lane->reader = lane_take_block(stream, lane);
		reader_decode(lane->reader);
	}
	if (lane->reader->error)
		return diag_fail(diag, lane->reader->error, "%s", lane->reader->diag.text);
	lane->next = lane->first;
	lane->first = 0;
	lane->count = lane->reader->place_count;
	lane_read_ahead(stream, lane);
	return 0;
}

static struct heap_stream *stream_new(const struct heap_stream *how, int64_t to_ns)
{
	struct heap_stream *stream = memory_zeroed(1, sizeof(*stream));
	*stream = *how;
	stream_make_lanes(stream, to_ns);
	stream->times = NULL;
	skipped_sort(stream);
	for (uint32_t i = 0; i < stream->lane_count; i++)
		stream->heap[i] = &stream->lanes[i];
	stream->heap_count = stream->lane_count;
	stream->pool = worker_pool_new(stream_block_count(stream));
	if (stream->order == HEAP_ORDER_MATCHED)
		stream_find_isolated(stream);
	lane_queue_make(NULL, stream->heap, stream->heap_count);
	return stream;
}

struct heap_stream *heap_stream_new(const struct trace *trace, enum heap_order order, int64_t from_ns, int64_t to_ns)
{
	return stream_new(&(struct heap_stream){.trace = trace, .order = order, .from_ns = from_ns}, to_ns);
}

struct heap_stream *heap_stream_at(const struct trace *trace, enum heap_order order, const struct heap_times *times)
{
	assert(order != HEAP_ORDER_MATCHED);
	return stream_new(&(struct heap_stream){.trace = trace, .order = order, .from_ns = INT64_MIN, .times = times},
			  INT64_MAX);
}

struct heap_stream *heap_stream_go_on(const struct trace *trace, enum heap_order order,
				      const struct heap_passed *passed, int64_t to_ns)
{
	assert(passed);
	return stream_new(&(struct heap_stream){.trace = trace, .order = order, .passed = passed}, to_ns);
}

struct heap_stream *heap_stream_again(const struct trace *trace, const struct heap_passed *passed,
				      const bool *is_wanted)
{
	assert(passed && is_wanted);
	const struct heap_stream how = {
		.trace = trace, .order = HEAP_ORDER_POINTS, .passed = passed, .is_again = is_wanted};
	return stream_new(&how, INT64_MAX);
}

/* Pass the top lane's points. After its last point a lane waits for its next block, keyed by that block's header, or
   leaves. */
static void stream_pass(struct heap_stream *stream)
{
	assert(stream->heap_count > 0);
	struct lane *lane = stream->heap[0];
	lane->next += stream->pending;
	stream->pending = 0;
	if (lane->next < lane->count) {
		lane->time_ns = lane->reader->places[lane->next].time_ns;
	} else if (lane->ahead_count || lane->block_count) {
		struct trace_block head;
		trace_block_head(stream->trace, lane->ahead_count ? lane->ahead[0]->block_number : *lane->blocks,
				 &head);
		lane->time_ns = head.first_ns;
		lane->next = lane->count = 0;
	} else {
		reader_give_back(stream, lane->reader);
		lane->reader = NULL;
		lane_queue_pop(NULL, stream->heap, --stream->heap_count);
		return;
	}
	lane_queue_sink(NULL, stream->heap, stream->heap_count, 0);
}

/* Return how many of the top lane's points come before those of all other lanes. */
static uint32_t run_length(const struct heap_stream *stream)
{
	assert(stream->heap[0]->next < stream->heap[0]->count);
	const struct lane *lane = stream->heap[0], *other = stream->heap_count > 1 ? stream->heap[1] : NULL;
	if (!other)
		return lane->count - lane->next;
	if (stream->heap_count > 2 && lane_is_before(stream->heap[2], other))
		other = stream->heap[2];
	uint32_t end = lane->next + 1;
	while (end < lane->count && lane_time_is_before(lane, lane->reader->places[end].time_ns, other))
		end++;
	return end - lane->next;
}

int heap_stream_run(struct heap_stream *stream, struct heap_run *run, struct diag *diag)
{
	if (stream->pending)
		stream_pass(stream);
	while (stream->heap_count) {
		struct lane *lane = stream->heap[0];
		if (lane->next < lane->count) {
			stream->pending = run_length(stream);
			bool is_whole = stream->pending == lane->reader->place_count;
			*run = (struct heap_run){&lane->reader->block,
						 &lane->reader->places[lane->next],
						 stream->pending,
						 lane->count - lane->next,
						 {lane->reader->block_number, lane->next},
						 is_whole ? lane->reader->match : NULL,
						 lane->reader->is_crowded,
						 lane->reader->is_row_order};
			return 1;
		}
		int error = lane_open(stream, lane, diag);
		if (error)
			return error;
		if (lane->next >= lane->count) {
			stream_pass(stream);
			continue;
		}
		lane->time_ns = lane->reader->places[lane->next].time_ns;
		lane_queue_sink(NULL, stream->heap, stream->heap_count, 0);
	}
	return 0;
}

int heap_stream_next(struct heap_stream *stream, struct heap_point *point, struct diag *diag)
{
	if (stream->run_next == stream->run.count) {
		int status = heap_stream_run(stream, &stream->run, diag);
		stream->run_next = 0;
		if (status <= 0) {
			stream->run.count = 0;
			return status;
		}
	}
	const struct point_place *place = &stream->run.places[stream->run_next++];
	*point = (struct heap_point){place->time_ns, (enum heap_point_kind)place->kind, stream->run.block, place->row};
	return 1;
}

struct worker_pool *heap_stream_pool(const struct heap_stream *stream)
{
	return stream->pool;
}

void heap_stream_free(struct heap_stream *stream)
{
	if (!stream)
		return;
	worker_pool_free(stream->pool);
	for (uint32_t i = 0; i < stream->lane_count; i++) {
		if (stream->lanes[i].reader)
			reader_free(stream->lanes[i].reader);
		for (uint32_t k = 0; k < stream->lanes[i].ahead_count; k++)
			reader_free(stream->lanes[i].ahead[k]);
	}
	for (struct reader *reader = stream->free_readers, *next; reader; reader = next) {
		next = reader->next_free;
		reader_free(reader);
	}
	for (size_t i = 0; i < stream->free_match_count; i++) {
		block_match_fini(stream->free_matches[i]);
		free(stream->free_matches[i]);
	}
	free(stream->free_matches);
	free(stream->skipped_blocks);
	lanes_free(stream);
	free(stream);
}

/* ---- checks ---- */

static bool lane_is_valid(const struct heap_stream *stream, const struct lane *lane)
{
	if (lane->ahead_count > LANE_AHEAD_MAX || lane->next > lane->count)
		return false;
	if (lane->block_count && (lane->blocks < stream->blocks || !trace_block_count(stream->trace) ||
				  lane->blocks[lane->block_count - 1] >= trace_block_count(stream->trace)))
		return false;
	/* One that is over has no reader any more. */
	if (lane->reader ? lane->count && lane->count != lane->reader->place_count : lane->next != lane->count)
		return false;
	for (uint32_t i = lane->next; i + 1 < lane->count; i++)
		if (lane->reader->places[i].time_ns > lane->reader->places[i + 1].time_ns)
			return false;
	for (uint32_t i = 1; i < lane->block_count; i++)
		if (lane->blocks[i - 1] >= lane->blocks[i])
			return false;
	return true;
}

bool heap_stream_is_valid(const struct heap_stream *stream)
{
	uint32_t ahead_count = 0;
	if (stream->heap_count > stream->lane_count || stream->run_next > stream->run.count)
		return false;
	for (uint32_t i = 0; i < stream->lane_count; i++) {
		ahead_count += stream->lanes[i].ahead_count;
		if (!lane_is_valid(stream, &stream->lanes[i]))
			return false;
	}
	for (uint32_t i = 0; i < stream->heap_count; i++) {
		const struct lane *lane = stream->heap[i];
		if (lane < stream->lanes || lane >= stream->lanes + stream->lane_count ||
		    (i && !lane_is_before(stream->heap[(i - 1) / 2], lane)))
			return false;
	}
	return ahead_count == stream->ahead_count &&
	       (!stream->pending || (stream->heap_count && stream->heap[0]->reader &&
				     stream->pending <= stream->heap[0]->count - stream->heap[0]->next));
}
