/* SPDX-License-Identifier: MIT */
#include "heap/walk.h"

static void birth_look(struct heap_walk *walk)
{
	walk->birth_ns = walk->birth < walk->table->count ? walk->table->allocations[walk->birth].birth_ns : INT64_MAX;
}

static void end_look(struct heap_walk *walk)
{
	walk->end_ns = walk->end < walk->table->end_count ? walk->table->allocations[walk->table->ends[walk->end]].end_ns : INT64_MAX;
}

void heap_walk_begin(struct heap_walk *walk, const struct heap_table *table, const struct heap_filter *filter)
{
	*walk = (struct heap_walk){.table = table, .filter = filter, .time_ns = INT64_MIN};
	birth_look(walk);
	end_look(walk);
	for (uint32_t i = 0; i < table->count; i++) {
		const struct heap_allocation *allocation = &table->allocations[i];
		if (!(allocation->flags & HEAP_EARLIER) || !heap_filter_passes(filter, allocation))
			continue;
		walk->live_bytes += allocation->size_bytes;
		walk->live_count++;
	}
}

bool heap_walk_next(struct heap_walk *walk)
{
	const struct heap_table *table = walk->table;
	int64_t time_ns = heap_walk_next_time(walk);
	if (walk->birth >= table->count && walk->end >= table->end_count)
		return false;
	walk->time_ns = time_ns;
	for (; walk->end_ns <= time_ns && walk->end < table->end_count; walk->end++, end_look(walk)) {
		const struct heap_allocation *allocation = &table->allocations[table->ends[walk->end]];
		if (!heap_filter_passes(walk->filter, allocation))
			continue;
		walk->live_bytes -= allocation->size_bytes;
		walk->live_count--;
	}
	for (; walk->birth_ns <= time_ns && walk->birth < table->count; walk->birth++, birth_look(walk)) {
		const struct heap_allocation *allocation = &table->allocations[walk->birth];
		if (allocation->flags & HEAP_EARLIER || !heap_filter_passes(walk->filter, allocation))
			continue;
		walk->live_bytes += allocation->size_bytes;
		walk->live_count++;
	}
	return true;
}
