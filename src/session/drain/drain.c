/* SPDX-License-Identifier: MIT */
/*
 * Buffers become blocks of the trace. Each slot of a region has two streams of buffers: one for its thread's calls, one
 * for calls of signal handlers. A stream's buffers are taken in the order of their sequence numbers:
 *
 *     FULL buffer -> private copy -> records -> columns of the stream -> block in the trace -> flushed -> FREE buffer
 *
 * A buffer is released only when its events can be read from the file, and each block names the buffers that it
 * completes. So, whenever the logger dies, the file and the region together hold every event, and none twice.
 *
 * A buffer that several threads have filled (a slot is passed on with its buffer) is spread over blocks; each of them
 * says how far into the buffer it reaches. The same holds for a buffer that is being filled during a flush.
 */
#include "session/drain/drain_state.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "os/proc.h"
#include "session/drain/drain_blocks.h"
#include "session/drain/drain_buffers.h"
#include "session/drain/drain_columns.h"
#include "session/drain/drain_gaps.h"
#include "session/drain/drain_notes.h"
#include "session/drain/drain_threads.h"
#include "session/drain/drain_valid.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"

/* ---- slots ---- */

/* Add a call that was under way when its process died, and has no record yet. Of a Free that is so if the head of its
   block could not be read, and if no buffer was free: then it is in a gap. */
