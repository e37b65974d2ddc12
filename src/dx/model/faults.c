/* SPDX-License-Identifier: MIT */
/*
 * The model counts frees that end no block; it does not say which they are. A pass over the events, with a table of the
 * addresses seen so far, finds the frees that may be such; a pass over the allocations removes those that did end one
 * (calls of two threads may have stamps in the wrong order).
 */
#include "dx/model/faults.h"

#include <stdlib.h>
#include <string.h>

#include "base/events.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/memory.h"
#include "dx/model/block_pass.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

struct dx_faults {
	struct dx_fault *items;
	uint32_t count;
	size_t capacity;
	struct map by_address; /* of an address: the first of its items plus one */
	uint32_t *next;        /* of an item: the next one of its address plus one */
};

enum { ADDRESS_LIVE = 1, ADDRESS_DEAD = 2, FAULTS_MAX = 1 << 20 };

static void faults_end(void *context)
{
	struct dx_faults *faults = context;
	map_fini(&faults->by_address);
	free(faults->next);
	free(faults->items);
	free(faults);
}

static uint64_t address_key(uint32_t process, uint64_t address)
{
	return address ^ (uint64_t)process << 48;
}

static void fault_add(struct dx_query *query, struct dx_faults *faults, const struct dx_event *event, uint32_t known)
{
	if (faults->count == FAULTS_MAX) {
		dx_stop(query, -1, "more than a million frees end no block of this trace");
		return;
	}
	memory_grow(faults->items, faults->count, faults->capacity);
	/* With the bytes between its members: objects are compared, and hashed, by all of their bytes. */
	struct dx_fault *fault = &faults->items[faults->count++];
	memcpy(&fault->event, event, sizeof(*event));
	fault->kind = known == ADDRESS_DEAD ? DX_FAULT_DOUBLE : DX_FAULT_UNKNOWN;
}

static void event_apply(struct dx_query *query, struct dx_faults *faults, struct map *addresses,
			const struct dx_event *event)
{
	bool added, has_ended = event->kind == EVENT_FREE || event->kind == EVENT_REALLOC;
	uint64_t old = event->kind == EVENT_REALLOC ? event->previous : event->address;
	if (event->flags & EVENT_FAILED)
		return;
	if (has_ended && old) {
		uint32_t *state = map_add(addresses, address_key(event->process, old), &added);
		if (*state != ADDRESS_LIVE)
			fault_add(query, faults, event, *state);
		*state = ADDRESS_DEAD;
	}
	bool has_begun = (event->kind == EVENT_ALLOC || event->kind == EVENT_REALLOC) && event->address &&
			 !(event->flags & EVENT_IN_FLIGHT);
	if (has_begun)
		*map_add(addresses, address_key(event->process, event->address), &added) = ADDRESS_LIVE;
}

static void events_pass(struct dx_query *query, struct dx_faults *faults)
{
	struct dx_event_reader *reader = dx_event_reader_new(query->session->trace);
	struct map addresses = {NULL};
	struct dx_event event;
	struct diag diag = {""};
	int status = 1;
	while (dx_step(query, "HeapAnalyze", -1) && (status = dx_event_reader_next(reader, &event, &diag)) > 0) {
		event_apply(query, faults, &addresses, &event);
		if (addresses.cells && ((size_t)sizeof(struct map_cell) << addresses.bits) > query->budget.limit_bytes)
			dx_stop(query, -1, "HeapAnalyze: more than the %zu MiB that -memory allows are needed",
				query->budget.limit_bytes >> 20);
	}
	if (status < 0)
		dx_stop(query, -1, "%s", diag.text);
	map_fini(&addresses);
	dx_event_reader_free(reader);
}

/* Whether the process is `of`, or was forked from it at or after a time. */
static bool descends(const struct trace_dictionary *dictionary, uint32_t process, uint32_t of,
		     const struct heap_allocation *row)
{
	for (unsigned i = 0; i < dictionary->process_count && process < dictionary->process_count; i++) {
		int64_t start_ns = dictionary->processes[process].start_ns;
		process = dictionary->processes[process].forked_from;
		if (process == of)
			return row->birth_ns <= start_ns && (row->end_ns > start_ns || row->end == HEAP_END_OPEN);
	}
	return false;
}

