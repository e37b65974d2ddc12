/* SPDX-License-Identifier: MIT */
/*
 * Buffers become blocks. Each slot of a region has two streams of buffers, its own and that of its signal handlers' calls; a stream's
 * buffers are taken in the order of their sequence numbers:
 *
 *     FULL buffer -> private copy -> records -> columns of the stream -> block in the trace -> flushed -> FREE buffer
 *
 * A buffer is given back only when its events can be read from the file, and each block tells which buffers it completes: whatever
 * moment the logger dies at, the file and the region together hold every event, and none twice. A buffer that several threads
 * filled (a slot is passed on with its buffer) is spread over blocks, each telling how far into the buffer it reaches. So is one that is
 * being filled when all is flushed.
 */
#include "session/drain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/memory.h"
#include "os/clock.h"
#include "os/proc.h"
#include "region/atomic.h"
#include "region/record.h"
#include "session/pace.h"
#include "session/record_decode.h"
#include "session/translate.h"

enum {
	BLOCK_EVENTS = 16 * 1024,     /* a block is written when it has so many: its columns stay in the second-level cache */
	BLOCK_EVENTS_MAX = 65536,
	COLUMN_EVENTS_MAX = 1 << 21,  /* that all columns together have room for; then what waits in them is written */
	SLACK_TICKS = 1 << 24,        /* clocks of two processors differ by less */
	DAMAGE_NOTES_MAX = 16,
	NOTES_MAX = 1000,             /* each segment of the trace repeats them */
	NOTE_KINDS = 16,
	GAP_TRIES = 100,
	NAME_BYTES = 32
};

#define SIGNAL_MARK " (signal)"

/* Who fills a stream at the moment: a row of the trace's threads. */
struct owner {
	bool is_open;
	uint32_t id, serial, tid, process;
	uint64_t first, last;         /* ticks of its first record and of its last event, 0: none yet */
	uint64_t events;              /* of its own, whether written or not */
	struct stack_ends ends;       /* of the stacks of these */
	uint64_t waits_before, wait_ticks_before; /* of the slot when it came */
	struct pace pace;
	char name[NAME_BYTES];
};

struct stream {
	uint32_t key;                 /* slot, and REGION_SIDE */
	bool has_sequence;
	uint32_t sequence;            /* of the last buffer taken */
	uint32_t open_sequence, open_committed; /* of the buffer that is being filled: so much of it was taken */
	uint32_t open_index;          /* likewise */
	uint64_t open_taken;          /* likewise: what is to be noted in it when it can be read from the file; 0: nothing */
	uint32_t written_events;      /* while a buffer is taken: so many of its events are in the trace already */
	struct owner owner;
	struct writer_events *events; /* not written yet; NULL: none */
	struct stack_ends ends;       /* of the stacks of these */
	uint32_t completed_first, completed_last; /* buffers that these events complete; first > last: none */
	uint32_t held;                /* list of buffers whose events these are */
};

/* What a slot's gap was when we looked last. */
struct gap {
	uint64_t count[REGION_LOST_KINDS], bytes[REGION_LOST_KINDS], stacks, last_ticks;
	bool is_new;
};

struct full { uint32_t key, sequence, index; uint64_t ticks; };

struct drain_region {
	struct drain *drain;
	struct drain_region *next;
	struct region *region;
	struct translate translate;
	const struct drain_known *known;
	struct drain_known known_copy;
	uint32_t pid;
	bool is_lying;                /* it has counted what cannot be true */
	bool is_after;                /* recording has ended: what is lost was called after that */
	bool names_are_ours;          /* thread ids mean the same to us as to the target */
	uint64_t earliest;
	uint64_t event_count;         /* taken, whether written or not */
	struct pace pace;
	uint32_t slot_count;          /* of the two arrays */
	struct stream *stream[2];     /* by slot; [1] are the sides; they move when there are more slots */
	struct gap *gap;
	bool has_new_gaps;            /* of any slot: put into the trace, not yet marked so in the slot */
	bool has_new_parts;           /* of any stream: likewise of the buffer that is being filled */
	uint8_t *is_taken;            /* by buffer */
	uint32_t *next_held;          /* by buffer: the next of its list */
	uint32_t written;             /* list of buffers whose events wait for a flush of the file */
	struct full *full;
	uint32_t in_use, owned, held_count; /* buffers; owned: by threads that fill them */
	struct drain_totals own;      /* of these, what is in the drain's past already: events, lost, ends */
	bool is_cut_told, is_refusal_told; /* that a limit of what is kept was reached, for stacks and for rows */
	int error;                    /* not told yet */
	struct diag diag;
};

/* How many notes of a name the trace has. */
struct note_kind { const char *name; uint32_t count; };

struct drain {
	struct writer *writer;
	struct keep_limits limits;
	struct note_kind notes[NOTE_KINDS];
	void (*ready)(void *cookie);  /* called before events are written; NULL: nobody */
	void *ready_cookie;
	struct drain_region *regions;
	struct drain_totals past;     /* of regions that are gone, and of what is counted here */
	struct decode_memory *memory;
	uint32_t *nodes;
	uint8_t *copy;
	size_t copy_size;
	struct writer_events **spare; /* columns that no stream uses */
	uint32_t spare_count, spare_capacity;
	uint64_t column_events;       /* that these and those of all streams have room for */
	struct writer_events ignored; /* what recovery finds to be in the trace already */
	uint32_t damage_notes;
	uint64_t room_seen;           /* bytes that the file could still get when open buffers were taken for want of room */
};

static uint64_t ticks_now(const struct region *region)
{
	return clock_ticks_of(region->limits.clock == REGION_CLOCK_MONOTONIC_RAW);
}

/* ---- columns ---- */

static struct writer_events *columns_take(struct drain *drain)
{
	if (drain->spare_count == 0)
		return memory_zeroed(1, sizeof(struct writer_events));
	return drain->spare[--drain->spare_count];
}

static void columns_free(struct drain *drain, struct writer_events *events)
{
	drain->column_events -= events->capacity;
	writer_events_fini(events);
	free(events);
}

/* Without room for them, events that were taken would be lost. */
static void columns_reserve(struct drain *drain, struct writer_events *events, uint64_t more)
{
	uint32_t before = events->capacity;
	if (writer_events_reserve(events, (uint32_t)more))
		memory_exhausted(more);
	drain->column_events += events->capacity - before;
}

static void columns_give(struct drain *drain, struct writer_events *events)
{
	events->count = 0;
	if (!grow_by_one(drain->spare, drain->spare_count, drain->spare_capacity)) {
		columns_free(drain, events);
		return;
	}
	drain->spare[drain->spare_count++] = events;
}

/* ---- notes, and what is kept ---- */

void drain_limit(struct drain *drain, const struct keep_limits *limits)
{
	drain->limits = *limits;
}

bool drain_has_room(const struct drain *drain)
{
	return keep_has_room(&drain->limits, drain->writer);
}

/* name: one of a few that stay. */
static struct note_kind *note_kind(struct drain *drain, const char *name)
{
	struct note_kind *kind = drain->notes;
	while (kind < drain->notes + NOTE_KINDS - 1 && kind->name && strcmp(kind->name, name))
		kind++;
	kind->name = name;
	return kind;
}

void drain_add_note(struct drain *drain, const char *name, const char *text)
{
	struct note_kind *kind = note_kind(drain, name);
	if (kind->count < NOTES_MAX)
		writer_add_option(drain->writer, name, text);
	else if (kind->count == NOTES_MAX)
		writer_add_option(drain->writer, name, "and more of the kind, which are not named");
	kind->count += kind->count <= NOTES_MAX;
}

