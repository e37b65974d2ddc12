/* SPDX-License-Identifier: MIT */
/*
 * A forked process begins with copies of the blocks that were live in its parent, and with those that its parent still
 * had of its own parent. From the first process of the line on, each one's copies are found in the same way:
 *
 *     parent's copies at its fork  -  what the parent ended of them up to the next fork  +  its own live blocks
 *
 * A process that ended no inherited block, as the model counts, needs no pass over its events.
 */
#include "dx/model/inherited.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/events.h"
#include "base/memory.h"
#include "base/order.h"
#include "dx/model/block_pass.h"
#include "match/point_stream.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum { PASS_STEP_EVENTS = 1 << 12 /* of a pass: how often it asks whether the query is to end */ };

void dx_copies_fini(struct dx_copies *copies)
{
	free(copies->items);
	*copies = (struct dx_copies){0};
}

static bool entry_is_annotation(const struct trace_dictionary *dictionary, uint32_t entry)
{
	return entry < dictionary->entry_count && function_is_annotation(dictionary->entries[entry].function);
}

/* A child has its parent's heaps under rows of its own. */
static bool is_same_heap(const struct trace_dictionary *dictionary, uint32_t one, uint32_t other)
{
	if (one >= dictionary->heap_count || other >= dictionary->heap_count)
		return one == other;
	return dictionary->heaps[one].handle == dictionary->heaps[other].handle &&
	       !strcmp(dictionary->heaps[one].name, dictionary->heaps[other].name);
}

/* ---- the parent's live blocks ---- */

COMPARE_BY_TWO(by_address, struct dx_copy, address, number)

COMPARE_BY(by_number, struct dx_copy, number)

static void live_add(struct dx_query *query, struct dx_copies *copies, uint32_t process, struct dx_value position)
{
	const struct heap_table *table = query->session->table;
	struct dx_block_pass pass = {.has_scan = false};
	struct dx_block block;
	dx_block_pass_begin(&pass, query, process, DX_BLOCKS_LIVE, position);
	while (dx_block_pass_next(&pass, query, &block)) {
		uint32_t entry = block.row.site < table->site_count ? table->sites[block.row.site].entry : TRACE_NONE;
		memory_grow(copies->items, copies->count, copies->capacity);
		copies->items[copies->count++] =
			(struct dx_copy){.address = block.details.address,
					 .size_bytes = block.row.size_bytes,
					 .number = block.number,
					 .heap = block.row.heap,
					 .is_annotated = entry_is_annotation(query->session->dictionary, entry)};
		if (copies->capacity * sizeof(*copies->items) > query->budget.limit_bytes)
			dx_stop(query, -1, "Live: inherited blocks take more than the %zu MiB that -memory allows",
				query->budget.limit_bytes >> 20);
	}
	dx_block_pass_end(&pass);
	if (copies->count)
		qsort(copies->items, copies->count, sizeof(*copies->items), by_address);
}

/* ---- what the process ends of its copies ---- */

static uint32_t copies_from(const struct dx_copies *copies, uint64_t address)
{
	uint32_t first;
	BISECT(first, copies->count, i, copies->items[i].address < address);
	return first;
}

/* What lies in the block ends with it. */
static void nested_end(struct dx_copies *copies, uint32_t at)
{
	assert(at < copies->count);
	uint64_t address = copies->items[at].address, size_bytes = copies->items[at].size_bytes;
	for (uint32_t i = copies_from(copies, address);
	     i < copies->count && copies->items[i].address - address < size_bytes; i++)
		copies->items[i].is_gone |= copies->items[i].is_annotated;
}

static void copy_end(const struct trace_dictionary *dictionary, struct dx_copies *copies,
		     const struct trace_block *block, uint32_t row, uint64_t address)
{
	bool is_annotated = entry_is_annotation(dictionary, block->entry[row]);
	for (uint32_t i = copies_from(copies, address); i < copies->count && copies->items[i].address == address; i++) {
		struct dx_copy *copy = &copies->items[i];
		if (copy->is_gone || copy->is_annotated != is_annotated ||
		    (is_annotated && !is_same_heap(dictionary, copy->heap, block->heap[row])))
			continue;
		copy->is_gone = true;
		if (!is_annotated)
			nested_end(copies, i);
	}
}

static void heap_end(const struct trace_dictionary *dictionary, struct dx_copies *copies,
		     const struct trace_block *block, uint32_t row)
{
	uint32_t entry = block->entry[row];
	bool is_delete =
		entry < dictionary->entry_count && dictionary->entries[entry].function == FUNCTION_OBJECT_DELETE;
	if (block->flags[row] & EVENT_FAILED || is_delete)
		return;
	for (uint32_t i = 0; i < copies->count; i++)
		if (is_same_heap(dictionary, copies->items[i].heap, block->heap[row]))
			copies->items[i].is_gone = true;
}