/* Whether the block is the one that the free ended, or the process's copy of it. */
static bool has_ended(const struct trace_dictionary *dictionary, const struct dx_fault *fault,
		      const struct dx_block *block)
{
	const struct dx_event *event = &fault->event;
	int64_t end_ns = event->kind == EVENT_REALLOC ? event->time_ns - event->duration_ns : event->time_ns;
	uint32_t process = dictionary->threads[block->row.thread].process;
	if (process == event->process)
		return (block->row.end == HEAP_END_FREE || block->row.end == HEAP_END_REALLOC) &&
		       block->details.end_thread == event->thread && block->row.end_ns == end_ns;
	return fault->kind == DX_FAULT_UNKNOWN && descends(dictionary, event->process, process, &block->row);
}

static void blocks_pass(struct dx_query *query, struct dx_faults *faults)
{
	struct dx_block_pass pass = {.has_scan = false};
	struct dx_block block;
	const enum dx_block_choice choices[] = {DX_BLOCKS_ALL, DX_BLOCKS_LIVE};
	for (unsigned i = 0; i < 2; i++) {
		/* Earlier blocks are those that live at the start. */
		dx_block_pass_begin(&pass, query, TRACE_NONE, choices[i], dx_position(0, UINT32_MAX));
		while (dx_block_pass_next(&pass, query, &block)) {
			const uint32_t *first = map_find(&faults->by_address, block.details.address);
			for (uint32_t at = first ? *first : 0; at; at = faults->next[at - 1])
				if (has_ended(query->session->dictionary, &faults->items[at - 1], &block))
					faults->items[at - 1].kind = DX_FAULT_NONE;
		}
		dx_block_pass_end(&pass);
		memset(&pass, 0, sizeof(pass));
	}
}

static void faults_link(struct dx_faults *faults)
{
	bool added;
	faults->next = memory_zeroed((size_t)faults->count + 1, sizeof(*faults->next));
	for (uint32_t i = 0; i < faults->count; i++) {
		const struct dx_event *event = &faults->items[i].event;
		uint64_t address = event->kind == EVENT_REALLOC ? event->previous : event->address;
		uint32_t *first = map_add(&faults->by_address, address, &added);
		faults->next[i] = *first;
		*first = i + 1;
	}
}

const struct dx_fault *dx_faults_find(struct dx_query *query, uint32_t *count)
{
	struct dx_session *session = query->session;
	*count = 0;
	if (session->faults) {
		*count = session->faults->count;
		return session->faults->items;
	}
	struct dx_faults *faults = memory_zeroed(1, sizeof(*faults));
	const struct heap_table *table = dx_session_table(session);
	if (table && table->unknown_frees)
		events_pass(query, faults);
	faults_link(faults);
	if (faults->count && !query->is_stopped)
		blocks_pass(query, faults);
	if (query->is_stopped) {
		faults_end(faults);
		return NULL;
	}
	uint32_t kept = 0;
	for (uint32_t i = 0; i < faults->count; i++)
		if (faults->items[i].kind != DX_FAULT_NONE)
			faults->items[kept++] = faults->items[i];
	faults->count = kept;
	session->faults = faults;
	dx_on_release(&session->whole, faults_end, faults);
	*count = kept;
	return faults->items;
}

enum dx_fault_kind dx_fault_of(struct dx_query *query, const struct dx_event *event)
{
	uint32_t count, first = 0;
	const struct dx_fault *items = dx_faults_find(query, &count);
	for (uint32_t end = count; first < end;) {
		uint32_t middle = first + (end - first) / 2;
		if (items[middle].event.number < event->number)
			first = middle + 1;
		else
			end = middle;
	}
	return items && first < count && items[first].event.number == event->number ? items[first].kind : DX_FAULT_NONE;
}