bool drain_is_limited(const struct drain_region *region)
{
	return region->translate.keep.has_cut_stacks || region->translate.keep.has_refused_rows;
}

bool drain_take_limit_note(struct drain_region *region, char *text, size_t size)
{
	const struct keep *keep = &region->translate.keep;
	bool is_cut = keep->has_cut_stacks && !region->is_cut_told, is_refused = keep->has_refused_rows && !region->is_refusal_told;
	if (!is_cut && !is_refused)
		return false;
	if (is_cut)
		snprintf(text, size, "process %u and those that it forked have more different stacks than can be kept (%llu nodes): those of later calls are cut",
			 region->pid, (unsigned long long)keep->nodes);
	else
		snprintf(text, size, "process %u and those that it forked have more threads, processes and heaps than can be kept (%llu): calls of further ones are "
			 "lost, or without a heap", region->pid, (unsigned long long)keep->rows);
	region->is_cut_told |= is_cut;
	region->is_refusal_told |= !is_cut;
	drain_add_note(region->drain, TRACE_OPTION_LIMITED, text);
	return true;
}

/* ---- threads ---- */

/* What the thread calls itself; "" when it is gone. */
static void comm_read(uint32_t pid, uint32_t tid, char *name, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", pid, tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, name, size - 1) : 0;
	if (fd >= 0)
		close(fd);
	name[length > 0 ? length : 0] = 0;
	name[strcspn(name, "\n")] = 0;
}

static void name_read(const struct drain_region *region, uint32_t process_pid, uint32_t tid, bool is_side, char name[NAME_BYTES])
{
	name[0] = 0;
	if (region->names_are_ours)
		comm_read(process_pid, tid, name, NAME_BYTES - sizeof(SIGNAL_MARK));
	if (is_side)
		strcat(name, SIGNAL_MARK);
}

static void owner_row(const struct owner *owner, bool has_ended, struct trace_thread *row)
{
	*row = (struct trace_thread){.process = owner->process, .tid = owner->tid, .start_ns = (int64_t)owner->first,
				     .end_ns = !has_ended ? INT64_MAX : (int64_t)(owner->last ? owner->last : owner->first), .name = owner->name};
}

/* The thread's row, when the logger before us has added it: the one that it took events of last. */
static uint32_t known_thread(const struct drain_region *region, const struct owner *owner, uint32_t key)
{
	const struct drain_known *known = region->known;
	uint64_t noted = region_slot(region->region, key & ~REGION_SIDE)->trace_thread[key >> 31];
	uint32_t id = (uint32_t)noted - 1;
	if (!known || noted >> 32 != owner->serial || id >= known->dictionary->thread_count)
		return TRACE_NONE;
	const struct trace_thread *row = &known->dictionary->threads[id];
	return row->process == owner->process && row->tid == owner->tid ? id : TRACE_NONE;
}

static uint32_t process_pid(const struct drain_region *region, uint32_t index)
{
	return index < REGION_PROCESS_MAX ? region->translate.process[index].row.pid : 0;
}

/* False: there are as many threads as may be. */
static bool owner_begin(struct drain_region *region, struct stream *stream, uint32_t process_index, uint32_t process, uint32_t serial,
			uint32_t tid, uint64_t ticks)
{
	struct owner *owner = &stream->owner;
	bool is_side = stream->key & REGION_SIDE;
	struct trace_thread row;
	const struct region_slot *slot = region_slot(region->region, stream->key & ~REGION_SIDE);
	*owner = (struct owner){.is_open = true, .serial = serial, .tid = tid, .process = process, .first = ticks, .waits_before = slot->waits,
				.wait_ticks_before = slot->wait_ticks};
	pace_begin(&owner->pace, ticks);
	owner->id = known_thread(region, owner, stream->key);
	if (owner->id == TRACE_NONE && !keep_add_row(&region->translate.keep)) {
		owner->is_open = false;
		return false;
	}
	if (owner->id == TRACE_NONE) {
		name_read(region, process_pid(region, process_index), tid, is_side, owner->name);
		owner_row(owner, false, &row);
		owner->id = writer_add_thread(region->drain->writer, &row);
	}
	region_slot(region->region, stream->key & ~REGION_SIDE)->trace_thread[is_side] = (uint64_t)serial << 32 | (owner->id + 1);
	return true;
}

static void owner_end(struct drain_region *region, struct stream *stream)
{
	struct owner *owner = &stream->owner;
	struct trace_thread row;
	if (!owner->is_open)
		return;
	owner->is_open = false;
	owner_row(owner, true, &row);
	/* Its first time is the logger's before us, which we do not know in ticks: leave the row as it is. */
	if (!region->known || owner->id >= region->known->dictionary->thread_count)
		writer_update_thread(region->drain->writer, owner->id, &row);
}

/* ---- buffers that are given back ---- */

static void buffer_release(struct drain_region *region, uint32_t index)
{
	region->is_taken[index] = 0;
	region->drain->past.buffers_written++;
	struct region_buffer *head = region_buffer(region->region, index);
	head->taken = 0;
	/* Whoever takes it next names its next use before it writes: until then nothing lies in it. */
	head->committed = 0;
	/* Pairs with the recorder's compare-and-swap: its bytes are ours no more. */
	STORE_RELEASE(&head->state, BUFFER_FREE);
	region_note_progress(region->region);
}

static void list_add(struct drain_region *region, uint32_t *list, uint32_t index)
{
	region->next_held[index] = *list;
	*list = index;
}

/* For a logger after us: these are in the trace. */
static void gap_settle(struct gap *gap, struct region_slot *slot)
{
	gap->is_new = false;
	memcpy(slot->taken_count, gap->count, sizeof(slot->taken_count));
	memcpy(slot->taken_bytes, gap->bytes, sizeof(slot->taken_bytes));
	slot->taken_stacks = gap->stacks;
}

/* Likewise: calls after the end are counted for good, and only they. What was lost before and found no room in the file is not. */
static void gap_settle_after(struct region_slot *slot, const struct trace_gap *row, const uint8_t kinds[REGION_LOST_KINDS])
{
	for (int i = 0; i < REGION_LOST_KINDS; i++) {
		slot->taken_count[i] += row->count[kinds[i]];
		slot->taken_bytes[i] += row->bytes[kinds[i]];
	}
	slot->taken_stacks += row->stacks;
}

/* Likewise. The trace says so, too, but where it drops what is old, that may be gone when the logger is. */
static void part_settle(const struct drain_region *region, struct stream *stream)
{
	struct region_buffer *head = region_buffer(region->region, stream->open_index);
	if (stream->open_taken && (head->sequence & ~REGION_SIDE) == stream->open_taken >> 32)
		head->taken = stream->open_taken;
	stream->open_taken = 0;
}

static void parts_settle(struct drain_region *region)
{
	for (uint32_t i = 0; region->has_new_parts && i < region->slot_count; i++)
		for (int side = 0; side < 2; side++)
			part_settle(region, &region->stream[side][i]);
	region->has_new_parts = false;
}

/* What was written can be read from the file when this returns: only then the region need not keep it. */
static void settle(struct drain_region *region)
{
	if (region->written == REGION_NONE && !region->has_new_gaps && !region->has_new_parts)
		return;
	struct diag *diag = &region->diag;
	int error = writer_flush(region->drain->writer, diag);
	if (error && !region->error)
		region->error = error;
	/* When the file has ended, what it does not have is counted. */
	if (!error || writer_has_ended(region->drain->writer))
		parts_settle(region);
	while (region->written != REGION_NONE) {
		uint32_t index = region->written;
		region->written = region->next_held[index];
		region->held_count--;
		buffer_release(region, index);
	}
	/* When the file has ended, its end has them, or whoever recovers the session finds them in the slots. */
	for (uint32_t i = 0; region->has_new_gaps && !writer_has_ended(region->drain->writer) && i < region->slot_count; i++)
		if (region->gap[i].is_new)
			gap_settle(&region->gap[i], region_slot(region->region, i));
	region->has_new_gaps = false;
}

