/* SPDX-License-Identifier: MIT */
#include "match/match_late_frees.h"

#include <assert.h>

#include "base/memory.h"
#include "match/born.h"
#include "match/match_rows.h"
#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum { DURATION_EXACTNESS = 1024 /* the relative error of a Free's duration is at most one in this many */ };
static const struct heap_site earlier_site = {0, HEAP_NONE};

/* Find a gap of the process that can have lost a free in [from, to]. Return the gap's end, else INT64_MIN. */
static int64_t gap_between(const struct matching_process *process, int64_t from_ns, int64_t to_ns)
{
	for (uint32_t i = 0; i < process->gap_count; i++) {
		const struct trace_gap *gap = process->gaps[i];
		if (gap->from_ns <= to_ns && gap->to_ns >= from_ns)
			return gap->to_ns < to_ns ? gap->to_ns : to_ns;
	}
	return INT64_MIN;
}

/* Settle a block over which another one began, without an end that could be its own. */
void matching_settle_conflict(struct matching *matching, uint32_t older, uint32_t newer)
{
	struct heap_allocation *row = matching_live_row(matching, older);
	const struct heap_allocation *newer_row = matching_live_row(matching, newer);
	if (!row)
		return;
	uint32_t process = matching_process_of(matching, row);
	int64_t to_ns = newer_row ? newer_row->birth_ns : row->birth_ns;
	/* It went with what it lay in, which is not in the sample. */
	if (matching->table->sample_bytes && row->flags & HEAP_NESTED) {
		matching_eventless_end(matching, older, HEAP_END_DESTROY, to_ns);
		return;
	}
	int64_t gap_ns = gap_between(&matching->processes[process], row->birth_ns, to_ns);
	if (gap_ns != INT64_MIN) {
		matching_eventless_end(matching, older, HEAP_END_GAP, gap_ns);
		return;
	}
	if (to_ns > matching->processes[process].last_conflict_ns)
		matching->processes[process].last_conflict_ns = to_ns;
	uint32_t point = newer_row ? *matching_end_point(matching, older, row) : HEAP_NONE;
	matching_allocation_end(matching, older,
				&(struct row_end){to_ns, HEAP_NONE, HEAP_NONE, point, HEAP_END_CONFLICT});
	matching->table->order_conflicts++;
	matching->table->processes[process].order_conflicts++;
}

/* End an earlier block that was freed before it was found; a child's block was its parent's. */
static void earlier_end(struct matching *matching, const struct pending_free *pending)
{
	assert(pending->earlier_bytes > 0);
	if (matching->processes[pending->process].forked_from != TRACE_NONE) {
		matching->table->processes[pending->process].inherited_freed++;
		return;
	}
	uint64_t size_bytes = pending->earlier_bytes < BORN_SIZE_MAX ? pending->earlier_bytes : BORN_SIZE_MAX;
	const struct heap_allocation row = {.birth_ns = 0,
					    .end_ns = INT64_MAX,
					    .end = HEAP_END_OPEN,
					    .size_bytes = size_bytes,
					    .flags = HEAP_EARLIER,
					    .site = matching_site(matching, earlier_site),
					    .end_site = HEAP_NONE,
					    .thread = pending->end.thread,
					    .heap = pending->heap};
	const struct heap_details details = {.address = pending->address,
					     .previous = HEAP_NONE,
					     .end_thread = HEAP_NONE,
					     .birth_point = HEAP_NONE,
					     .end_point = HEAP_NONE};
	matching_allocation_end(matching, matching_row_add(matching, &row, &details), &pending->end);
}

void matching_unknown_free(struct matching *matching, uint32_t process, const struct heap_fault *fault)
{
	struct heap_table *table = matching->table;
	assert(process < matching->known.processes);
	table->unknown_frees++;
	table->processes[process].unknown_frees++;
	if (table->fault_count == HEAP_FAULTS_MAX)
		return;
	memory_grow(table->faults, table->fault_count, matching->fault_capacity);
	table->faults[table->fault_count++] = *fault;
}

static void pending_unknown(struct matching *matching, const struct pending_free *pending)
{
	matching_unknown_free(
		matching, pending->process,
		&(struct heap_fault){pending->end.time_ns, pending->address, pending->end.point, pending->end.thread});
}

static bool is_earlier(const struct pending_free *pending)
{
	return pending->earlier_bytes && pending->before_ns == INT64_MIN;
}

static void pending_settle(struct matching *matching, const struct pending_free *pending)
{
	assert(pending->end.time_ns != INT64_MIN);
	if (is_earlier(pending)) {
		earlier_end(matching, pending);
	} else if (pending->earlier_bytes) {
		memory_grow(matching->late_frees, matching->late_free_count, matching->late_free_capacity);
		matching->late_frees[matching->late_free_count++] = *pending;
	} else {
		pending_unknown(matching, pending);
	}
}