static void call_take(struct drain_region *region, uint32_t index, const struct ending *ending)
{
	assert(index < region->slot_count);
	struct translate *translate = &region->translate;
	uint32_t entry = (ending->entry - 1) & 0xff;
	struct stream *stream = &region->stream[0][index];
	if (!ending->entry || (!translate->entry[entry].is_known && !translate_entry_slowly(translate, entry)))
		return;
	const struct translate_entry *known = &translate->entry[entry];
	const struct owner *owner = slot_owner(region, index);
	bool is_free = known->kind == EVENT_FREE, is_resize = known->kind == EVENT_REALLOC && ending->bytes,
	     is_lost = is_free &&
		       (LOAD(&region_slot(region->shared, index)->gap_last_ticks) == ending->ticks || !ending->subject);
	/* The last event's point is later than the call's beginning, so it is that call's. */
	if (!owner || is_lost || ending->ticks < region->earliest || ending->ticks > ticks_now(region->shared) ||
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
	events->size[i] = is_free ? 0 : is_resize ? ending->bytes - 1 : ending->subject;
	events->address[i] = is_free ? ending->subject : 0;
	events->previous[i] = is_resize ? ending->subject : 0;
	events->duration[i] = events->usable[i] = 0;
	events->argument[i] = events->argument2[i] = 0;
	events->result[i] = 0;
	drain_note_point(region, stream, LOAD(&region_slot(region->shared, index)->process), ending->ticks);
	region->drain->past.in_flight++;
}

/* Take the buffer that a thread which is gone was filling. */
static void slot_take_buffer(struct drain_region *region, uint32_t slot_index, uint32_t buffer, uint32_t side,
			     const struct ending *ending)
{
	assert(slot_index < region->slot_count);
	assert(side == 0 || side == REGION_SIGNAL);
	if (buffer >= region->shared->buffer_ready || region->is_taken[buffer])
		return;
	struct region_buffer *head = region_buffer(region->shared, buffer);
	/* A buffer that the slot has not taken hold of wholly is empty, or is another's by now. */
	if (LOAD_ACQUIRE(&head->state) != BUFFER_OWNED || LOAD(&head->slot) != slot_index ||
	    (LOAD(&head->sequence) & REGION_SIGNAL) != side)
		return;
	struct stream *stream = stream_by_key(region, slot_index | side);
	if (stream->has_sequence && !region->known && (LOAD(&head->sequence) & ~REGION_SIGNAL) == stream->sequence)
		return;
	buffer_take(region, stream, buffer, ending);
}

/* Take everything of a slot whose thread is gone (is_dead), or detached. Full buffers have been taken. */
static void slot_finish(struct drain_region *region, uint32_t index, bool is_dead)
{
	assert(index < region->slot_count);
	struct region_slot *slot = region_slot(region->shared, index);
	struct ending ending = {.pending = LOAD(&slot->pending),
				.entry = LOAD(&slot->call_entry) & 0xff,
				.bytes = LOAD(&slot->call_bytes),
				.ticks = LOAD(&slot->call_ticks),
				.subject = LOAD(&slot->call_subject)};
	uint64_t in_flight = region->drain->past.in_flight;
	if (!is_dead)
		ending = (struct ending){0};
	slot_take_buffer(region, index, LOAD(&slot->buffer), 0, &ending);
	slot_take_buffer(region, index, LOAD(&slot->signal_buffer), REGION_SIGNAL, NULL);
	if (region->drain->past.in_flight == in_flight)
		call_take(region, index, &ending);
	gap_take(region, index);
	for (int side = 0; side < 2; side++) {
		stream_write(region, &region->stream[side][index], 0, 0);
		owner_end(region, &region->stream[side][index]);
		assert(region->stream[side][index].held == REGION_NONE);
	}
	STORE(&slot->buffer, REGION_NONE);
	STORE(&slot->signal_buffer, REGION_NONE);
	STORE(&slot->pending, 0);
	/* A walk over the heaps that is under way reads whether a call is. */
	STORE(&slot->call_entry, 0);
	/* Pairs with the recorder's compare-and-swap. */
	STORE_RELEASE(&slot->state, SLOT_FREE);
	region_note_slots(region->shared);
}

void drain_end_tid(struct drain_region *region, uint32_t slot_index, uint32_t tid)
{
	if (slot_index >= region->slot_count)
		return;
	struct region_slot *slot = region_slot(region->shared, slot_index);
	/* A new thread on the old one's stack may take the slot over as it is; the first of the two has it. */
	if (!swap_if(&slot->state, SLOT_LIVE, SLOT_RETIRED))
		return;
	if (LOAD(&slot->tid) != tid) {
		STORE_RELEASE(&slot->state, SLOT_LIVE);
		return;
	}
	full_take(region);
	slot_finish(region, slot_index, true);
	drain_settle(region);
}

void drain_end_thread(struct drain_region *region, uint32_t slot)
{
	if (slot < region->slot_count)
		drain_end_tid(region, slot, LOAD(&region_slot(region->shared, slot)->tid));
}

static void finish_slots(struct drain_region *region, uint32_t process, bool is_dead, bool is_all)
{
	for (uint32_t i = 0; i < region->slot_count; i++) {
		struct region_slot *slot = region_slot(region->shared, i);
		uint32_t state = LOAD_ACQUIRE(&slot->state);
		if (is_all ? state != SLOT_FREE
			   : LOAD(&slot->process) == process && (state == SLOT_LIVE || state == SLOT_RETIRED))
			slot_finish(region, i, is_dead);
	}
}

void drain_end_process(struct drain_region *region, uint32_t index, uint8_t end, int32_t status, uint64_t ticks)
{
	translate_refresh(&region->translate);
	full_take(region);
	finish_slots(region, index, end != TRACE_END_OPEN && end != TRACE_END_DETACHED, false);
	jit_frames_end(&region->translate, index, ticks_now(region->shared));
	translate_end_process(&region->translate, index, end, status, ticks);
	drain_settle(region);
	CHECK_VALID(drain_is_valid(region->drain));
}

/* ---- regions ---- */

static void region_arrays(struct drain_region *region)
{
	assert(!region->is_taken && !region->next_held && !region->full);
	const struct region_limits *limits = &region->shared->limits;
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
	assert(region->buffer_ready <= region->limits.buffer_max);
	struct drain_region *added = memory_zeroed(1, sizeof(*added));
	added->drain = drain;
	added->shared = region;
	added->written = REGION_NONE;
	added->pid = image->pid;
	added->first_tid = image->first_tid;
	snprintf(added->first_name, sizeof(added->first_name), "%s", image->first_name ? image->first_name : "");
	added->earliest = image->start_ticks > SLACK_TICKS ? image->start_ticks - SLACK_TICKS : 0;
	if (known) {
		added->known_copy = *known;
		added->known = &added->known_copy;
	}
	region_arrays(added);
	copy_room(drain, region->limits.buffer_size);
	translate_init(&added->translate, drain->writer, region, image, added->known, &drain->limits);
	if (!known)
		jit_frames_begin(&added->translate.jit, (pid_t)image->pid, (pid_t)image->first_tid);
	uint64_t namespace = proc_pid_namespace((pid_t)image->pid);
	added->names_are_ours = namespace != 0 && namespace == proc_pid_namespace(getpid());
	added->is_after = writer_has_ended(drain->writer);
	slots_follow(added);
	event_rate_begin(&added->rate, ticks_now(region));
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
	assert(region->error <= 0);
	if (region->error && error && !*error) {
		*error = region->error;
		if (diag)
			diag_fail(diag, -region->error, "%s", region->diag.text);
	}
	region->error = 0;
	region->diag.text[0] = 0;
}

/* Return the number of buffers with memory that no thread owns. While the drain holds all of them, threads wait. */
static uint32_t buffers_that_go_round(const struct drain_region *region)
{
	uint32_t there = region->shared->buffer_ready - region->shared->buffers_away;
	return there > region->owned ? there - region->owned : 0;
}

bool drain_poll(struct drain_region *region, bool flush, int *error, struct diag *diag)
{
	translate_refresh(&region->translate);
	bool has_any = full_take(region);
	peak_note(region->drain);
	if (flush) {
		gaps_take(region);
		full_take(region);
		if (!region->known)
			open_take_all(region, OPEN_AFTER_FULL);
	}
	bool is_short = region->held_count > buffers_that_go_round(region) / 2;
	/* Larger blocks are smaller in the file: with more buffers they can be waited for. */
	if (is_short)
		region->shared->buffers_used = region->shared->buffer_ready - region->shared->buffers_away;
	if (flush || is_short)
		streams_write(region);
	drain_settle(region);
	error_tell(region, error, diag);
	CHECK_VALID(drain_is_valid(region->drain));
	return has_any;
}

/* Add the counts of a region's recorders. */
static void add_counters(const struct drain_region *region, struct drain_totals *totals)
{
	const struct region_header *header = region->shared->header;
	for (uint32_t i = 0; i < region->slot_count; i++) {
		const struct region_slot *slot = region_slot(region->shared, i);
		if (!slot_is_believable(region, slot))
			continue;
		totals->waits += LOAD(&slot->waits);
		totals->wait_ticks += LOAD(&slot->wait_ticks);
		totals->suppressed += LOAD(&slot->suppressed);
	}
	totals->processes += region->translate.process_count;
	if (!header_is_believable(region))
		return;
	totals->unwatched += LOAD(&header->sample_unwatched);
	totals->heapless += LOAD(&header->heaps_refused);
	totals->check_failures += LOAD(&header->check_failures);
	totals->untraced_calls += LOAD(&header->untraced_calls);
	totals->pythonless += LOAD(&header->python_failures);
}

void drain_remove(struct drain_region *region, int *error, struct diag *diag)
{
	struct drain *drain = region->drain;
	drain_poll(region, true, error, diag);
	finish_slots(region, 0, false, true);
	streams_write(region);
	gaps_take(region);
	drain_settle(region);
	error_tell(region, error, diag);
	lies_tell(region);
	assert(region->held_count == 0 && region->written == REGION_NONE);
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

/* Return the owner of the slot's signal stream, if it has one. */
static const struct owner *owner_signal(const struct drain_region *region, uint32_t slot)
{
	const struct owner *owner = &region->stream[0][slot].owner, *side = &region->stream[1][slot].owner;
	return side->is_open && side->serial == owner->serial ? side : NULL;
}

static uint64_t thread_events(const struct drain_region *region, uint32_t slot)
{
	assert(slot < region->slot_count);
	const struct owner *side = owner_signal(region, slot);
	return region->stream[0][slot].owner.events + (side ? side->events : 0);
}

void drain_note_rates(struct drain *drain, uint64_t ticks_per_ms)
{
	for (struct drain_region *region = drain->regions; region; region = region->next) {
		uint64_t now = ticks_now(region->shared);
		event_rate_note(&region->rate, region->event_count, now, ticks_per_ms);
		for (uint32_t i = 0; i < region->slot_count; i++)
			if (region->stream[0][i].owner.is_open)
				event_rate_note(&region->stream[0][i].owner.rate, thread_events(region, i), now,
						ticks_per_ms);
	}
}

uint64_t drain_region_rate(const struct drain_region *region, uint64_t ticks_per_ms)
{
	return event_rate_get(&region->rate, region->event_count, ticks_now(region->shared), ticks_per_ms);
}

void drain_each_thread(const struct drain_region *region, uint64_t ticks_per_ms,
		       void (*each)(void *cookie, const struct drain_thread *thread), void *cookie)
{
	uint64_t now = ticks_now(region->shared);
	for (uint32_t i = 0; i < region->slot_count; i++) {
		const struct owner *owner = &region->stream[0][i].owner, *side = owner_signal(region, i);
		const struct region_slot *slot = region_slot(region->shared, i);
		if (!owner->is_open || LOAD(&slot->state) != SLOT_LIVE)
			continue;
		uint64_t events = thread_events(region, i);
		struct drain_thread thread = {owner->process,
					      owner->tid,
					      owner->name,
					      events,
					      event_rate_get(&owner->rate, events, now, ticks_per_ms),
					      LOAD(&slot->waits) - owner->waits_before,
					      LOAD(&slot->wait_ticks) - owner->wait_ticks_before,
					      owner->ends};
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
	assert(writer);
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

void drain_while_taking(struct drain *drain, void (*busy)(void *cookie), void *cookie)
{
	drain->busy = busy;
	drain->busy_cookie = cookie;
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