/* ---- blocks ---- */

/* Events that are in the trace by their number only. */
static void missing_count(struct drain_region *region, uint64_t lost, uint64_t after)
{
	region->drain->past.lost += lost;
	region->own.lost += lost;
	region->drain->past.after += after;
	region->own.after += after;
}

/* Write what the stream has. A part says how far the trace then has the buffer that is being taken. */
static void stream_write(struct drain_region *region, struct stream *stream, uint32_t part_sequence, uint32_t part_events)
{
	struct drain *drain = region->drain;
	struct writer_events *events = stream->events;
	if (events && events->count > 0) {
		if (drain->ready)
			drain->ready(drain->ready_cookie);
		events->process = stream->owner.process;
		events->thread = stream->owner.id;
		events->region = region->region->id;
		events->slot = stream->key;
		events->first_sequence = stream->completed_first;
		events->last_sequence = stream->completed_last;
		events->part_sequence = part_sequence;
		events->part_events = part_events;
		uint64_t before = writer_event_count(drain->writer);
		int error = writer_write_events(drain->writer, events, &region->diag);
		uint64_t written = writer_event_count(drain->writer) - before, missing = events->count - written;
		if (error)
			region->error = region->error ? region->error : error;
		drain->past.events += written;
		region->own.events += written;
		missing_count(region, error && !writer_has_ended(drain->writer) ? missing : 0, error && writer_has_ended(drain->writer) ? missing : 0);
		/* Of a part that was written it is not known which stacks it has. */
		if (!error) {
			stack_ends_add(&drain->past.ends, &stream->ends);
			stack_ends_add(&region->own.ends, &stream->ends);
		}
	}
	stream->ends = (struct stack_ends){0};
	if (events)
		columns_give(drain, events);
	stream->events = NULL;
	stream->completed_first = 1;
	stream->completed_last = 0;
	while (stream->held != REGION_NONE) {
		uint32_t index = stream->held;
		stream->held = region->next_held[index];
		list_add(region, &region->written, index);
	}
}

static void write_all(struct drain_region *region)
{
	for (uint32_t i = 0; i < region->slot_count; i++)
		for (int side = 0; side < 2; side++)
			if (region->stream[side][i].events || region->stream[side][i].held != REGION_NONE)
				stream_write(region, &region->stream[side][i], 0, 0);
}

/* ---- taking a buffer ---- */

/* The last buffer of a stream, with the call that was under way in it. */
struct ending {
	uint32_t pending;             /* bytes behind the committed ones */
	uint32_t entry;               /* + 1; 0: none */
	uint64_t ticks, size;
};

static void damage_note(struct drain_region *region, const struct stream *stream, const struct decode *decode, uint64_t bytes)
{
	struct drain *drain = region->drain;
	uint64_t size = decode->event_count > 0 ? (uint64_t)(decode->at - drain->copy) / decode->event_count : DECODE_EVENT_BYTES_MIN;
	uint64_t events = bytes / (size < DECODE_EVENT_BYTES_MIN ? DECODE_EVENT_BYTES_MIN : size) + 1;
	drain->past.damaged_buffers++;
	drain->past.damaged_bytes += bytes;
	drain->past.lost += events;
	region->own.lost += events;
	bool is_open = stream->owner.is_open;
	struct trace_gap gap = {.process = is_open ? stream->owner.process : TRACE_NONE, .thread = is_open ? stream->owner.id : TRACE_NONE,
				.from_ns = (int64_t)(is_open ? stream->owner.last : region->earliest), .to_ns = (int64_t)ticks_now(region->region)};
	gap.count[EVENT_ALLOC] = events;
	writer_add_gap(drain->writer, &gap);
	if (drain->damage_notes++ < DAMAGE_NOTES_MAX) {
		char text[200];
		snprintf(text, sizeof(text), "process %u, thread %u: %s; %llu bytes, about %llu events lost", region->pid, stream->owner.tid,
			 decode->damage, (unsigned long long)bytes, (unsigned long long)events);
		drain_add_note(drain, "damaged-buffer", text);
	}
}

static void columns_ready(struct drain_region *region, struct stream *stream, uint64_t bytes)
{
	if (!stream->events)
		stream->events = columns_take(region->drain);
	columns_reserve(region->drain, stream->events, bytes / DECODE_EVENT_BYTES_MIN + 2);
}

/* The records that follow are of the thread that the last RECORD_BEGIN named. False: it finds no room in the trace. */
static bool stream_follow(struct drain_region *region, struct stream *stream, struct decode *decode, uint32_t sequence)
{
	struct owner *owner = &stream->owner;
	if (owner->is_open && owner->serial == decode->serial && owner->process == decode->process && owner->tid == decode->tid)
		return true;
	stream_write(region, stream, sequence, decode->event_count);
	owner_end(region, stream);
	if (owner_begin(region, stream, decode->process_index, decode->process, decode->serial, decode->tid, decode->ticks))
		return true;
	decode->damage = "more threads than can be kept";
	return false;
}

static void point_note(struct drain_region *region, struct stream *stream, uint32_t process_index, uint64_t ticks)
{
	stream->owner.last = ticks;
	if (process_index < REGION_PROCESS_MAX && region->translate.process[process_index].last_ticks < ticks)
		region->translate.process[process_index].last_ticks = ticks;
}

static void owner_count(struct drain_region *region, struct stream *stream, int64_t events, const struct stack_ends *ends)
{
	region->event_count += (uint64_t)events;
	stream->owner.events += (uint64_t)events;
	stack_ends_add(&stream->owner.ends, ends);
	stack_ends_add(&stream->ends, ends);
}

/* As stream_decode(), for stacks of which some may not be kept. */
static void stream_decode_all(struct drain_region *region, struct stream *stream, struct decode *decode, uint32_t sequence)
{
	for (;;) {
		bool is_known = decode->event_count < stream->written_events;
		if (!is_known && decode->is_begun && !stream_follow(region, stream, decode, sequence))
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
		uint32_t count = events->count, limit = is_known ? stream->written_events - decode->event_count : UINT32_MAX;
		decode->ends = (struct stack_ends){0};
		enum decode_result result = decode_run(decode, events, limit);
		if (!is_known)
			owner_count(region, stream, events->count - count, &decode->ends);
		if (!is_known && events->count > count)
			point_note(region, stream, decode->process_index, events->time[events->count - 1]);
		if (result == DECODE_END || result == DECODE_DAMAGED)
			return;
	}
}

/* Decode what lies between decode->at and decode->end. */
static void stream_decode(struct drain_region *region, struct stream *stream, struct decode *decode, uint32_t sequence)
{
	keep_begin_stacks(&region->translate.keep);
	stream_decode_all(region, stream, decode, sequence);
	keep_end_stacks(&region->translate.keep);
}

