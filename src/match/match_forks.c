/* SPDX-License-Identifier: MIT */
#include "match/match_forks.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "match/match_heaps.h"
#include "match/match_history.h"
#include "match/matching.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* Return the row of the address that was current in the process at a time, or HEAP_NONE. A row that ended before that
   time is accepted. A child notices its fork only at its first heap call, so its start may lie after the fork, while
   its parent runs on. */
static uint32_t history_find(const struct matching *matching, const struct live *live, uint64_t address,
			     int64_t time_ns, bool *is_known)
{
	assert(matching->history || !live_find(live, address));
	const struct live_cell *cell = live_find(live, address);
	*is_known = false;
	for (uint32_t at = cell ? cell->current : HEAP_NONE; at != HEAP_NONE;) {
		const struct history *history = matching_history(matching, at);
		*is_known = history->is_copy || history->birth_ns <= time_ns;
		if (history->is_copy)
			return history->birth_ns > time_ns ? history->before : HEAP_NONE;
		if (*is_known)
			return at;
		at = history->before;
	}
	return HEAP_NONE;
}

/* Return a parent's table for blocks of the same kind, NULL if there is none. The heap becomes the parent's. */
static const struct live *inherited_live(const struct matching *matching, const struct point *point, uint32_t parent,
					 uint32_t *heap)
{
	if (point->live == &matching->processes[point->process].live)
		return &matching->processes[parent].live;
	if (*heap >= matching->annotated_count)
		return NULL;
	uint32_t like = matching_heap_like(matching, *heap, parent);
	if (like == TRACE_NONE)
		return NULL;
	*heap = like;
	return &matching->annotated[like];
}

/* Find the block among those of the parents. A parent that does not know the heap has made no call of it since its own
   fork. */
static uint32_t inherited_find(const struct matching *matching, const struct point *point)
{
	uint32_t process = point->process, heap = point->block->heap[point->row];
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	int64_t time_ns = INT64_MAX;
	/* Bounded by the number of processes, whatever the file says about who forked whom. */
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		uint32_t parent = matching->processes[process].forked_from;
		if (parent == TRACE_NONE)
			break;
		if (dictionary->processes[process].start_ns < time_ns)
			time_ns = dictionary->processes[process].start_ns;
		bool is_known = false;
		const struct live *live = inherited_live(matching, point, parent, &heap);
		uint32_t found = live ? history_find(matching, live, point->address, time_ns, &is_known) : HEAP_NONE;
		if (is_known)
			return found;
		process = parent;
	}
	return HEAP_NONE;
}

/* End a child's copy of a block of its parent. */
bool matching_copy_end(struct matching *matching, const struct point *point)
{
	struct matching_process *process = &matching->processes[point->process];
	if (process->forked_from == TRACE_NONE || live_find(point->live, point->address))
		return false;
	uint32_t original = inherited_find(matching, point);
	if (original == HEAP_NONE)
		return false;
	const struct history block = *matching_history(matching, original);
	uint32_t copy = matching_history_add(
		matching, &(struct history){.before = original, .is_copy = true, .birth_ns = point->time_ns});
	if (copy == HEAP_NONE)
		return false;
	live_add(point->live, point->address)->current = copy;
	if (block.is_nested)
		return true;
	matching->table->processes[point->process].inherited_freed++;
	process->left_count -= process->left_count > 0;
	process->left_bytes -= block.size_bytes < process->left_bytes ? block.size_bytes : process->left_bytes;
	return true;
}

void matching_fork(struct matching *matching, uint32_t child)
{
	assert(matching->processes[child].forked_from != TRACE_NONE && matching->processes[child].forked_from != child);
	uint32_t parent = matching->processes[child].forked_from;
	const struct heap_process *from = &matching->table->processes[parent];
	struct heap_process *process = &matching->table->processes[child];
	process->inherited_count = from->live_count + matching->processes[parent].left_count;
	process->inherited_bytes = from->live_bytes + matching->processes[parent].left_bytes;
	matching->processes[child].left_count = process->inherited_count;
	matching->processes[child].left_bytes = process->inherited_bytes;
}
