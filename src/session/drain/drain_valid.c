/* SPDX-License-Identifier: MIT */
#include "session/drain/drain_valid.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "session/drain/drain_state.h"
#include "trace/row_ids.h"

/* Mark the buffers of a list. False: one is not there, is not marked as taken, or is in a list already. */
static bool list_mark(const struct drain_region *region, uint32_t first, bool *is_listed, uint32_t *count)
{
	for (uint32_t i = first; i != REGION_NONE; i = region->next_held[i]) {
		if (i >= region->shared->limits.buffer_max || !region->is_taken[i] || is_listed[i])
			return false;
		is_listed[i] = true;
		++*count;
	}
	return true;
}

/* Each buffer whose events are not in the file is in one list: that of a stream, or of those that wait for a flush. */
static bool held_is_valid(const struct drain_region *region)
{
	uint32_t count = 0, taken = 0, max = region->shared->limits.buffer_max;
	bool *is_listed = memory_zeroed(max, sizeof(*is_listed));
	bool is_valid = list_mark(region, region->written, is_listed, &count);
	for (uint32_t i = 0; i < region->slot_count; i++)
		for (int side = 0; side < 2; side++)
			is_valid = is_valid && list_mark(region, region->stream[side][i].held, is_listed, &count);
	for (uint32_t i = 0; i < max; i++)
		taken += region->is_taken[i] != 0;
	free(is_listed);
	return is_valid && count == region->held_count && taken == count;
}

static bool owner_is_valid(const struct drain_region *region, const struct owner *owner)
{
	return !owner->is_open || (owner->first >= region->earliest && owner->process != TRACE_NONE &&
				   owner->id != TRACE_NONE && memchr(owner->name, 0, sizeof(owner->name)));
}

static bool stream_is_valid(const struct drain_region *region, const struct stream *stream, uint32_t key)
{
	const struct writer_events *events = stream->events;
	bool has_completed = stream->completed_first <= stream->completed_last;
	return stream->key == key && owner_is_valid(region, &stream->owner) &&
	       (!events || events->count <= events->capacity) && (!events || !events->count || stream->owner.is_open) &&
	       (!has_completed || (stream->has_sequence && stream->completed_last == stream->sequence)) &&
	       (stream->held == REGION_NONE || has_completed);
}

static bool drain_region_is_valid(const struct drain_region *region)
{
	if (region->slot_count > region->shared->slot_ready || region->held_count > region->shared->buffer_ready ||
	    region->translate.keep.writer != region->drain->writer)
		return false;
	for (uint32_t i = 0; i < region->slot_count; i++)
		for (uint32_t side = 0; side < 2; side++)
			if (!stream_is_valid(region, &region->stream[side][i], i | (side ? REGION_SIGNAL : 0)))
				return false;
	return held_is_valid(region);
}

bool drain_is_valid(const struct drain *drain)
{
	if (drain->spare_count > drain->spare_capacity)
		return false;
	for (uint32_t i = 0; i < drain->spare_count; i++)
		if (drain->spare[i]->count)
			return false;
	for (const struct drain_region *region = drain->regions; region; region = region->next)
		if (region->drain != drain || !drain_region_is_valid(region))
			return false;
	return true;
}