/* The Free that was under way when its process died: its record lies whole behind what was committed. */
static void pending_take(struct drain_region *region, struct stream *stream, struct decode *decode, const struct ending *ending)
{
	uint32_t count = stream->events ? stream->events->count : 0;
	if (!ending->entry || ending->pending == 0 || ending->ticks <= stream->owner.last || !decode->is_begun || decode->damage)
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
	/* What lies there may be older than the call: its time tells. */
	const struct writer_events *events = stream->events;
	if ((result == DECODE_END || result == DECODE_LIMIT) && events->count == count + 1 && events->time[count] == ending->ticks &&
	    events->entry[count] == region->translate.entry[(ending->entry - 1) & 0xff].id) {
		stream->events->flags[count] |= EVENT_IN_FLIGHT | EVENT_NO_DURATION;
		point_note(region, stream, decode->process_index, ending->ticks);
		stack_ends_add(&stream->ends, &decode->ends);
		region->drain->past.in_flight++;
	} else {
		stream->events->count = count;
	}
	decode->damage = NULL;
}

static void stream_complete(struct drain_region *region, struct stream *stream, uint32_t sequence, uint32_t index)
{
	if (stream->completed_first > stream->completed_last)
		stream->completed_first = sequence;
	stream->completed_last = sequence;
	stream->sequence = sequence;
	stream->has_sequence = true;
	list_add(region, &stream->held, index);
	region->is_taken[index] = 1;
	region->held_count++;
	if (stream->events && stream->events->count >= BLOCK_EVENTS)
		stream_write(region, stream, 0, 0);
}

static bool stream_knows(const struct drain_region *region, const struct stream *stream, uint32_t sequence)
{
	return region->known && stream->has_sequence && (int32_t)((sequence - stream->sequence) << 1) <= 0;
}

/* How many events of the buffer the trace has, also where it has dropped them since. */
static uint32_t events_taken(const struct drain_region *region, const struct stream *stream, uint32_t index, uint32_t sequence)
{
	uint32_t events = writer_last_part(region->drain->writer, region->region->id, stream->key, sequence);
	uint64_t taken = region->known ? region_buffer(region->region, index)->taken : 0;
	return taken >> 32 == sequence && (uint32_t)taken > events ? (uint32_t)taken : events;
}

/* What decodes the first bytes of a buffer that lie in drain->copy; the stream has room for their events, and knows which the trace has. */
static struct decode copy_decode(struct drain_region *region, struct stream *stream, uint32_t index, uint32_t bytes, uint32_t sequence)
{
	struct drain *drain = region->drain;
	stream->written_events = events_taken(region, stream, index, sequence);
	if (stream->events && stream->events->count + bytes / DECODE_EVENT_BYTES_MIN + 2 > BLOCK_EVENTS_MAX)
		stream_write(region, stream, 0, 0);
	return (struct decode){.translate = &region->translate, .memory = drain->memory, .nodes = drain->nodes, .at = drain->copy,
			       .end = drain->copy + bytes, .sequence = sequence, .earliest = region->earliest, .latest = ticks_now(region->region) + SLACK_TICKS};
}

/* How much of a buffer holds records. What its owner said when it handed it over counts: a child that was forked in the midst of a record writes, too. */
static uint32_t buffer_committed(const struct region_buffer *head)
{
	uint32_t committed = LOAD_ACQUIRE(&head->committed);
	uint64_t handed_over = LOAD(&head->handed_over);
	return LOAD(&head->state) == BUFFER_FULL && handed_over >> 32 == head->sequence && handed_over ? (uint32_t)handed_over : committed;
}

/* Take buffer `index`, which is the stream's and FULL, or OWNED by a thread that is no more (then `ending` tells of its last call). */
static void buffer_take(struct drain_region *region, struct stream *stream, uint32_t index, const struct ending *ending)
{
	struct drain *drain = region->drain;
	const struct region_limits *limits = &region->region->limits;
	struct region_buffer *head = region_buffer(region->region, index);
	uint32_t sequence = head->sequence & ~REGION_SIDE;
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
	/* Nothing of the target's is read twice. */
	memcpy(drain->copy, region_buffer_bytes(region->region, index), committed + pending);
	struct decode decode = copy_decode(region, stream, index, committed, sequence);
	stream_decode(region, stream, &decode, sequence);
	if (decode.damage)
		damage_note(region, stream, &decode, (uint64_t)(decode.end - decode.at));
	if (ending) {
		struct ending checked = *ending;
		checked.pending = pending;
		pending_take(region, stream, &decode, &checked);
	}
	stream_complete(region, stream, sequence, index);
}

/* Whether there may be full buffers that were not taken yet: of a slot's first buffer, 1, it is known that none is before it. */
enum open_when { OPEN_AFTER_FULL, OPEN_BESIDE_FULL };

/* What the thread has committed to the buffer that it is filling. It only ever adds, and the buffer stays its own until it was taken when full. */
static void open_take(struct drain_region *region, struct stream *stream, uint32_t slot, uint32_t index, uint64_t until_ticks, enum open_when when)
{
	struct drain *drain = region->drain;
	if (index >= region->region->buffer_ready || region->is_taken[index])
		return;
	struct region_buffer *head = region_buffer(region->region, index);
	uint32_t sequence = LOAD_ACQUIRE(&head->sequence) & ~REGION_SIDE, committed = LOAD_ACQUIRE(&head->committed) & ~7u;
	if (LOAD_ACQUIRE(&head->state) != BUFFER_OWNED || head->slot != slot || (head->sequence & REGION_SIDE) != (stream->key & REGION_SIDE) ||
	    (stream->has_sequence && sequence != ((stream->sequence + 1) & ~REGION_SIDE)) ||
	    (!stream->has_sequence && when == OPEN_BESIDE_FULL && sequence != 1) || committed > region->region->limits.buffer_size ||
	    (stream->open_sequence == sequence && stream->open_committed == committed))
		return;
	memcpy(drain->copy, region_buffer_bytes(region->region, index), committed);
	struct decode decode = copy_decode(region, stream, index, committed, sequence);
	/* What makes no sense is told of when the buffer is full. */
	stream_decode(region, stream, &decode, sequence);
	struct writer_events *events = stream->events;
	struct stack_ends ends = {0};
	uint32_t later = 0;
	for (; events && events->count && events->time[events->count - 1] > until_ticks; later++) {
		uint32_t last = --events->count;
		trace_count_end(&ends, events->flags[last], (uint8_t)writer_stack_end(drain->writer, events->stack[last]), -1);
	}
	/* Those will be taken again. */
	owner_count(region, stream, -(int64_t)later, &ends);
	uint32_t taken = decode.event_count - later;
	if (events && events->count > 0)
		stream_write(region, stream, sequence, taken);
	/* Also those of threads that had the slot before, which are written by now. */
	if (taken > stream->written_events) {
		stream->open_index = index;
		stream->open_taken = region->error && !writer_has_ended(drain->writer) ? 0 : (uint64_t)sequence << 32 | taken;
		region->has_new_parts = true;
	}
	stream->open_sequence = sequence;
	stream->open_committed = later ? 0 : committed;
}

/*
 * Threads are looked at one after the other. So that none is seen freeing what another, looked at before, had not allocated yet, all are
 * taken up to one moment, which lies behind what full buffers had.
 */
static void open_take_all(struct drain_region *region, enum open_when when)
{
	uint64_t until_ticks = ticks_now(region->region);
	for (uint32_t i = 0; i < region->slot_count; i++) {
		const struct region_slot *slot = region_slot(region->region, i);
		if (LOAD_ACQUIRE(&slot->state) != SLOT_LIVE)
			continue;
		open_take(region, &region->stream[0][i], i, slot->buffer, until_ticks, when);
		open_take(region, &region->stream[1][i], i, slot->side_buffer, until_ticks, when);
	}
}

/* ---- slots that were added ---- */

