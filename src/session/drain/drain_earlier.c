/* SPDX-License-Identifier: MIT */
#include "session/drain/drain_earlier.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "session/drain/drain_columns.h"
#include "session/drain/drain_state.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"

/* Fill columns with earlier blocks. entry: no function made them, but an event must name one. */
static void earlier_fill(struct writer_events *events, const struct heapwalk *walk, size_t first, uint32_t count,
			 const uint32_t *heaps, uint16_t entry)
{
	assert(count <= BLOCK_EVENTS_MAX);
	assert(first + count <= walk->count);
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

static int earlier_write(struct drain_region *region, const struct heapwalk *walk, uint32_t thread,
			 const uint32_t *heaps)
{
	struct writer_events *events = columns_take(region->drain);
	int error = 0;
	columns_reserve(region->drain, events, BLOCK_EVENTS_MAX);
	for (size_t done = 0; done < walk->count && !error; done += events->count) {
		size_t some = walk->count - done < BLOCK_EVENTS_MAX ? walk->count - done : BLOCK_EVENTS_MAX;
		earlier_fill(events, walk, done, (uint32_t)some, heaps, region->translate.entry[0].id);
		events->process = drain_process(region, 0);
		events->thread = thread;
		events->region = region->shared->id;
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
		heaps[i] = translate_heap_of(&region->translate, walk->file, walk->heaps[i].kind, walk->heaps[i].handle,
					     process);
	const struct trace_thread thread = {.process = process,
					    .tid = TRACE_TID_NONE,
					    .start_ns = (int64_t)walk->ticks,
					    .end_ns = (int64_t)walk->ticks,
					    .name = "[before the trace]"};
	int error = earlier_write(region, walk, writer_add_thread(region->drain->writer, &thread), heaps);
	if (error)
		region->error = error;
	free(heaps);
}
