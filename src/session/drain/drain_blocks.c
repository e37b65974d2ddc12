/* SPDX-License-Identifier: MIT */
#include "session/drain/drain_blocks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "session/drain/drain_columns.h"
#include "session/drain/drain_state.h"

/* ---- releasing ---- */

void buffer_release(struct drain_region *region, uint32_t index)
{
	assert(index < region->shared->buffer_ready);
	region->is_taken[index] = 0;
	region->drain->past.buffers_written++;
	struct region_buffer *head = region_buffer(region->shared, index);
	STORE(&head->taken, 0);
	/* The next owner sets `sequence` before it writes: until then the buffer is empty. */
	STORE(&head->committed, 0);
	/* Pairs with the recorder's compare-and-swap: the logger has finished with the bytes. */
	STORE_RELEASE(&head->state, BUFFER_FREE);
	region_note_progress(region->shared);
}

void held_add(struct drain_region *region, uint32_t *list, uint32_t index)
{
	assert(index < region->shared->limits.buffer_max);
	assert(*list != index);
	region->next_held[index] = *list;
	*list = index;
}

/* Note in the stream's open buffer how many of its events the trace has. The trace says so, too, but may drop old
   blocks before the logger dies. */
static void part_settle(const struct drain_region *region, struct stream *stream)
{
	struct region_buffer *head = region_buffer(region->shared, stream->open_index);
	if (stream->open_taken && (LOAD(&head->sequence) & ~REGION_SIGNAL) == stream->open_taken >> 32)
		STORE(&head->taken, stream->open_taken);
	stream->open_taken = 0;
}

static void parts_settle(struct drain_region *region)
{
	for (uint32_t i = 0; region->has_new_parts && i < region->slot_count; i++)
		for (int side = 0; side < 2; side++)
			part_settle(region, &region->stream[side][i]);
	region->has_new_parts = false;
}

/* Note in a slot which of its losses the trace has, for a logger after this one. */
static void gap_settle(struct gap *gap, struct region_slot *slot)
{
	assert(gap->is_new);
	gap->is_new = false;
	memcpy(slot->taken_count, gap->count, sizeof(slot->taken_count));
	memcpy(slot->taken_bytes, gap->bytes, sizeof(slot->taken_bytes));
	slot->taken_stacks = gap->stacks;
}

void drain_settle(struct drain_region *region)
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
		assert(region->held_count > 0);
		region->written = region->next_held[index];
		region->held_count--;
		buffer_release(region, index);
	}
	/* When the file has ended, its end has the gaps, or a recovery finds them in the slots. */
	for (uint32_t i = 0; region->has_new_gaps && !writer_has_ended(region->drain->writer) && i < region->slot_count;
	     i++)
		if (region->gap[i].is_new)
			gap_settle(&region->gap[i], region_slot(region->shared, i));
	region->has_new_gaps = false;
}

/* ---- blocks ---- */

void drain_count_missing(struct drain_region *region, uint64_t lost, uint64_t after)
{
	region->drain->past.lost += lost;
	region->own.lost += lost;
	region->drain->past.after += after;
	region->own.after += after;
}

static void count_kinds(struct drain_totals *totals, const struct writer_events *events)
{
	for (uint32_t i = 0; i < events->count; i++)
		totals->kind_count[events->kind[i]] += !(events->flags[i] & (EVENT_FAILED | EVENT_IN_FLIGHT));
}

/* Write what the stream has. A part says how far the trace then has the buffer that is being taken. */
void stream_write(struct drain_region *region, struct stream *stream, uint32_t part_sequence, uint32_t part_events)
{
	assert(!stream->events || !stream->events->count || stream->owner.is_open);
	struct drain *drain = region->drain;
	struct writer_events *events = stream->events;
	if (events && events->count > 0) {
		if (drain->ready)
			drain->ready(drain->ready_cookie);
		events->process = stream->owner.process;
		events->thread = stream->owner.id;
		events->region = region->shared->id;
		events->slot = stream->key;
		events->first_sequence = stream->completed_first;
		events->last_sequence = stream->completed_last;
		events->part_sequence = part_sequence;
		events->part_events = part_events;
		uint64_t before = writer_event_count(drain->writer), kinds[EVENT_KIND_COUNT];
		memcpy(kinds, writer_kind_counts(drain->writer), sizeof(kinds));
		int error = writer_write_events(drain->writer, events, &region->diag);
		uint64_t written = writer_event_count(drain->writer) - before, missing = events->count - written;
		assert(written <= events->count);
		if (error)
			region->error = region->error ? region->error : error;
		drain->past.events += written;
		region->own.events += written;
		for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
			drain->past.kinds[kind] += writer_kind_counts(drain->writer)[kind] - kinds[kind];
		drain_count_missing(region, error && !writer_has_ended(drain->writer) ? missing : 0,
				    error && writer_has_ended(drain->writer) ? missing : 0);
		/* Of a part that was written it is not known which stacks it has. */
		if (!error) {
			count_kinds(&drain->past, events);
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
		held_add(region, &region->written, index);
	}
}

void streams_write(struct drain_region *region)
{
	for (uint32_t i = 0; i < region->slot_count; i++)
		for (int side = 0; side < 2; side++)
			if (region->stream[side][i].events || region->stream[side][i].held != REGION_NONE)
				stream_write(region, &region->stream[side][i], 0, 0);
}

void streams_bound(struct drain *drain)
{
	if (drain->column_events <= COLUMN_EVENTS_MAX)
		return;
	for (struct drain_region *region = drain->regions; region; region = region->next)
		streams_write(region);
	while (drain->spare_count > 0 && drain->column_events > COLUMN_EVENTS_MAX / 2)
		columns_free(drain, drain->spare[--drain->spare_count]);
}