static void slot_begin(struct drain_region *region, uint32_t index)
{
	const struct region_slot *slot = region_slot(region->region, index);
	struct gap *gap = &region->gap[index];
	*gap = (struct gap){.is_new = false};
	for (uint32_t side = 0; side < 2; side++) {
		struct stream *stream = &region->stream[side][index];
		*stream = (struct stream){.key = index | (side ? REGION_SIDE : 0), .completed_first = 1, .held = REGION_NONE};
		/* The first buffer of a slot has number 1. What a trace that drops its past had before, nobody knows. */
		if (region->known)
			stream->sequence = writer_last_sequence(region->drain->writer, region->region->id, stream->key);
		stream->has_sequence = stream->sequence != UINT32_MAX;
	}
	if (!region->known)
		return;
	memcpy(gap->count, slot->taken_count, sizeof(gap->count));
	memcpy(gap->bytes, slot->taken_bytes, sizeof(gap->bytes));
	gap->stacks = slot->taken_stacks;
}

/* As many streams as there are slots. */
static void slots_follow(struct drain_region *region)
{
	uint32_t count = region->region->slot_ready;
	if (count <= region->slot_count)
		return;
	for (int side = 0; side < 2; side++)
		region->stream[side] = memory_resize(region->stream[side], count, sizeof(*region->stream[side]));
	region->gap = memory_resize(region->gap, count, sizeof(*region->gap));
	while (region->slot_count < count)
		slot_begin(region, region->slot_count++);
}

/* ---- finding full buffers ---- */

static int full_compare(const void *a, const void *b)
{
	const struct full *left = a, *right = b;
	if (left->key != right->key)
		return left->key < right->key ? -1 : 1;
	return left->sequence < right->sequence ? -1 : left->sequence > right->sequence;
}

static struct stream *stream_of(const struct drain_region *region, uint32_t key)
{
	return &region->stream[key >> 31][key & ~REGION_SIDE];
}

static uint32_t full_find(struct drain_region *region)
{
	uint32_t count = 0, in_use = 0, owned = 0;
	for (uint32_t i = 0; i < region->region->buffer_ready; i++) {
		struct region_buffer *head = region_buffer(region->region, i);
		/* Pairs with the recorder's release: what it wrote before is visible. */
		uint32_t state = LOAD_ACQUIRE(&head->state);
		in_use += state != BUFFER_FREE && state != BUFFER_AWAY;
		owned += state == BUFFER_OWNED;
		if (state != BUFFER_FULL || region->is_taken[i])
			continue;
		uint32_t slot = head->slot, sequence = head->sequence;
		if (slot < region->slot_count) {
			region->full[count++] = (struct full){slot | (sequence & REGION_SIDE), sequence & ~REGION_SIDE, i, 0};
		} else if (slot >= region->region->slot_ready) {
			/* Nobody's: there is no such slot. */
			region->drain->past.damaged_buffers++;
			buffer_release(region, i);
		}
	}
	region->in_use = in_use;
	region->owned = owned;
	if (region->region->buffers_used < in_use)
		region->region->buffers_used = in_use;
	qsort(region->full, count, sizeof(struct full), full_compare);
	return count;
}

/* Whether each stream's next buffers are there without a hole. */
static bool full_is_whole(const struct drain_region *region, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct full *full = &region->full[i];
		const struct stream *stream = stream_of(region, full->key);
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

/* In the order in which they were begun, which within a stream stays that of the sequence numbers. */
static void full_order(struct drain_region *region, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct full *full = &region->full[i];
		uint64_t before = i && full[-1].key == full->key ? full[-1].ticks : 0;
		full->ticks = record_get_begin(region_buffer_bytes(region->region, full->index)).ticks;
		full->ticks = full->ticks < before ? before : full->ticks;
	}
	qsort(region->full, count, sizeof(struct full), time_compare);
}

/*
 * A file that becomes full is to have of all threads what they did up to one moment, more or less. So, each time that the room has become half of what
 * it was, what waits in columns and in buffers that are being filled is written, of those too who seldom call.
 */
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
		write_all(region);
	}
}

/* Thousands of threads that call by turns would have columns of their own, each with room for a block. */
static void columns_bound(struct drain *drain)
{
	if (drain->column_events <= COLUMN_EVENTS_MAX)
		return;
	for (struct drain_region *region = drain->regions; region; region = region->next)
		write_all(region);
	while (drain->spare_count > 0 && drain->column_events > COLUMN_EVENTS_MAX / 2)
		columns_free(drain, drain->spare[--drain->spare_count]);
}

uint64_t drain_memory_limit_bytes(const struct drain *drain)
{
	enum { EVENT_BYTES = 80, OTHER_BYTES = 64 << 20, NODE_BYTES = 256 };
	uint64_t bytes = OTHER_BYTES + (uint64_t)(COLUMN_EVENTS_MAX + BLOCK_EVENTS_MAX) * EVENT_BYTES + (uint64_t)writer_node_count(drain->writer) * NODE_BYTES;
	for (const struct drain_region *region = drain->regions; region; region = region->next)
		bytes += region->region->bytes;
	return bytes;
}

static bool full_take(struct drain_region *region)
{
	slots_follow(region);
	uint32_t count = full_find(region);
	/* A buffer can become full behind our back, and its successor before our eyes: looking again finds both. */
	if (!full_is_whole(region, count))
		count = full_find(region);
	if (writer_room_left(region->drain->writer) != UINT64_MAX)
		full_order(region, count);
	for (uint32_t i = 0; i < count; i++) {
		open_take_in_time(region->drain);
		buffer_take(region, stream_of(region, region->full[i].key), region->full[i].index, NULL);
		columns_bound(region->drain);
		/* The target may be waiting for them. */
		if (region->written != REGION_NONE)
			settle(region);
	}
	return count > 0;
}

/* ---- what cannot be checked ---- */

/* What recorders count is their word alone. No thread has made more calls, or waited longer, than there were ticks since its image began; that much is
 * believed, and more is left out of all sums. */
static bool is_believable(const struct drain_region *region, uint64_t count)
{
	uint64_t now = ticks_now(region->region);
	return now > region->earliest && count <= now - region->earliest;
}

/* The same of all threads together, of which no more run at once than there are processors. */
static bool are_believable(const struct drain_region *region, uint64_t count)
{
	long processors = sysconf(_SC_NPROCESSORS_CONF);
	return is_believable(region, count / (uint64_t)(processors > 0 ? processors : 1));
}

static bool slot_is_believable(const struct drain_region *region, const struct region_slot *slot)
{
	return is_believable(region, slot->waits) && is_believable(region, slot->wait_ticks) && is_believable(region, slot->suppressed);
}

static bool header_is_believable(const struct drain_region *region)
{
	const struct region_header *header = region->region->header;
	return are_believable(region, header->sample_unwatched) && are_believable(region, header->heaps_refused) &&
	       are_believable(region, header->check_failures) && are_believable(region, header->untraced_calls);
}

static void lies_tell(struct drain_region *region)
{
	char text[200];
	for (uint32_t i = 0; i < region->slot_count && !region->is_lying; i++)
		region->is_lying = !slot_is_believable(region, region_slot(region->region, i));
	if (!region->is_lying && header_is_believable(region))
		return;
	snprintf(text, sizeof(text), "process %u and those that it forked: they say of themselves what cannot be true, and it is left out: losses, waits or calls "
		 "without a record", region->pid);
	drain_add_note(region->drain, TRACE_OPTION_DAMAGED, text);
}

/* ---- gaps ---- */

