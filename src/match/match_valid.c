/* SPDX-License-Identifier: MIT */
#include "match/match_valid.h"

#include "match/matching.h"
#include "table/table_valid.h"

/* A row that is there, or a child's copy of one. */
static bool id_is_valid(const struct matching *matching, uint32_t id)
{
	return id == HEAP_NONE ||
	       (id & COPY_BIT ? (id & ~COPY_BIT) < matching->copy_count : id < matching->table->count);
}

/* From the newest row of an address to the oldest: each was made before the one that names it. */
static bool history_is_valid(const struct matching *matching, uint32_t id)
{
	while (id != HEAP_NONE && !(id & COPY_BIT)) {
		uint32_t before = matching->history[id].before;
		if (!id_is_valid(matching, before) || (before != HEAP_NONE && !(before & COPY_BIT) && before >= id))
			return false;
		id = before;
	}
	return true;
}

/* Blocks of a process: those that live are its own. */
static bool blocks_are_valid(const struct matching *matching, const struct live *live, uint32_t process)
{
	if (!live_is_valid(live))
		return false;
	for (uint64_t i = 0; live->cells && i < UINT64_C(1) << live->bits; i++) {
		const struct live_cell *cell = &live->cells[i];
		if (!cell->address)
			continue;
		if (!id_is_valid(matching, cell->current) || !id_is_valid(matching, cell->other) ||
		    (matching->processes[process].keeps_history && !history_is_valid(matching, cell->current)))
			return false;
		const struct heap_allocation *row =
			cell->current == HEAP_NONE ? NULL : matching_live_row(matching, cell->current);
		if (row && matching_process_of(matching, row) != process)
			return false;
	}
	return true;
}

static bool processes_are_valid(const struct matching *matching)
{
	uint64_t live_bytes = 0;
	/* Inherited blocks, and those of a process that has ended, are counted elsewhere. */
	bool is_counted = !matching->history && !matching->table->sample_bytes;
	for (uint32_t i = 0; i < matching->known.processes; i++) {
		const struct matching_process *process = &matching->processes[i];
		if (!blocks_are_valid(matching, &process->live, i) || !nest_is_valid(&process->nest) ||
		    !live_is_valid(&process->heapless) || process->forked_from == i ||
		    process->measured.count != process->measured_count)
			return false;
		live_bytes += matching->table->processes[i].live_bytes;
		is_counted = is_counted && !process->has_ended;
	}
	for (uint32_t i = 0; i < matching->annotated_count; i++)
		if (!live_is_valid(&matching->annotated[i]))
			return false;
	return !is_counted || live_bytes == matching->level.live_bytes;
}

/* In order of time, but for those that were taken. */
static bool pending_is_valid(const struct matching *matching)
{
	int64_t before_ns = INT64_MIN;
	if (matching->pending_first > matching->pending_count || matching->pending_count > matching->pending_capacity)
		return false;
	for (size_t i = matching->pending_first; i < matching->pending_count; i++) {
		const struct pending_free *pending = &matching->pending[i];
		if (pending->end.time_ns == INT64_MIN)
			continue;
		if (pending->end.time_ns < before_ns || pending->process >= matching->known.processes ||
		    pending->end.thread >= matching->known.threads)
			return false;
		before_ns = pending->end.time_ns;
	}
	return true;
}

/* Second ends of addresses, which can be those of earlier blocks. */
static bool late_frees_are_valid(const struct matching *matching)
{
	for (size_t i = 0; i < matching->late_free_count; i++) {
		const struct pending_free *late = &matching->late_frees[i];
		if (!late->earlier_bytes || late->before_ns == INT64_MIN || late->process >= matching->known.processes)
			return false;
	}
	return matching->late_free_count <= matching->late_free_capacity;
}

static bool lifecycle_is_valid(const struct lifecycle_event *events, uint32_t next, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		if (events[i - 1].time_ns > events[i].time_ns)
			return false;
	return next <= count;
}

static bool threads_are_valid(const struct matching *matching)
{
	for (uint32_t i = 0; i < matching->known.threads; i++)
		if (!id_is_valid(matching, matching->last_alloc[i][0]) ||
		    !id_is_valid(matching, matching->last_alloc[i][1]) ||
		    !id_is_valid(matching, matching->last_realloc_from[i]))
			return false;
	return true;
}

bool matching_is_valid(const struct matching *matching)
{
	const struct heap_table *table = matching->table;
	if (matching->written > table->count || table->count - matching->written > RING_ROWS ||
	    table->count > matching->most || table->site_count != matching->site_ids.count)
		return false;
	for (size_t i = 0; i < matching->copy_count; i++)
		if (!id_is_valid(matching, matching->copies[i].before))
			return false;
	return survivors_is_valid(matching->survivors) && processes_are_valid(matching) && pending_is_valid(matching) &&
	       late_frees_are_valid(matching) && threads_are_valid(matching) &&
	       lifecycle_is_valid(matching->starts, matching->next_start, matching->start_count) &&
	       lifecycle_is_valid(matching->ends, matching->next_end, matching->end_count) &&
	       (!matching->stream || heap_stream_is_valid(matching->stream));
}
