/* SPDX-License-Identifier: MIT */
#include "dx/model/block_pass.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/memory.h"
#include "dx/model/block_ends.h"
#include "table/table_limits.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* ---- positions ---- */

/* Effects before a position are applied; a beginning at it is too, an ending at it is not. */
static bool is_live(const struct dx_block_pass *pass, const struct heap_table *table, const struct heap_allocation *row,
		    const struct heap_details *details)
{
	int64_t time_ns = pass->position.sequence_ns;
	uint32_t step = pass->position.step;
	/* At no position: what each process had before its end. */
	if (pass->position.kind == DX_ABSENT)
		return row->end == HEAP_END_OPEN || row->end == HEAP_END_EXIT;
	bool is_bare = step == UINT32_MAX, is_earlier = row->flags & HEAP_EARLIER;
	/* At the trace's end all calls are over, and processes that end then are still there. */
	if (time_ns == INT64_MAX)
		return row->end == HEAP_END_OPEN ||
		       (row->end == HEAP_END_EXIT && row->end_ns >= table->dictionary->duration_ns);
	if (!is_earlier && row->birth_ns > time_ns)
		return false;
	if (!is_earlier && row->birth_ns == time_ns && heap_table_step(table, details->birth_point) > step)
		return false;
	if (row->end == HEAP_END_OPEN || row->end_ns > time_ns)
		return true;
	if (row->end_ns != time_ns || is_bare)
		return false;
	/* The end of a process is behind its calls. */
	return row->end == HEAP_END_EXIT ||
	       (row->end <= HEAP_END_DESTROY && heap_table_step(table, details->end_point) >= step);
}

/* ---- passes ---- */

void dx_block_pass_begin(struct dx_block_pass *pass, struct dx_query *query, uint32_t process,
			 enum dx_block_choice choice, struct dx_value position)
{
	assert(position.kind == DX_POSITION || position.kind == DX_ABSENT);
	struct heap_table *table = dx_session_table(query->session);
	struct heap_scan_plan plan = {INT64_MIN, INT64_MAX, INT64_MAX, PACK_EVERYTHING, NULL, NULL};
	pass->process = process;
	pass->choice = choice;
	pass->position = position;
	if (!table) {
		dx_stop(query, -1, "the allocations of the trace cannot be found");
		return;
	}
	if (choice == DX_BLOCKS_LIVE && position.kind == DX_POSITION) {
		plan.to_ns = position.sequence_ns;
		bool is_edge = position.sequence_ns == INT64_MIN || position.sequence_ns == INT64_MAX;
		plan.live_from_ns = is_edge ? INT64_MIN : position.sequence_ns - 1;
		plan.from_ns = position.sequence_ns;
	}
	heap_scan_begin(&pass->scan, table, &plan, NULL);
	pass->has_scan = true;
}

static bool is_chosen(const struct dx_block_pass *pass, const struct heap_table *table,
		      const struct heap_allocation *row, const struct heap_details *details)
{
	if (pass->process != TRACE_NONE && table->dictionary->threads[row->thread].process != pass->process)
		return false;
	switch (pass->choice) {
	case DX_BLOCKS_LIVE:
		return is_live(pass, table, row, details);
	case DX_BLOCKS_OUTSTANDING:
		return !(row->flags & HEAP_EARLIER) && !heap_end_is_given_back(row->end);
	case DX_BLOCKS_CROSS:
		return !(row->flags & HEAP_EARLIER) && details->end_thread != HEAP_NONE &&
		       details->end_thread != row->thread;
	default:
		return !(row->flags & HEAP_EARLIER);
	}
}

bool dx_block_pass_next(struct dx_block_pass *pass, struct dx_query *query, struct dx_block *block)
{
	while (pass->has_scan && !query->is_stopped) {
		for (; pass->rows && pass->at < pass->rows->count; pass->at++) {
			const struct heap_allocation row = heap_rows_get(pass->rows, pass->at);
			const struct heap_details *details = &pass->rows->details[pass->at];
			if (!is_chosen(pass, query->session->table, &row, details))
				continue;
			memset(block, 0, sizeof(*block));
			block->row = row;
			block->details = *details;
			block->number = pass->rows->first + pass->at++;
			block->owner = TRACE_NONE;
			return true;
		}
		pass->at = 0;
		pass->rows = heap_scan_next(&pass->scan);
		if (*query->session->table->is_damaged)
			dx_stop(query, -1, "the index of the trace is damaged: ask again with -noIndex");
		if (!pass->rows || !dx_step(query, "Allocations", -1))
			return false;
	}
	return false;
}

