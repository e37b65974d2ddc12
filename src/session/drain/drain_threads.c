/* SPDX-License-Identifier: MIT */
#include "session/drain/drain_threads.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "os/proc.h"
#include "session/drain/drain_blocks.h"
#include "session/drain/drain_state.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

#define SIGNAL_MARK " (signal)"

static uint32_t process_pid(const struct drain_region *region, uint32_t index)
{
	return index < REGION_PROCESS_MAX ? region->translate.process[index].row.pid : 0;
}

/* Write the thread's name. A short program has ended when its first events are read; its first thread then has the name
   that it had when the program began. */
static void name_read(const struct drain_region *region, uint32_t index, uint32_t tid, bool is_signal_stream,
		      char name[NAME_BYTES])
{
	const size_t size = NAME_BYTES - sizeof(SIGNAL_MARK);
	name[0] = 0;
	if (region->names_are_ours)
		proc_thread_name((pid_t)process_pid(region, index), (pid_t)tid, name, size);
	if (!name[0] && !index && tid == region->first_tid)
		snprintf(name, size, "%.*s", (int)size - 1, region->first_name);
	if (is_signal_stream)
		strcat(name, SIGNAL_MARK);
}

static void owner_row(const struct owner *owner, bool has_ended, struct trace_thread *row)
{
	*row = (struct trace_thread){.process = owner->process,
				     .tid = owner->tid,
				     .start_ns = (int64_t)owner->first,
				     .end_ns = !has_ended ? INT64_MAX
							  : (int64_t)(owner->last ? owner->last : owner->first),
				     .name = owner->name};
}

/* Return the thread's row if an earlier logger has added it: the one whose events it took last. */
static uint32_t known_thread(const struct drain_region *region, const struct owner *owner, uint32_t key)
{
	const struct drain_known *known = region->known;
	uint64_t noted = region_slot(region->shared, key & ~REGION_SIGNAL)->trace_thread[key >> 31];
	uint32_t id = (uint32_t)noted - 1;
	if (!known || noted >> 32 != owner->serial || id >= known->dictionary->thread_count)
		return TRACE_NONE;
	const struct trace_thread *row = &known->dictionary->threads[id];
	return row->process == owner->process && row->tid == owner->tid ? id : TRACE_NONE;
}

/* False: there are as many threads as may be. */
bool owner_begin(struct drain_region *region, struct stream *stream, uint32_t process_index, uint32_t process,
		 uint32_t serial, uint32_t tid, uint64_t ticks)
{
	assert(!stream->owner.is_open);
	assert(process != TRACE_NONE);
	struct owner *owner = &stream->owner;
	bool is_signal_stream = stream->key & REGION_SIGNAL;
	struct trace_thread row;
	const struct region_slot *slot = region_slot(region->shared, stream->key & ~REGION_SIGNAL);
	*owner = (struct owner){.is_open = true,
				.serial = serial,
				.tid = tid,
				.process = process,
				.first = ticks,
				.waits_before = LOAD(&slot->waits),
				.wait_ticks_before = LOAD(&slot->wait_ticks)};
	event_rate_begin(&owner->rate, ticks);
	owner->id = known_thread(region, owner, stream->key);
	if (owner->id == TRACE_NONE && !keep_add_row(&region->translate.keep)) {
		owner->is_open = false;
		return false;
	}
	if (owner->id == TRACE_NONE) {
		name_read(region, process_index, tid, is_signal_stream, owner->name);
		owner_row(owner, false, &row);
		owner->id = writer_add_thread(region->drain->writer, &row);
	}
	region_slot(region->shared, stream->key & ~REGION_SIGNAL)->trace_thread[is_signal_stream] =
		(uint64_t)serial << 32 | (owner->id + 1);
	return true;
}

void owner_end(struct drain_region *region, struct stream *stream)
{
	struct owner *owner = &stream->owner;
	struct trace_thread row;
	if (!owner->is_open)
		return;
	owner->is_open = false;
	owner_row(owner, true, &row);
	/* The first time came from an earlier logger and is unknown in ticks: leave the row as it is. */
	if (!region->known || owner->id >= region->known->dictionary->thread_count)
		writer_update_thread(region->drain->writer, owner->id, &row);
}

struct owner *slot_owner(struct drain_region *region, uint32_t index)
{
	assert(index < region->slot_count);
	const struct region_slot *slot = region_slot(region->shared, index);
	struct stream *stream = &region->stream[0][index];
	uint32_t serial = LOAD(&slot->serial), tid = LOAD(&slot->tid), process_index = LOAD(&slot->process);
	uint32_t process = translate_process_id(&region->translate, process_index);
	if (stream->owner.is_open &&
	    (process == TRACE_NONE || (stream->owner.serial == serial && stream->owner.process == process)))
		return &stream->owner;
	if (process == TRACE_NONE)
		return NULL;
	stream_write(region, stream, 0, 0);
	owner_end(region, stream);
	uint64_t ticks = LOAD(&slot->call_ticks), now = ticks_now(region->shared);
	bool is_kept = owner_begin(region, stream, process_index, process, serial, tid,
				   ticks < region->earliest || ticks > now ? now : ticks);
	return is_kept ? &stream->owner : NULL;
}