static void gap_read(struct region_slot *slot, struct gap *gap, uint64_t *first_ticks)
{
	for (int i = 0; i < GAP_TRIES; i++) {
		uint32_t before = LOAD_ACQUIRE(&slot->gap_sequence);
		memcpy(gap->count, slot->gap_count, sizeof(gap->count));
		memcpy(gap->bytes, slot->gap_bytes, sizeof(gap->bytes));
		gap->stacks = slot->gap_stacks;
		gap->last_ticks = slot->gap_last_ticks;
		*first_ticks = slot->gap_first_ticks;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(before & 1) && before == LOAD(&slot->gap_sequence))
			return;
	}
	/* Its writer died in the middle: what is there is as good as it gets. */
}

static struct owner *slot_owner(struct drain_region *region, uint32_t index);

/* Whether the logger before us has put it into the trace, and was killed before it could note that in the slot. */
static bool gap_is_told(const struct drain_region *region, const struct trace_gap *row)
{
	const struct drain_known *known = region->known;
	int64_t to_ns = known ? translate_ticks_ns(&known->clock, (uint64_t)row->to_ns) : 0;
	for (uint32_t i = 0; known && i < known->dictionary->gap_count; i++) {
		const struct trace_gap *told = &known->dictionary->gaps[i];
		if (told->thread == row->thread && told->to_ns == to_ns && told->stacks == row->stacks &&
		    !memcmp(told->count, row->count, sizeof(row->count)) && !memcmp(told->bytes, row->bytes, sizeof(row->bytes)))
			return true;
	}
	return false;
}

static bool gap_is_believable(const struct drain_region *region, const struct trace_gap *row, uint64_t lost)
{
	bool is_right = is_believable(region, lost) && is_believable(region, row->stacks);
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		is_right = is_right && is_believable(region, row->count[kind]);
	return is_right;
}

/* Put into the trace what the slot has lost since. */
static void gap_take(struct drain_region *region, uint32_t index)
{
	static const uint8_t kinds[REGION_LOST_KINDS] = {[LOST_ALLOC] = EVENT_ALLOC, [LOST_REALLOC] = EVENT_REALLOC, [LOST_FREE] = EVENT_FREE};
	struct region_slot *slot = region_slot(region->region, index);
	struct gap *seen = &region->gap[index], now = {0};
	uint64_t first_ticks, lost = 0;
	gap_read(slot, &now, &first_ticks);
	struct trace_gap row = {.stacks = now.stacks - seen->stacks};
	for (int i = 0; i < REGION_LOST_KINDS; i++) {
		row.count[kinds[i]] = now.count[i] - seen->count[i];
		row.bytes[kinds[i]] = now.bytes[i] - seen->bytes[i];
		lost += row.count[kinds[i]];
	}
	if (lost == 0 && row.stacks == 0)
		return;
	const struct owner *owner = slot_owner(region, index);
	if (!owner)
		return;
	if (!gap_is_believable(region, &row, lost)) {
		*seen = now;
		region->is_lying = true;
		return;
	}
	row.process = owner->process;
	row.thread = owner->id;
	row.from_ns = (int64_t)(first_ticks > seen->last_ticks ? first_ticks : seen->last_ticks);
	row.to_ns = (int64_t)now.last_ticks;
	/* Only what recorders write can be in the future or before the beginning; keep the trace's times sane. */
	int64_t earliest = (int64_t)region->earliest, latest = (int64_t)ticks_now(region->region);
	row.from_ns = row.from_ns < earliest || row.from_ns > latest ? earliest : row.from_ns;
	row.to_ns = row.to_ns < row.from_ns || row.to_ns > latest ? latest : row.to_ns;
	if (region->is_after) {
		writer_count_after(region->drain->writer, row.process, lost, (uint64_t)row.from_ns);
		missing_count(region, 0, lost);
		gap_settle_after(slot, &row, kinds);
	} else if (!gap_is_told(region, &row)) {
		writer_add_gap(region->drain->writer, &row);
		missing_count(region, lost, 0);
	}
	*seen = now;
	seen->is_new = !region->is_after;
	region->has_new_gaps |= seen->is_new;
	/* The next gap begins anew. The owner may be writing it this moment; then that gap begins a little too early. */
	STORE(&slot->gap_first_ticks, 0);
}

static void gaps_take(struct drain_region *region)
{
	for (uint32_t i = 0; i < region->slot_count; i++)
		gap_take(region, i);
}

void drain_note_end(struct drain_region *region)
{
	if (!region->is_after)
		gaps_take(region);
	region->is_after = true;
}

/* ---- slots ---- */

/* The thread that a slot is, as the trace knows it; NULL when the slot makes no sense. */
static struct owner *slot_owner(struct drain_region *region, uint32_t index)
{
	const struct region_slot *slot = region_slot(region->region, index);
	struct stream *stream = &region->stream[0][index];
	uint32_t serial = slot->serial, tid = slot->tid, process_index = slot->process;
	uint32_t process = translate_process_id(&region->translate, process_index);
	if (stream->owner.is_open && (process == TRACE_NONE || (stream->owner.serial == serial && stream->owner.process == process)))
		return &stream->owner;
	if (process == TRACE_NONE)
		return NULL;
	stream_write(region, stream, 0, 0);
	owner_end(region, stream);
	uint64_t ticks = LOAD(&slot->call_ticks), now = ticks_now(region->region);
	bool is_kept = owner_begin(region, stream, process_index, process, serial, tid, ticks < region->earliest || ticks > now ? now : ticks);
	return is_kept ? &stream->owner : NULL;
}

/* An Alloc or ReAlloc that was under way when its process died, of which no record was written yet. */
static void call_take(struct drain_region *region, uint32_t index, const struct ending *ending)
{
	struct translate *translate = &region->translate;
	uint32_t entry = (ending->entry - 1) & 0xff;
	struct stream *stream = &region->stream[0][index];
	if (!ending->entry || (!translate->entry[entry].is_known && !translate_entry_slowly(translate, entry)))
		return;
	const struct translate_entry *known = &translate->entry[entry];
	const struct owner *owner = slot_owner(region, index);
	/* The last event's point lies behind the call's beginning: it is that call's. A Free without a record is in a gap. */
	if (!owner || known->kind == EVENT_FREE || ending->ticks < region->earliest || ending->ticks > ticks_now(region->region) ||
	    ending->ticks <= owner->last)
		return;
	columns_ready(region, stream, DECODE_EVENT_BYTES_MIN);
	struct writer_events *events = stream->events;
	uint32_t i = events->count++;
	events->kind[i] = known->kind;
	events->flags[i] = EVENT_IN_FLIGHT | EVENT_NO_STACK | EVENT_NO_DURATION;
	events->entry[i] = known->id;
	events->heap[i] = TRACE_NONE;
	events->stack[i] = 0;
	events->time[i] = ending->ticks;
	events->size[i] = ending->size;
	events->duration[i] = events->address[i] = events->previous[i] = events->usable[i] = 0;
	events->argument[i] = events->argument2[i] = 0;
	events->result[i] = 0;
	point_note(region, stream, region_slot(region->region, index)->process, ending->ticks);
	region->drain->past.in_flight++;
}

/* The buffer that a thread that is no more was filling. */
static void slot_take_buffer(struct drain_region *region, uint32_t slot_index, uint32_t buffer, uint32_t side, const struct ending *ending)
{
	if (buffer >= region->region->buffer_ready || region->is_taken[buffer])
		return;
	struct region_buffer *head = region_buffer(region->region, buffer);
	/* A buffer that the slot has not taken hold of wholly is empty, or is another's by now. */
	if (LOAD_ACQUIRE(&head->state) != BUFFER_OWNED || head->slot != slot_index || (head->sequence & REGION_SIDE) != side)
		return;
	struct stream *stream = stream_of(region, slot_index | side);
	if (stream->has_sequence && !region->known && (head->sequence & ~REGION_SIDE) == stream->sequence)
		return;
	buffer_take(region, stream, buffer, ending);
}

