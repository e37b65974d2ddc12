/* SPDX-License-Identifier: MIT */
#include "heap/walk.h"

void heap_walk_begin(struct heap_walk *walk, const struct heap_table *table, const struct heap_filter *filter)
{
	*walk = (struct heap_walk){.table = table, .filter = filter, .time_ns = INT64_MIN};
	for (uint32_t i = 0; i < table->count; i++) {
		const struct heap_allocation *allocation = &table->allocations[i];
		if (!(allocation->flags & HEAP_EARLIER) || !heap_filter_passes(filter, allocation))
			continue;
		walk->live_bytes += allocation->size_bytes;
		walk->live_count++;
	}
}

int64_t heap_walk_next_time(const struct heap_walk *walk)
{
	const struct heap_table *table = walk->table;
	int64_t time_ns = walk->birth < table->count ? table->allocations[walk->birth].birth_ns : INT64_MAX;
	if (walk->end < table->end_count && table->allocations[table->ends[walk->end]].end_ns < time_ns)
		time_ns = table->allocations[table->ends[walk->end]].end_ns;
	return time_ns;
}

bool heap_walk_next(struct heap_walk *walk)
{
	const struct heap_table *table = walk->table;
	int64_t time_ns = heap_walk_next_time(walk);
	if (walk->birth >= table->count && walk->end >= table->end_count)
		return false;
	walk->time_ns = time_ns;
	for (; walk->end < table->end_count; walk->end++) {
		const struct heap_allocation *allocation = &table->allocations[table->ends[walk->end]];
		if (allocation->end_ns > time_ns)
			break;
		if (!heap_filter_passes(walk->filter, allocation))
			continue;
		walk->live_bytes -= allocation->size_bytes;
		walk->live_count--;
	}
	for (; walk->birth < table->count; walk->birth++) {
		const struct heap_allocation *allocation = &table->allocations[walk->birth];
		if (allocation->birth_ns > time_ns)
			break;
		if (allocation->flags & HEAP_EARLIER || !heap_filter_passes(walk->filter, allocation))
			continue;
		walk->live_bytes += allocation->size_bytes;
		walk->live_count++;
	}
	return true;
}
