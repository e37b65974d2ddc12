/* SPDX-License-Identifier: MIT */
/*
 * Taking buffers: full ones in their order, those being filled, those of threads that are gone. recorder/stream.c has
 * the timeline of a full buffer. Of one that is being filled, five numbers say how far who has it:
 *
 *     bytes       |=== taken at the last flush ===|== since then ==|-- a record --|        |
 *     of a buffer 0                               |                |                       its size
 *                                                 |                +-- committed: the thread's, after each record;
 *                                                 |                    handed_over: the same, at its end (FULL)
 *                                                 +-- stream->open_sequence, open_committed: the logger's memory
 *
 *     events      |=== the trace has them ======|= read, too late =|= not read yet
 *     of a buffer 0                             |
 *                                               +-- part_sequence, part_events: in the trace's block
 *                                               +-- stream->open_taken: to be noted when the file has the block
 *                                               +-- head->taken: in the region, noted then
 *
 *     open_take()     copy the committed bytes, decode, skip the first written_events;
 *                     leave events after until_ticks to the next time: then open_committed is 0
 *     stream_write()  a block with part_sequence, part_events    * dies: a block that is not whole is read again
 *     writer_flush()  the file has the block                     * dies: the file's part says so
 *     part_settle()   head->taken = open_taken                   * dies: both say so
 *     (no past)       the trace drops the block                  * dies: head->taken says so
 *     buffer_take()   FULL: skip events_taken(), decode the rest, complete the buffer
 *
 * At each *, the logger may die, and the buffer still has all of its events.
 * A recovery takes the larger of part_events and head->taken, each only for the same sequence. A block may be divided
 * between two files. If the logger died before the second one, the front names no buffer: so many events more are
 * skipped. So no event is in the trace twice, and none is missing. handed_over wins over committed: a forked child may
 * still write that one.
 */
#include "session/drain/drain_buffers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "session/drain/drain_blocks.h"
#include "session/drain/drain_columns.h"
#include "session/drain/drain_notes.h"
#include "session/drain/drain_threads.h"
#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/row_ids.h"

/* ---- one buffer ---- */

static void damage_note(struct drain_region *region, const struct stream *stream, const struct decode *decode,
			uint64_t bytes)
{
	assert(decode->damage);
	assert(decode->at >= region->drain->copy);
	struct drain *drain = region->drain;
	uint64_t size = decode->event_count > 0 ? (uint64_t)(decode->at - drain->copy) / decode->event_count
						: DECODE_EVENT_BYTES_MIN;
	uint64_t events = bytes / (size < DECODE_EVENT_BYTES_MIN ? DECODE_EVENT_BYTES_MIN : size) + 1;
	drain->past.damaged_buffers++;
	drain->past.lost += events;
	region->own.lost += events;
	bool is_open = stream->owner.is_open;
	struct trace_gap gap = {.process = is_open ? stream->owner.process : TRACE_NONE,
				.thread = is_open ? stream->owner.id : TRACE_NONE,
				.from_ns = (int64_t)(is_open ? stream->owner.last : region->earliest),
				.to_ns = (int64_t)ticks_now(region->shared)};
	gap.count[EVENT_ALLOC] = events;
	writer_add_gap(drain->writer, &gap);
	if (drain->damage_notes++ < DAMAGE_NOTES_MAX) {
		char text[200];
		snprintf(text, sizeof(text), "process %u, thread %u: %s; %llu bytes, about %llu events lost",
			 region->pid, stream->owner.tid, decode->damage, (unsigned long long)bytes,
			 (unsigned long long)events);
		drain_add_note(drain, "damaged-buffer", text);
	}
}

/* Continue with the thread that the last RECORD_BEGIN named. Return false if a limit keeps it out of the trace. */
static bool stream_follow(struct drain_region *region, struct stream *stream, struct decode *decode, uint32_t sequence)
{
	assert(decode->is_begun);
	struct owner *owner = &stream->owner;
	if (owner->is_open && owner->serial == decode->serial && owner->process == decode->process &&
	    owner->tid == decode->tid)
		return true;
	stream_write(region, stream, sequence, decode->event_count);
	owner_end(region, stream);
	if (owner_begin(region, stream, decode->process_index, decode->process, decode->serial, decode->tid,
			decode->ticks))
		return true;
	decode->damage = "more threads than can be kept";
	return false;
}

