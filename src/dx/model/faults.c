/* SPDX-License-Identifier: MIT */
/*
 * The table lists the frees that end no block. Those of an address that had been freed before, as the rows with that
 * address tell, are double ones.
 */
#include "dx/model/faults.h"

#include <assert.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "dx/model/block_pass.h"
#include "dx/model/event_reader.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

const char *const dx_fault_words[DX_FAULT_KINDS] = {"ok", "unknown", "double"};

struct dx_faults {
	struct dx_fault *items;
	uint32_t count;
};

static void faults_end(void *context)
{
	struct dx_faults *faults = context;
	free(faults->items);
	free(faults);
}

static uint32_t process_of(const struct heap_table *table, const struct heap_fault *fault)
{
	return table->dictionary->threads[fault->thread].process;
}

/* Faults of one address are linked: by address, the last one plus 1; by fault, the one of its address before it,
   plus 1. */
struct fault_links {
	struct map last;
	uint32_t *before;
};

/* Mark each fault whose address had an earlier one in its process. */
static void faults_link(const struct heap_table *table, struct dx_faults *faults, struct fault_links *links)
{
	bool added;
	links->before = memory_zeroed((size_t)faults->count + 1, sizeof(*links->before));
	for (uint32_t i = 0; i < faults->count; i++) {
		const struct heap_fault *fault = &table->faults[i];
		uint32_t *last = map_add(&links->last, fault->address, &added);
		links->before[i] = added ? 0 : *last;
		for (uint32_t at = links->before[i]; at; at = links->before[at - 1]) {
			if (process_of(table, &table->faults[at - 1]) != process_of(table, fault))
				continue;
			faults->items[i].kind = DX_FAULT_DOUBLE;
			break;
		}
		assert(links->before[i] <= i);
		*last = i + 1;
	}
}

/* Return whether the process is a child of the row's, however far, that began with a copy of its block. */
static bool has_copy(const struct trace_dictionary *dictionary, uint32_t process, const struct heap_allocation *row)
{
	uint32_t of = dictionary->threads[row->thread].process;
	for (unsigned i = 0; i < dictionary->process_count && process < dictionary->process_count; i++) {
		int64_t start_ns = dictionary->processes[process].start_ns;
		process = dictionary->processes[process].forked_from;
		if (process == of)
			return row->birth_ns <= start_ns && (row->end_ns > start_ns || row->end == HEAP_END_OPEN);
	}
	return false;
}

/* Return whether the block was freed before the fault. A copy was, or this free would have ended it. */
static bool is_freed_before(const struct heap_table *table, const struct dx_block *block,
			    const struct heap_fault *fault)
{
	uint32_t point = block->details.end_point;
	if (table->dictionary->threads[block->row.thread].process != process_of(table, fault))
		return has_copy(table->dictionary, process_of(table, fault), &block->row);
	return (block->row.end == HEAP_END_FREE || block->row.end == HEAP_END_REALLOC) &&
	       (point == HEAP_NONE ? block->row.end_ns <= fault->time_ns : point < fault->point);
}

static void blocks_pass(struct dx_query *query, const struct heap_table *table, struct dx_faults *faults,
			const struct fault_links *links)
{
	const enum dx_block_choice choices[] = {DX_BLOCKS_ALL, DX_BLOCKS_LIVE};
	for (unsigned i = 0; i < 2; i++) {
		struct dx_block_pass pass = {.has_scan = false};
		struct dx_block block;
		/* Earlier blocks are those that live at the start. */
		dx_block_pass_begin(&pass, query, TRACE_NONE, choices[i], dx_position(0, UINT32_MAX));
		while (dx_block_pass_next(&pass, query, &block)) {
			const uint32_t *last = map_find(&links->last, block.details.address);
			for (uint32_t at = last ? *last : 0; at; at = links->before[at - 1])
				if (is_freed_before(table, &block, &table->faults[at - 1]))
					faults->items[at - 1].kind = DX_FAULT_DOUBLE;
		}
		dx_block_pass_end(&pass);
	}
}

COMPARE_BY(by_number, struct dx_fault, event.number)

/* Find the faults' events, and order the faults by them. */
static void events_find(struct dx_query *query, const struct heap_table *table, struct dx_faults *faults)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < faults->count && !query->is_stopped; i++) {
		faults->items[kept].kind = faults->items[i].kind;
		kept += dx_event_find(query, table->faults[i].point, &faults->items[kept].event);
	}
	faults->count = kept;
	if (kept)
		qsort(faults->items, kept, sizeof(*faults->items), by_number);
}

const struct dx_fault *dx_faults_find(struct dx_query *query, uint32_t *count)
{
	struct dx_session *session = query->session;
	const struct heap_table *table = session->faults ? NULL : dx_session_table(session);
	struct fault_links links = {.before = NULL};
	*count = session->faults ? session->faults->count : 0;
	if (session->faults || !table)
		return session->faults ? session->faults->items : NULL;
	if (table->fault_count == HEAP_FAULTS_MAX) {
		dx_stop(query, -1, "more than a million frees end no block of this trace");
		return NULL;
	}
	struct dx_faults *faults = memory_zeroed(1, sizeof(*faults));
	faults->count = table->fault_count;
	faults->items = memory_zeroed(faults->count, sizeof(*faults->items));
	for (uint32_t i = 0; i < faults->count; i++)
		faults->items[i].kind = DX_FAULT_UNKNOWN;
	faults_link(table, faults, &links);
	if (faults->count)
		blocks_pass(query, table, faults, &links);
	events_find(query, table, faults);
	map_fini(&links.last);
	free(links.before);
	if (query->is_stopped) {
		faults_end(faults);
		return NULL;
	}
	session->faults = faults;
	dx_on_release(&session->whole, faults_end, faults);
	*count = faults->count;
	return faults->items;
}

enum dx_fault_kind dx_fault_of(struct dx_query *query, const struct dx_event *event)
{
	uint32_t count, place;
	const struct dx_fault *items = dx_faults_find(query, &count);
	BISECT(place, count, i, items[i].event.number < event->number);
	return place < count && items[place].event.number == event->number ? items[place].kind : DX_FAULT_NONE;
}