void dx_block_pass_end(struct dx_block_pass *pass)
{
	if (pass->has_scan)
		heap_scan_end(&pass->scan);
	pass->has_scan = false;
}

/* ---- single blocks ---- */

/* The group that was read last, so that blocks that lie side by side are found in it. */
struct dx_group_cache {
	struct groups_reader reader;
	struct pack_columns columns;
	struct heap_details details[PACK_ROWS];
	uint32_t group, first, count;
	bool is_filled;
};

static void cache_end(void *context)
{
	struct dx_group_cache *cache = context;
	groups_reader_fini(&cache->reader);
	free(cache);
}

static bool group_load(struct dx_query *query, uint32_t group)
{
	struct dx_session *session = query->session;
	const struct heap_table *table = dx_session_table(session);
	if (!table || group >= table->groups.count)
		return false;
	if (!session->group) {
		session->group = memory_zeroed(1, sizeof(*session->group));
		dx_on_release(&session->whole, cache_end, session->group);
	}
	struct dx_group_cache *cache = session->group;
	if (cache->is_filled && cache->group == group)
		return true;
	const struct pack_limits limits = heap_table_limits(table);
	cache->group = group;
	cache->first = group * PACK_ROWS;
	cache->count = table->count - cache->first < PACK_ROWS ? table->count - cache->first : PACK_ROWS;
	cache->is_filled = groups_read(&cache->reader, &table->groups, group, cache->first, cache->count, &limits,
				       PACK_EVERYTHING, &cache->columns, cache->details);
	return cache->is_filled;
}

static void block_take(const struct dx_group_cache *cache, uint32_t i, struct dx_block *block)
{
	assert(cache->is_filled && i < cache->count);
	memset(block, 0, sizeof(*block));
	block->row = pack_row(&cache->columns, i);
	block->details = cache->details[i];
	block->number = cache->first + i;
	block->owner = TRACE_NONE;
}

bool dx_block_load(struct dx_query *query, uint32_t number, struct dx_block *block)
{
	const struct heap_table *table = dx_session_table(query->session);
	if (!table || number >= table->count || !group_load(query, number / PACK_ROWS))
		return false;
	block_take(query->session->group, number % PACK_ROWS, block);
	return true;
}

struct dx_value dx_block_at(struct dx_query *query, uint32_t number)
{
	struct dx_block *block = dx_new(query->arena, struct dx_block, 1);
	if (!dx_block_load(query, number, block))
		return dx_error(query, "there is no allocation %u", number);
	return dx_object(&dx_allocation_class, block);
}

static bool group_search(struct dx_query *query, uint32_t group, const struct dx_event *event, struct dx_block *block)
{
	assert(group < query->session->table->groups.count);
	const struct heap_group *head = &query->session->table->groups.items[group];
	if (head->first_ns > event->row.time_ns || head->last_ns < event->row.time_ns || !group_load(query, group))
		return false;
	const struct dx_group_cache *cache = query->session->group;
	for (uint32_t i = 0; i < cache->count; i++) {
		const struct heap_allocation row = pack_row(&cache->columns, i);
		if (row.birth_ns == event->row.time_ns && row.thread == event->row.thread &&
		    !(row.flags & HEAP_EARLIER) && cache->details[i].address == event->row.address) {
			block_take(cache, i, block);
			return true;
		}
	}
	return false;
}

/* The group that was read last is tried first: events are mostly asked for in their order. Groups have the order of
   their beginnings, unless stamps of threads contradict each other. */
bool dx_block_of_event(struct dx_query *query, const struct dx_event *event, struct dx_block *block)
{
	const struct heap_table *table = dx_session_table(query->session);
	bool is_begin = event->row.kind == EVENT_ALLOC || event->row.kind == EVENT_REALLOC;
	uint32_t number, first;
	if (dx_block_ended_by(query, event, &number))
		return dx_block_load(query, number, block);
	if (!table || !is_begin || !event->row.address)
		return false;
	if (query->session->group && query->session->group->is_filled &&
	    group_search(query, query->session->group->group, event, block))
		return true;
	BISECT(first, table->groups.count, i, table->groups.items[i].last_ns < event->row.time_ns);
	for (uint32_t i = 0; i < table->groups.count; i++)
		if (group_search(query, (first + i) % table->groups.count, event, block))
			return true;
	return false;
}