void drain_note_point(struct drain_region *region, struct stream *stream, uint32_t process_index, uint64_t ticks)
{
	stream->owner.last = ticks;
	if (process_index < REGION_PROCESS_MAX && region->translate.process[process_index].last_ticks < ticks)
		region->translate.process[process_index].last_ticks = ticks;
}

static void owner_count(struct drain_region *region, struct stream *stream, int64_t events,
			const struct stack_ends *ends)
{
	assert(events >= 0 || stream->owner.events >= (uint64_t)-events);
	region->event_count += (uint64_t)events;
	stream->owner.events += (uint64_t)events;
	stack_ends_add(&stream->owner.ends, ends);
	stack_ends_add(&stream->ends, ends);
}

/* As stream_decode(), within limits of what is kept that are already set. */
static void stream_decode_all(struct drain_region *region, struct stream *stream, struct decode *decode,
			      uint32_t sequence)
{
	assert(decode->at <= decode->end);
	for (;;) {
		bool is_known = decode->event_count < stream->written_events;
		/* Not a thread whose events are all known: the stream may have gone on to the next one before. */
		if (!is_known && decode_is_within_thread(decode) && !stream_follow(region, stream, decode, sequence))
			return;
		uint64_t bytes = (uint64_t)(decode->end - decode->at);
		struct writer_events *events = &region->drain->ignored;
		events->count = 0;
		if (is_known) {
			columns_reserve(region->drain, events, bytes / DECODE_EVENT_BYTES_MIN + 2);
		} else {
			columns_ready(region, stream, bytes);
			events = stream->events;
		}
		uint32_t count = events->count,
			 limit = is_known ? stream->written_events - decode->event_count : UINT32_MAX;
		decode->ends = (struct stack_ends){0};
		enum decode_result result = decode_run(decode, events, limit);
		if (!is_known)
			owner_count(region, stream, events->count - count, &decode->ends);
		if (!is_known && events->count > count)
			drain_note_point(region, stream, decode->process_index, events->time[events->count - 1]);
		if (result == DECODE_END || result == DECODE_DAMAGED)
			return;
	}
}

/* Decode the bytes from decode->at to decode->end. */
static void stream_decode(struct drain_region *region, struct stream *stream, struct decode *decode, uint32_t sequence)
{
	keep_begin_stacks(&region->translate.keep);
	stream_decode_all(region, stream, decode, sequence);
	keep_end_stacks(&region->translate.keep);
}

/* Take the Free that was under way when its process died: its whole record lies behind the committed ones. */
static void pending_take(struct drain_region *region, struct stream *stream, struct decode *decode,
			 const struct ending *ending)
{
	assert(!(stream->key & REGION_SIGNAL));
	uint32_t count = stream->events ? stream->events->count : 0;
	if (!ending->entry || ending->pending == 0 || ending->ticks <= stream->owner.last || !decode->is_begun ||
	    decode->damage)
		return;
	bool is_followed = stream_follow(region, stream, decode, 0);
	decode->damage = NULL;
	decode->end = decode->at + ending->pending;
	if (!is_followed)
		return;
	columns_ready(region, stream, ending->pending);
	decode->ends = (struct stack_ends){0};
	keep_begin_stacks(&region->translate.keep);
	enum decode_result result = decode_run(decode, stream->events, 1);
	keep_end_stacks(&region->translate.keep);
	/* A record there may be older than the call: its time shows that. */
	const struct writer_events *events = stream->events;
	if ((result == DECODE_END || result == DECODE_LIMIT) && events->count == count + 1 &&
	    events->time[count] == ending->ticks &&
	    events->entry[count] == region->translate.entry[(ending->entry - 1) & 0xff].id) {
		stream->events->flags[count] |= EVENT_IN_FLIGHT | EVENT_NO_DURATION;
		drain_note_point(region, stream, decode->process_index, ending->ticks);
		stack_ends_add(&stream->ends, &decode->ends);
		region->drain->past.in_flight++;
	} else {
		stream->events->count = count;
	}
	decode->damage = NULL;
}

static void stream_complete(struct drain_region *region, struct stream *stream, uint32_t sequence, uint32_t index)
{
	assert(index < region->shared->buffer_ready);
	assert(!region->is_taken[index]);
	if (stream->completed_first > stream->completed_last)
		stream->completed_first = sequence;
	stream->completed_last = sequence;
	stream->sequence = sequence;
	stream->has_sequence = true;
	held_add(region, &stream->held, index);
	region->is_taken[index] = 1;
	region->held_count++;
	if (stream->events && stream->events->count >= BLOCK_EVENTS)
		stream_write(region, stream, 0, 0);
}