static void point_apply(const struct trace_dictionary *dictionary, struct dx_copies *copies,
			const struct heap_point *point)
{
	const struct trace_block *block = point->block;
	uint32_t row = point->row;
	bool is_old = point->kind == HEAP_POINT_END && block->kind[row] == EVENT_REALLOC;
	if (block->kind[row] == EVENT_DESTROY)
		heap_end(dictionary, copies, block, row);
	else if (point->kind != HEAP_POINT_NONE) /* a begin: its end was not recorded */
		copy_end(dictionary, copies, block, row, is_old ? block->previous[row] : block->address[row]);
}

/* Whether the process may have ended a copy. */
static bool has_ends(const struct dx_session *session, uint32_t process)
{
	const struct trace_dictionary *dictionary = session->dictionary;
	bool is_counted = !dictionary->fold_count && !dictionary->gap_count;
	for (uint32_t i = 0; i < dictionary->entry_count && is_counted; i++)
		is_counted = !function_is_annotation(dictionary->entries[i].function) &&
			     dictionary->entries[i].function != FUNCTION_OBJECT_DESTROY;
	return !is_counted || session->table->processes[process].inherited_freed;
}

static void copies_compact(struct dx_copies *copies)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < copies->count; i++)
		if (!copies->items[i].is_gone)
			copies->items[kept++] = copies->items[i];
	copies->count = kept;
}

/* Apply the ends before the position. */
static void ends_apply(struct dx_query *query, struct dx_copies *copies, uint32_t process,
		       const struct dx_value *position)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	int64_t from_ns = dictionary->processes[process].start_ns, time_ns = INT64_MIN;
	struct heap_point point;
	struct diag diag = {""};
	uint32_t step = 0;
	int status = 0;
	if (!copies->count || !has_ends(query->session, process))
		return;
	struct heap_stream *stream =
		heap_stream_new(query->session->trace, HEAP_ORDER_POINTS, from_ns, position->sequence_ns);
	for (uint64_t passed = 0; passed % PASS_STEP_EVENTS != 0 || dx_step(query, "Live", -1); passed++) {
		if ((status = heap_stream_next(stream, &point, &diag)) <= 0)
			break;
		step = point.time_ns == time_ns ? step + 1 : 1;
		time_ns = point.time_ns;
		if (time_ns > position->sequence_ns || (time_ns == position->sequence_ns && step >= position->step))
			break;
		if (time_ns >= from_ns && point.block->process == process)
			point_apply(dictionary, copies, &point);
	}
	if (status < 0)
		dx_stop(query, -1, "%s", diag.text);
	heap_stream_free(stream);
	copies_compact(copies);
}

/* ---- the line of parents ---- */

/* The copies end with the process, as its own blocks do: behind all points of that nanosecond. At the trace's end,
   processes that end then are still there. */
static bool runs_at(const struct dx_session *session, uint32_t process, const struct dx_value *position)
{
	const struct trace_process *of = &session->dictionary->processes[process];
	int64_t end_ns = session->table->processes[process].end_ns, at_ns = position->sequence_ns;
	if (!trace_process_end_is_known(of))
		return of->start_ns <= at_ns;
	if (at_ns == INT64_MAX)
		return end_ns >= session->dictionary->duration_ns;
	return of->start_ns <= at_ns && (end_ns > at_ns || (end_ns == at_ns && position->step != UINT32_MAX));
}

/* Return the processes from this one to the first of the line, and how many they are; NULL: the line has a circle. */
static uint32_t *line_of(const struct trace_dictionary *dictionary, uint32_t process, uint32_t *count)
{
	uint32_t *line = memory_zeroed((size_t)dictionary->process_count + 1, sizeof(*line));
	for (*count = 0; process < dictionary->process_count && *count <= dictionary->process_count;
	     process = dictionary->processes[process].forked_from)
		line[(*count)++] = process;
	if (*count <= dictionary->process_count)
		return line;
	free(line);
	return NULL;
}

void dx_copies_find(struct dx_query *query, struct dx_copies *copies, uint32_t process, struct dx_value position)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	uint32_t count;
	copies->count = 0;
	if (!dx_session_table(query->session) || dictionary->processes[process].forked_from == TRACE_NONE ||
	    !runs_at(query->session, process, &position))
		return;
	uint32_t *line = line_of(dictionary, process, &count);
	for (uint32_t i = count; line && i-- > 0 && !query->is_stopped;) {
		struct dx_value until = i ? dx_position(dictionary->processes[line[i - 1]].start_ns, 0) : position;
		ends_apply(query, copies, line[i], &until);
		if (i)
			live_add(query, copies, line[i], until);
	}
	free(line);
	if (copies->count)
		qsort(copies->items, copies->count, sizeof(*copies->items), by_number);
}