/* Everything that a slot holds; its thread is gone (is_dead), or let go. Full buffers have been taken. */
static void slot_finish(struct drain_region *region, uint32_t index, bool is_dead)
{
	struct region_slot *slot = region_slot(region->region, index);
	struct ending ending = {.pending = slot->pending, .entry = slot->call_entry & 0xff, .ticks = slot->call_ticks, .size = slot->call_size};
	uint64_t in_flight = region->drain->past.in_flight;
	if (!is_dead)
		ending = (struct ending){0};
	slot_take_buffer(region, index, slot->buffer, 0, &ending);
	slot_take_buffer(region, index, slot->side_buffer, REGION_SIDE, NULL);
	if (region->drain->past.in_flight == in_flight)
		call_take(region, index, &ending);
	gap_take(region, index);
	for (int side = 0; side < 2; side++) {
		stream_write(region, &region->stream[side][index], 0, 0);
		owner_end(region, &region->stream[side][index]);
	}
	slot->buffer = slot->side_buffer = REGION_NONE;
	slot->pending = 0;
	/* Who reads the heaps meanwhile asks whether a call is under way. */
	STORE(&slot->call_entry, 0);
	/* Pairs with the recorder's compare-and-swap. */
	STORE_RELEASE(&slot->state, SLOT_FREE);
	region_note_slots(region->region);
}

void drain_end_tid(struct drain_region *region, uint32_t slot_index, uint32_t tid)
{
	if (slot_index >= region->slot_count)
		return;
	struct region_slot *slot = region_slot(region->region, slot_index);
	/* A new thread on the old one's stack may take the slot over as it is; whoever is first has it. */
	if (!swap_if(&slot->state, SLOT_LIVE, SLOT_RETIRED))
		return;
	if (slot->tid != tid) {
		STORE_RELEASE(&slot->state, SLOT_LIVE);
		return;
	}
	full_take(region);
	slot_finish(region, slot_index, true);
	settle(region);
}

void drain_end_thread(struct drain_region *region, uint32_t slot)
{
	if (slot < region->slot_count)
		drain_end_tid(region, slot, region_slot(region->region, slot)->tid);
}

static void finish_slots(struct drain_region *region, uint32_t process, bool is_dead, bool is_all)
{
	for (uint32_t i = 0; i < region->slot_count; i++) {
		struct region_slot *slot = region_slot(region->region, i);
		uint32_t state = LOAD_ACQUIRE(&slot->state);
		if (is_all ? state != SLOT_FREE : slot->process == process && (state == SLOT_LIVE || state == SLOT_RETIRED))
			slot_finish(region, i, is_dead);
	}
}

void drain_end_process(struct drain_region *region, uint32_t index, uint8_t end, int32_t status, uint64_t ticks)
{
	translate_refresh(&region->translate);
	full_take(region);
	finish_slots(region, index, end != TRACE_END_OPEN && end != TRACE_END_DETACHED, false);
	translate_end_process(&region->translate, index, end, status, ticks);
	settle(region);
}

/* ---- what was there before ---- */

/* entry: no function of them is known, but an event has to name one. */
static void earlier_fill(struct writer_events *events, const struct heapwalk *walk, size_t first, uint32_t count, const uint32_t *heaps, uint16_t entry)
{
	const struct heapwalk_block *blocks = walk->blocks + first;
	for (uint32_t i = 0; i < count; i++) {
		events->kind[i] = EVENT_EARLIER;
		events->flags[i] = EVENT_NO_STACK;
		events->entry[i] = entry;
		events->heap[i] = heaps[blocks[i].heap];
		events->stack[i] = 0;
		events->time[i] = walk->ticks;
		events->duration[i] = walk->ticks - walk->begin_ticks;
		events->address[i] = blocks[i].address;
		events->size[i] = events->usable[i] = blocks[i].usable_bytes;
		events->previous[i] = events->argument[i] = events->argument2[i] = 0;
		events->result[i] = 0;
	}
	events->count = count;
}

static int earlier_write(struct drain_region *region, const struct heapwalk *walk, uint32_t thread, const uint32_t *heaps)
{
	struct writer_events *events = columns_take(region->drain);
	int error = 0;
	columns_reserve(region->drain, events, BLOCK_EVENTS_MAX);
	for (size_t done = 0; done < walk->count && !error; done += events->count) {
		size_t some = walk->count - done < BLOCK_EVENTS_MAX ? walk->count - done : BLOCK_EVENTS_MAX;
		earlier_fill(events, walk, done, (uint32_t)some, heaps, region->translate.entry[0].id);
		events->process = drain_process(region, 0);
		events->thread = thread;
		events->region = region->region->id;
		events->slot = REGION_NONE;
		events->first_sequence = 1;
		events->last_sequence = events->part_sequence = events->part_events = 0;
		error = writer_write_events(region->drain->writer, events, &region->diag);
		region->drain->past.events += error ? 0 : events->count;
		region->own.events += error ? 0 : events->count;
	}
	columns_give(region->drain, events);
	return error;
}

void drain_earlier(struct drain_region *region, const struct heapwalk *walk)
{
	uint32_t *heaps = memory_zeroed(walk->heap_count + 1, sizeof(*heaps)), process = drain_process(region, 0);
	if (!walk->count || process == TRACE_NONE ||
	    (!region->translate.entry[0].is_known && !translate_entry_slowly(&region->translate, 0))) {
		free(heaps);
		return;
	}
	for (uint32_t i = 0; i < walk->heap_count; i++)
		heaps[i] = translate_heap_of(&region->translate, walk->image, walk->heaps[i].kind, walk->heaps[i].handle, process);
	const struct trace_thread thread = {.process = process, .tid = TRACE_TID_NONE, .start_ns = (int64_t)walk->ticks, .end_ns = (int64_t)walk->ticks,
					    .name = "[before the trace]"};
	int error = earlier_write(region, walk, writer_add_thread(region->drain->writer, &thread), heaps);
	if (error)
		region->error = error;
	free(heaps);
}

/* ---- regions ---- */

static void region_arrays(struct drain_region *region)
{
	const struct region_limits *limits = &region->region->limits;
	region->is_taken = memory_zeroed(limits->buffer_max, 1);
	region->next_held = memory_zeroed(limits->buffer_max, sizeof(uint32_t));
	region->full = memory_zeroed(limits->buffer_max, sizeof(struct full));
}

static void region_free(struct drain_region *region)
{
	translate_fini(&region->translate);
	for (int side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < region->slot_count; i++)
			if (region->stream[side][i].events)
				columns_give(region->drain, region->stream[side][i].events);
		free(region->stream[side]);
	}
	free(region->gap);
	free(region->is_taken);
	free(region->next_held);
	free(region->full);
	free(region);
}

static void copy_room(struct drain *drain, size_t size)
{
	if (size <= drain->copy_size)
		return;
	drain->copy = memory_resize(drain->copy, size, 1);
	drain->copy_size = size;
}

