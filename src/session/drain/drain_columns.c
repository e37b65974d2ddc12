/* SPDX-License-Identifier: MIT */
#include "session/drain/drain_columns.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/memory.h"
#include "session/drain/drain_state.h"

struct writer_events *columns_take(struct drain *drain)
{
	if (drain->spare_count == 0)
		return memory_zeroed(1, sizeof(struct writer_events));
	return drain->spare[--drain->spare_count];
}

void columns_free(struct drain *drain, struct writer_events *events)
{
	drain->column_events -= events->capacity;
	writer_events_fini(events);
	free(events);
}

void columns_reserve(struct drain *drain, struct writer_events *events, uint64_t more)
{
	uint32_t before = events->capacity;
	if (writer_events_reserve(events, (uint32_t)more))
		memory_exhausted(more);
	drain->column_events += events->capacity - before;
}

void columns_give(struct drain *drain, struct writer_events *events)
{
	events->count = 0;
	if (!grow_by_one(drain->spare, drain->spare_count, drain->spare_capacity)) {
		columns_free(drain, events);
		return;
	}
	drain->spare[drain->spare_count++] = events;
}

void columns_ready(struct drain_region *region, struct stream *stream, uint64_t bytes)
{
	if (!stream->events)
		stream->events = columns_take(region->drain);
	columns_reserve(region->drain, stream->events, bytes / DECODE_EVENT_BYTES_MIN + 2);
}

uint64_t drain_memory_limit_bytes(const struct drain *drain)
{
	enum { EVENT_BYTES = 80, OTHER_BYTES = 64 << 20, NODE_BYTES = 256 };
	uint64_t bytes = OTHER_BYTES + (uint64_t)(COLUMN_EVENTS_MAX + BLOCK_EVENTS_MAX) * EVENT_BYTES +
			 (uint64_t)writer_node_count(drain->writer) * NODE_BYTES;
	for (const struct drain_region *region = drain->regions; region; region = region->next)
		bytes += region->shared->bytes;
	return bytes;
}