void matching_late_frees_settle(struct matching *matching)
{
	for (size_t i = 0; i < matching->late_free_count; i++) {
		const struct pending_free *pending = &matching->late_frees[i];
		if (pending->before_ns < matching->processes[pending->process].reading_ns)
			earlier_end(matching, pending);
		else
			pending_unknown(matching, pending);
	}
}

void matching_pending_expire(struct matching *matching, int64_t time_ns)
{
	for (; matching->pending_first < matching->pending_count; matching->pending_first++) {
		const struct pending_free *pending = &matching->pending[matching->pending_first];
		if (pending->end.time_ns != INT64_MIN) {
			if ((uint64_t)time_ns - (uint64_t)pending->end.time_ns <= STAMP_SLACK_NS)
				return;
			pending_settle(matching, pending);
		}
	}
	matching->pending_first = matching->pending_count = 0;
}

/* Return the size that an end gives for its block; 0: none. */
static uint64_t measure_of(const struct matching *matching, const struct point *point)
{
	const struct trace_block *block = point->block;
	uint32_t row = point->row;
	if (block->kind[row] == EVENT_FREE && block->usable[row])
		return block->usable[row];
	if (!block->argument2[row])
		return 0;
	return matching->table->dictionary->entries[block->entry[row]].function == FUNCTION_REALLOC
		       ? block->argument2[row]
		       : 0;
}

/* Return when the call of this end was over, or slightly later: a Free's duration is not exact. */
static int64_t point_over(const struct point *point)
{
	const struct trace_block *block = point->block;
	uint32_t row = point->row;
	if (block->kind[row] != EVENT_REALLOC && block->flags[row] & EVENT_NO_DURATION)
		return INT64_MAX;
	uint64_t over_ns = (uint64_t)point->time_ns + (uint64_t)block->duration_ns[row];
	return (int64_t)(over_ns + (uint64_t)block->duration_ns[row] / DURATION_EXACTNESS + STAMP_SLACK_NS);
}

struct measure matching_measure(struct matching *matching, const struct point *point)
{
	struct matching_process *process = &matching->processes[point->process];
	struct measure measure = {measure_of(matching, point), INT64_MIN};
	bool added = false;
	if (!measure.bytes)
		return measure;
	uint32_t *measured = map_add(&process->measured, point->address, &added);
	if (added) {
		memory_grow(process->measured_ns, process->measured_count, process->measured_capacity);
		*measured = (uint32_t)process->measured_count++;
	} else {
		measure.before_ns = process->measured_ns[*measured];
	}
	process->measured_ns[*measured] = point_over(point);
	return measure;
}

/* Return the annotated heap that the point is about, HEAPLESS, or TRACE_NONE. */
static uint32_t annotated_of(const struct matching *matching, const struct point *point)
{
	const struct matching_process *process = &matching->processes[point->process];
	if (point->live == &process->live)
		return TRACE_NONE;
	return point->live == &process->heapless ? HEAPLESS : (uint32_t)(point->live - matching->annotated);
}

void matching_pending_add(struct matching *matching, const struct point *point, enum heap_end end,
			  struct measure measure)
{
	assert(end < HEAP_END_OPEN);
	matching_pending_expire(matching, point->time_ns);
	memory_grow(matching->pending, matching->pending_count, matching->pending_capacity);
	matching->pending[matching->pending_count++] = (struct pending_free){.end = point_row_end(matching, point, end),
									     .address = point->address,
									     .process = point->process,
									     .annotated = annotated_of(matching, point),
									     .earlier_bytes = measure.bytes,
									     .before_ns = measure.before_ns,
									     .heap = point->block->heap[point->row]};
}

/* Take the pending end that belongs to this Begin. An end of an earlier block stays. */
struct pending_free *matching_pending_take(struct matching *matching, const struct point *point,
					   struct pending_free *taken)
{
	uint32_t annotated = annotated_of(matching, point);
	matching_pending_expire(matching, point->time_ns);
	for (size_t i = matching->pending_first; i < matching->pending_count; i++) {
		struct pending_free *pending = &matching->pending[i];
		if (pending->end.time_ns == INT64_MIN || is_earlier(pending) || pending->address != point->address ||
		    pending->process != point->process || pending->annotated != annotated ||
		    pending->end.thread == point->thread)
			continue;
		*taken = *pending;
		pending->end.time_ns = INT64_MIN;
		return taken;
	}
	return NULL;
}