struct drain_region *drain_adopt(struct drain *drain, struct region *region, const struct drain_image *image,
				 const struct drain_known *known)
{
	struct drain_region *added = memory_zeroed(1, sizeof(*added));
	added->drain = drain;
	added->region = region;
	added->written = REGION_NONE;
	added->pid = image->pid;
	added->earliest = image->start_ticks > SLACK_TICKS ? image->start_ticks - SLACK_TICKS : 0;
	if (known) {
		added->known_copy = *known;
		added->known = &added->known_copy;
	}
	region_arrays(added);
	copy_room(drain, region->limits.buffer_size);
	translate_init(&added->translate, drain->writer, region, image, added->known, &drain->limits);
	uint64_t namespace = proc_pid_namespace((pid_t)image->pid);
	added->names_are_ours = namespace != 0 && namespace == proc_pid_namespace(getpid());
	added->is_after = writer_has_ended(drain->writer);
	slots_follow(added);
	pace_begin(&added->pace, ticks_now(region));
	added->next = drain->regions;
	drain->regions = added;
	return added;
}

struct drain_region *drain_add(struct drain *drain, struct region *region, const struct drain_image *image)
{
	return drain_adopt(drain, region, image, NULL);
}

uint32_t drain_process(const struct drain_region *region, uint32_t index)
{
	return index < REGION_PROCESS_MAX ? region->translate.process[index].id : TRACE_NONE;
}

static void peak_note(struct drain *drain)
{
	uint32_t in_use = 0;
	for (const struct drain_region *region = drain->regions; region; region = region->next)
		in_use += region->in_use;
	if (in_use > drain->past.peak_buffers)
		drain->past.peak_buffers = in_use;
}

static void error_tell(struct drain_region *region, int *error, struct diag *diag)
{
	if (region->error && error && !*error) {
		*error = region->error;
		if (diag)
			diag_fail(diag, -region->error, "%s", region->diag.text);
	}
	region->error = 0;
	region->diag.text[0] = 0;
}

/* Those that are there and that no thread keeps: while we hold them, threads wait. */
static uint32_t buffers_that_go_round(const struct drain_region *region)
{
	uint32_t there = region->region->buffer_ready - region->region->buffers_away;
	return there > region->owned ? there - region->owned : 0;
}

bool drain_poll(struct drain_region *region, bool flush, int *error, struct diag *diag)
{
	translate_refresh(&region->translate);
	bool has_any = full_take(region);
	peak_note(region->drain);
	if (flush) {
		translate_refresh_unloads(&region->translate);
		gaps_take(region);
		full_take(region);
		if (!region->known)
			open_take_all(region, OPEN_AFTER_FULL);
	}
	bool is_short = region->held_count > buffers_that_go_round(region) / 2;
	/* Larger blocks are smaller in the file: with more buffers they can be waited for. */
	if (is_short)
		region->region->buffers_used = region->region->buffer_ready - region->region->buffers_away;
	if (flush || is_short)
		write_all(region);
	settle(region);
	error_tell(region, error, diag);
	return has_any;
}

/* What the recorders of a region have counted. */
static void add_counters(const struct drain_region *region, struct drain_totals *totals)
{
	const struct region_header *header = region->region->header;
	for (uint32_t i = 0; i < region->slot_count; i++) {
		const struct region_slot *slot = region_slot(region->region, i);
		if (!slot_is_believable(region, slot))
			continue;
		totals->waits += slot->waits;
		totals->wait_ticks += slot->wait_ticks;
		totals->suppressed += slot->suppressed;
	}
	totals->processes += region->translate.process_count;
	if (!header_is_believable(region))
		return;
	totals->unwatched += header->sample_unwatched;
	totals->heapless += header->heaps_refused;
	totals->check_failures += header->check_failures;
	totals->untraced_calls += header->untraced_calls;
}

void drain_remove(struct drain_region *region, int *error, struct diag *diag)
{
	struct drain *drain = region->drain;
	drain_poll(region, true, error, diag);
	finish_slots(region, 0, false, true);
	write_all(region);
	gaps_take(region);
	settle(region);
	error_tell(region, error, diag);
	lies_tell(region);
	char text[300];
	while (drain_take_limit_note(region, text, sizeof(text)))
		;
	add_counters(region, &drain->past);
	struct drain_region **link = &drain->regions;
	while (*link != region)
		link = &(*link)->next;
	*link = region->next;
	region_free(region);
}

void drain_region_totals(const struct drain_region *region, struct drain_totals *totals)
{
	*totals = region->own;
	add_counters(region, totals);
}

/* The thread's side, if it has one: calls of signal handlers. */
static const struct owner *owner_side(const struct drain_region *region, uint32_t slot)
{
	const struct owner *owner = &region->stream[0][slot].owner, *side = &region->stream[1][slot].owner;
	return side->is_open && side->serial == owner->serial ? side : NULL;
}

static uint64_t thread_events(const struct drain_region *region, uint32_t slot)
{
	const struct owner *side = owner_side(region, slot);
	return region->stream[0][slot].owner.events + (side ? side->events : 0);
}

void drain_note_paces(struct drain *drain, uint64_t ticks_per_ms)
{
	for (struct drain_region *region = drain->regions; region; region = region->next) {
		uint64_t now = ticks_now(region->region);
		pace_note(&region->pace, region->event_count, now, ticks_per_ms);
		for (uint32_t i = 0; i < region->slot_count; i++)
			if (region->stream[0][i].owner.is_open)
				pace_note(&region->stream[0][i].owner.pace, thread_events(region, i), now, ticks_per_ms);
	}
}

uint64_t drain_region_rate(const struct drain_region *region, uint64_t ticks_per_ms)
{
	return pace_rate(&region->pace, region->event_count, ticks_now(region->region), ticks_per_ms);
}

void drain_each_thread(const struct drain_region *region, uint64_t ticks_per_ms, void (*each)(void *cookie, const struct drain_thread *thread), void *cookie)
{
	uint64_t now = ticks_now(region->region);
	for (uint32_t i = 0; i < region->slot_count; i++) {
		const struct owner *owner = &region->stream[0][i].owner, *side = owner_side(region, i);
		const struct region_slot *slot = region_slot(region->region, i);
		if (!owner->is_open || LOAD(&slot->state) != SLOT_LIVE)
			continue;
		uint64_t events = thread_events(region, i);
		struct drain_thread thread = {owner->process, owner->tid, owner->name, events, pace_rate(&owner->pace, events, now, ticks_per_ms),
					      slot->waits - owner->waits_before, slot->wait_ticks - owner->wait_ticks_before, owner->ends};
		if (side)
			stack_ends_add(&thread.ends, &side->ends);
		each(cookie, &thread);
	}
}

void drain_totals(const struct drain *drain, struct drain_totals *totals)
{
	*totals = drain->past;
	for (const struct drain_region *region = drain->regions; region; region = region->next)
		add_counters(region, totals);
}

struct drain *drain_new(struct writer *writer)
{
	struct drain *drain = memory_zeroed(1, sizeof(*drain));
	drain->writer = writer;
	drain->limits = keep_limits_default();
	drain->room_seen = UINT64_MAX;
	drain->memory = decode_memory_new();
	drain->nodes = memory_resize(NULL, DECODE_DEPTH_MAX + 1, sizeof(*drain->nodes));
	return drain;
}

void drain_before_writing(struct drain *drain, void (*ready)(void *cookie), void *cookie)
{
	drain->ready = ready;
	drain->ready_cookie = cookie;
}

void drain_free(struct drain *drain)
{
	if (!drain)
		return;
	while (drain->regions) {
		struct drain_region *region = drain->regions;
		drain->regions = region->next;
		region_free(region);
	}
	while (drain->spare_count > 0)
		columns_free(drain, drain->spare[--drain->spare_count]);
	writer_events_fini(&drain->ignored);
	free(drain->spare);
	free(drain->copy);
	free(drain->nodes);
	decode_memory_free(drain->memory);
	free(drain);
}
