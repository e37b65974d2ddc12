/* SPDX-License-Identifier: MIT */
#include "match/match_rows.h"

#include <assert.h>

#include "base/memory.h"
#include "match/born.h"
#include "match/matching.h"
#include "match/running_numbers.h"
#include "table/weight.h"
#include "trace/reader.h"

/* Pack the oldest rows of the ring, up to the end of a group. */
void matching_ring_write(struct matching *matching)
{
	uint32_t first = matching->written, left = matching->table->count - first, room = PACK_ROWS - first % PACK_ROWS;
	assert(left > 0);
	uint32_t count = left < room ? left : room;
	const struct heap_allocation *rows = &matching->ring[first % RING_ROWS];
	const struct heap_details *details = &matching->ring_details[first % RING_ROWS];
	packing_add(matching->packing, rows, details, count);
	for (uint32_t i = 0; i < count; i++)
		matching_watch_add(matching, &rows[i]);
	for (uint32_t i = 0; i < count; i++)
		if (rows[i].end == HEAP_END_OPEN)
			survivors_add(matching->survivors, first + i, &rows[i], details[i].end_point);
	matching->written += count;
	survivors_complete(matching->survivors, matching->written);
}

uint32_t matching_site(struct matching *matching, struct heap_site site)
{
	struct heap_table *table = matching->table;
	/* A stack has one function that it calls, as a rule. */
	struct site_note *note = &matching->site_notes[site.stack];
	if (note->site != HEAP_NONE && note->entry == site.entry)
		return note->site;
	bool added;
	uint32_t *id = map_add(&matching->site_ids, map_pair(site.stack, site.entry), &added);
	if (added) {
		*id = table->site_count;
		memory_grow(table->sites, table->site_count, matching->site_capacity);
		memory_grow(table->sums.numbers, table->site_count, matching->numbers_capacity);
		memory_grow(matching->last_user, table->site_count, matching->user_capacity);
		table->sums.numbers[table->site_count] = (struct heap_numbers){0};
		matching->last_user[table->site_count] = HEAP_NONE;
		table->sites[table->site_count++] = site;
	}
	*note = (struct site_note){site.entry, *id};
	assert(note->site < table->site_count);
	return note->site;
}

uint32_t matching_site_of(struct matching *matching, const struct trace_block *block, uint32_t row)
{
	return matching_site(matching, born_site(block, row));
}

void matching_site_use(struct matching *matching, uint32_t site, uint32_t thread)
{
	assert(site < matching->table->site_count);
	struct heap_sums *sums = &matching->table->sums;
	bool added;
	if (matching->last_user[site] == thread)
		return;
	matching->last_user[site] = thread;
	map_add(&matching->seen, map_pair(site, thread), &added);
	if (!added)
		return;
	memory_grow(sums->uses, sums->use_count, matching->use_capacity);
	sums->uses[sums->use_count++] = (struct heap_use){site, thread};
}

/* Add a live row at the end of the table. */
uint32_t matching_row_add(struct matching *matching, const struct heap_allocation *row,
			  const struct heap_details *details)
{
	assert(row->end == HEAP_END_OPEN && row->site < matching->table->site_count);
	struct heap_table *table = matching->table;
	struct heap_process *process = &table->processes[matching_process_of(matching, row)];
	if (table->count - matching->written == RING_ROWS)
		matching_ring_write(matching);
	uint32_t id = table->count++;
	matching->ring[id % RING_ROWS] = *row;
	matching->ring_details[id % RING_ROWS] = *details;
	table->nested_count += !!(row->flags & HEAP_NESTED);
	if (row->flags & HEAP_NESTED)
		return id;
	struct heap_weight weight = heap_weigh(table, row);
	process->live_count += weight.count;
	process->live_bytes += weight.bytes;
	numbers_begin(&table->sums.numbers[row->site], weight, row->flags);
	matching_site_use(matching, row->site, row->thread);
	if (row->flags & HEAP_EARLIER)
		level_raise(&matching->level, weight.bytes);
	else
		level_change(&matching->level, row->birth_ns, weight.bytes);
	return id;
}

/* End a live row without a word to the level. */
void matching_row_end(struct matching *matching, uint32_t id, struct heap_allocation *row, const struct row_end *end)
{
	assert(row->end == HEAP_END_OPEN && end->end < HEAP_END_OPEN);
	struct heap_process *process = &matching->table->processes[matching_process_of(matching, row)];
	/* Before what is in the same word as the size is written. */
	struct heap_weight weight = heap_weigh(matching->table, row);
	row->end = end->end;
	row->end_ns = end->time_ns > row->birth_ns ? end->time_ns : row->birth_ns;
	*matching_end_point(matching, id, row) = row->end_ns == end->time_ns ? end->point : HEAP_NONE;
	row->end_site = end->site;
	if (!(row->flags & HEAP_NESTED))
		numbers_end(&matching->table->sums.numbers[row->site], weight, end->end, row->flags);
	if (end->end != HEAP_END_EXIT && !(row->flags & HEAP_NESTED)) {
		process->live_count -= weight.count;
		process->live_bytes -= weight.bytes;
	}
	if (id >= matching->written) {
		matching->ring_details[id % RING_ROWS].end_thread = end->thread;
		return;
	}
	if (matching->how.watch)
		matching->how.watch->end(matching->how.watch->context, matching->table, row);
	survivor_of(row)->end_thread = end->thread;
	survivors_end(matching->survivors, id);
}

/* End a live row, and change the level. */
void matching_live_row_end(struct matching *matching, uint32_t id, struct heap_allocation *row,
			   const struct row_end *end)
{
	if (!(row->flags & HEAP_NESTED))
		level_change(&matching->level, end->time_ns > row->birth_ns ? end->time_ns : row->birth_ns,
			     0 - heap_weigh(matching->table, row).bytes);
	matching_row_end(matching, id, row, end);
}

void matching_allocation_end(struct matching *matching, uint32_t id, const struct row_end *end)
{
	struct heap_allocation *row = matching_live_row(matching, id);
	if (row)
		matching_live_row_end(matching, id, row, end);
}

uint32_t *matching_end_point(struct matching *matching, uint32_t id, struct heap_allocation *row)
{
	return id >= matching->written ? &matching->ring_details[id % RING_ROWS].end_point
				       : &survivor_of(row)->end_point;
}

void matching_eventless_end(struct matching *matching, uint32_t id, enum heap_end end, int64_t time_ns)
{
	matching_allocation_end(matching, id,
				&(struct row_end){.time_ns = time_ns,
						  .site = HEAP_NONE,
						  .thread = HEAP_NONE,
						  .point = HEAP_NONE,
						  .end = (uint8_t)end});
}