static bool stream_knows(const struct drain_region *region, const struct stream *stream, uint32_t sequence)
{
	return region->known && stream->has_sequence && (int32_t)((sequence - stream->sequence) << 1) <= 0;
}

/* Return how many events of the buffer the trace has, or had before it dropped them. */
static uint32_t events_taken(const struct drain_region *region, const struct stream *stream, uint32_t index,
			     uint32_t sequence)
{
	uint32_t events = writer_last_part(region->drain->writer, region->shared->id, stream->key, sequence);
	uint64_t taken = region->known ? LOAD(&region_buffer(region->shared, index)->taken) : 0;
	return taken >> 32 == sequence && (uint32_t)taken > events ? (uint32_t)taken : events;
}

/* Prepare to decode the first bytes of a buffer, which are in drain->copy. The stream gets room for their events, and
   the number of those that the trace already has. */
static struct decode copy_decode(struct drain_region *region, struct stream *stream, uint32_t index, uint32_t bytes,
				 uint32_t sequence)
{
	assert(bytes <= region->drain->copy_size);
	assert(bytes % RECORD_WORD_BYTES == 0);
	struct drain *drain = region->drain;
	stream->written_events = events_taken(region, stream, index, sequence) + stream->behind_events;
	if (stream->events && stream->events->count + bytes / DECODE_EVENT_BYTES_MIN + 2 > BLOCK_EVENTS_MAX)
		stream_write(region, stream, 0, 0);
	return (struct decode){.translate = &region->translate,
			       .memory = drain->memory,
			       .nodes = drain->nodes,
			       .at = drain->copy,
			       .end = drain->copy + bytes,
			       .sequence = sequence,
			       .earliest = region->earliest,
			       .latest = ticks_now(region->shared) + SLACK_TICKS};
}

/* Return how many bytes of a buffer hold records. The owner's count at the hand-over decides: a child that was forked
   amid a record writes `committed`, too. */
static uint32_t buffer_committed(const struct region_buffer *head)
{
	uint32_t committed = LOAD_ACQUIRE(&head->committed);
	uint64_t handed_over = LOAD(&head->handed_over);
	return LOAD(&head->state) == BUFFER_FULL && handed_over >> 32 == LOAD(&head->sequence) && handed_over
		       ? (uint32_t)handed_over
		       : committed;
}

/* A full buffer had so many events: the others that the trace has are of the next one. */
static void behind_settle(struct stream *stream, uint32_t events)
{
	stream->behind_events = stream->written_events > events ? stream->written_events - events : 0;
}

void buffer_take(struct drain_region *region, struct stream *stream, uint32_t index, const struct ending *ending)
{
	assert(index < region->shared->buffer_ready);
	assert(!region->is_taken[index]);
	struct drain *drain = region->drain;
	const struct region_limits *limits = &region->shared->limits;
	struct region_buffer *head = region_buffer(region->shared, index);
	uint32_t sequence = LOAD(&head->sequence) & ~REGION_SIGNAL;
	uint32_t committed = buffer_committed(head), pending = ending ? ending->pending : 0;
	if (committed > limits->buffer_size)
		committed = limits->buffer_size;
	committed &= ~7u;
	if (pending > limits->buffer_size - committed || (pending & 7))
		pending = 0;
	if (stream_knows(region, stream, sequence)) {
		buffer_release(region, index);
		return;
	}
	/* The target's bytes are read only once. */
	memcpy(drain->copy, region_buffer_bytes(region->shared, index), committed + pending);
	struct decode decode = copy_decode(region, stream, index, committed, sequence);
	stream_decode(region, stream, &decode, sequence);
	behind_settle(stream, decode.event_count);
	if (decode.damage)
		damage_note(region, stream, &decode, (uint64_t)(decode.end - decode.at));
	if (ending) {
		struct ending checked = *ending;
		checked.pending = pending;
		pending_take(region, stream, &decode, &checked);
	}
	stream_complete(region, stream, sequence, index);
}

/* Take what the thread has committed to the buffer that it is filling. The thread only adds, and the buffer stays its
   own until the full buffer is taken. */
static void open_take(struct drain_region *region, struct stream *stream, uint32_t slot, uint32_t index,
		      uint64_t until_ticks, enum open_when when)
{
	struct drain *drain = region->drain;
	if (index >= region->shared->buffer_ready || region->is_taken[index])
		return;
	struct region_buffer *head = region_buffer(region->shared, index);
	uint32_t sequence = LOAD_ACQUIRE(&head->sequence) & ~REGION_SIGNAL,
		 committed = LOAD_ACQUIRE(&head->committed) & ~7u;
	if (LOAD_ACQUIRE(&head->state) != BUFFER_OWNED || LOAD(&head->slot) != slot ||
	    (LOAD(&head->sequence) & REGION_SIGNAL) != (stream->key & REGION_SIGNAL) ||
	    (stream->has_sequence && sequence != ((stream->sequence + 1) & ~REGION_SIGNAL)) ||
	    (!stream->has_sequence && when == OPEN_BESIDE_FULL && sequence != 1) ||
	    committed > region->shared->limits.buffer_size ||
	    (stream->open_sequence == sequence && stream->open_committed == committed))
		return;
	memcpy(drain->copy, region_buffer_bytes(region->shared, index), committed);
	struct decode decode = copy_decode(region, stream, index, committed, sequence);
	/* Damage is reported when the buffer is full. */
	stream_decode(region, stream, &decode, sequence);
	struct writer_events *events = stream->events;
	struct stack_ends ends = {0};
	uint32_t later = 0;
	/* Those before this buffer's own are of one that is full: they will not be taken again. */
	for (; events && events->count && events->time[events->count - 1] > until_ticks &&
	       decode.event_count > stream->written_events + later;
	     later++) {
		uint32_t last = --events->count;
		trace_count_end(&ends, events->flags[last],
				(uint8_t)writer_stack_end(drain->writer, events->stack[last]), -1);
	}
	/* The later events will be taken again. */
	owner_count(region, stream, -(int64_t)later, &ends);
	uint32_t taken = decode.event_count - later;
	if (events && events->count > 0)
		stream_write(region, stream, sequence, taken);
	/* This includes events of threads that had the slot before, which are already written. */
	if (taken > stream->written_events) {
		stream->behind_events = 0;
		stream->open_index = index;
		stream->open_taken =
			region->error && !writer_has_ended(drain->writer) ? 0 : (uint64_t)sequence << 32 | taken;
		region->has_new_parts = true;
	}
	stream->open_sequence = sequence;
	stream->open_committed = later ? 0 : committed;
}

/* Threads are checked one after the other. All are taken up to one moment, after everything in full buffers. Otherwise
   a thread could be seen to free what another one, checked before, had not allocated yet. */
void open_take_all(struct drain_region *region, enum open_when when)
{
	uint64_t until_ticks = ticks_now(region->shared);
	for (uint32_t i = 0; i < region->slot_count; i++) {
		const struct region_slot *slot = region_slot(region->shared, i);
		if (LOAD_ACQUIRE(&slot->state) != SLOT_LIVE)
			continue;
		open_take(region, &region->stream[0][i], i, LOAD(&slot->buffer), until_ticks, when);
		open_take(region, &region->stream[1][i], i, LOAD(&slot->signal_buffer), until_ticks, when);
	}
}

/* ---- added slots ---- */

static void slot_begin(struct drain_region *region, uint32_t index)
{
	assert(index < region->shared->slot_ready);
	const struct region_slot *slot = region_slot(region->shared, index);
	struct gap *gap = &region->gap[index];
	*gap = (struct gap){.is_new = false};
	for (uint32_t side = 0; side < 2; side++) {
		struct stream *stream = &region->stream[side][index];
		*stream = (struct stream){
			.key = index | (side ? REGION_SIGNAL : 0), .completed_first = 1, .held = REGION_NONE};
		/* The first buffer of a slot has number 1. A trace that drops its past does not say what it had. */
		if (region->known)
			stream->sequence = writer_last_sequence(region->drain->writer, region->shared->id, stream->key);
		stream->has_sequence = stream->sequence != UINT32_MAX;
		if (region->known)
			stream->behind_events =
				writer_events_behind(region->drain->writer, region->shared->id, stream->key);
	}
	if (!region->known)
		return;
	memcpy(gap->count, slot->taken_count, sizeof(gap->count));
	memcpy(gap->bytes, slot->taken_bytes, sizeof(gap->bytes));
	gap->stacks = slot->taken_stacks;
}

/* Make as many streams as there are slots. */
void slots_follow(struct drain_region *region)
{
	uint32_t count = region->shared->slot_ready;
	if (count <= region->slot_count)
		return;
	for (int side = 0; side < 2; side++)
		region->stream[side] = memory_resize(region->stream[side], count, sizeof(*region->stream[side]));
	region->gap = memory_resize(region->gap, count, sizeof(*region->gap));
	while (region->slot_count < count)
		slot_begin(region, region->slot_count++);
}

/* ---- finding full buffers ---- */

COMPARE_BY_TWO(full_compare, struct full, key, sequence)

static uint32_t full_find(struct drain_region *region)
{
	uint32_t count = 0, in_use = 0, owned = 0;
	for (uint32_t i = 0; i < region->shared->buffer_ready; i++) {
		struct region_buffer *head = region_buffer(region->shared, i);
		/* Pairs with the recorder's release in stream_hand_over(): its records are visible. */
		uint32_t state = LOAD_ACQUIRE(&head->state);
		in_use += state != BUFFER_FREE && state != BUFFER_AWAY;
		owned += state == BUFFER_OWNED;
		if (state != BUFFER_FULL || region->is_taken[i])
			continue;
		uint32_t slot = LOAD(&head->slot), sequence = LOAD(&head->sequence);
		if (slot < region->slot_count) {
			region->full[count++] =
				(struct full){slot | (sequence & REGION_SIGNAL), sequence & ~REGION_SIGNAL, i, 0};
		} else if (slot >= region->shared->slot_ready) {
			/* No slot has this number: the buffer belongs to no thread. */
			region->drain->past.damaged_buffers++;
			buffer_release(region, i);
		}
	}
	region->in_use = in_use;
	assert(owned <= in_use && count <= region->shared->buffer_ready);
	region->owned = owned;
	if (region->shared->buffers_used < in_use)
		region->shared->buffers_used = in_use;
	qsort(region->full, count, sizeof(struct full), full_compare);
	return count;
}

/* Return whether the next buffers of each stream follow without a hole. */
static bool full_is_whole(const struct drain_region *region, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct full *full = &region->full[i];
		const struct stream *stream = stream_by_key(region, full->key);
		bool is_first = i == 0 || region->full[i - 1].key != full->key;
		if (is_first ? stream->has_sequence && full->sequence != stream->sequence + 1
			     : full->sequence != region->full[i - 1].sequence + 1)
			return false;
	}
	return true;
}

static int time_compare(const void *a, const void *b)
{
	const struct full *left = a, *right = b;
	return left->ticks != right->ticks ? (left->ticks < right->ticks ? -1 : 1) : full_compare(a, b);
}

/* Sort by the time at which the buffers were begun, which keeps the order of sequence numbers within a stream. */
static void full_order(struct drain_region *region, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct full *full = &region->full[i];
		uint64_t before = i && full[-1].key == full->key ? full[-1].ticks : 0;
		full->ticks = record_get_begin(region_buffer_bytes(region->shared, full->index)).ticks;
		full->ticks = full->ticks < before ? before : full->ticks;
	}
	qsort(region->full, count, sizeof(struct full), time_compare);
}

/* A file that becomes full shall have the events of all threads up to about the same moment. So, each time its room has
   halved, the events in columns and in open buffers are written, including those of threads that call rarely. */
static void open_take_in_time(struct drain *drain)
{
	uint64_t room = writer_room_left(drain->writer);
	if (room == UINT64_MAX || room > drain->room_seen / 2 || writer_has_ended(drain->writer))
		return;
	drain->room_seen = room;
	for (struct drain_region *region = drain->regions; region; region = region->next) {
		if (region->known)
			continue;
		translate_refresh(&region->translate);
		slots_follow(region);
		open_take_all(region, OPEN_BESIDE_FULL);
		streams_write(region);
	}
}

bool full_take(struct drain_region *region)
{
	slots_follow(region);
	uint32_t count = full_find(region);
	/* A buffer can become full after its place was passed, and its successor before: a second search finds both. */
	if (!full_is_whole(region, count))
		count = full_find(region);
	if (writer_room_left(region->drain->writer) != UINT64_MAX)
		full_order(region, count);
	for (uint32_t i = 0; i < count; i++) {
		open_take_in_time(region->drain);
		buffer_take(region, stream_by_key(region, region->full[i].key), region->full[i].index, NULL);
		streams_bound(region->drain);
		/* The target may be waiting for these buffers. */
		if (region->written != REGION_NONE)
			drain_settle(region);
		if (region->drain->busy)
			region->drain->busy(region->drain->busy_cookie);
	}
	return count > 0;
}
