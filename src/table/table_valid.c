/* SPDX-License-Identifier: MIT */
#include "table/table_valid.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "table/live.h"
#include "table/table.h"
#include "table/table_limits.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* ---- blocks by address ---- */

bool live_is_valid(const struct live *live)
{
	if (!live->cells)
		return !live->count && !live->bits;
	uint64_t size = UINT64_C(1) << live->bits, used = 0;
	for (uint64_t i = 0; i < size; i++) {
		const struct live_cell *cell = &live->cells[i];
		used += cell->address != 0;
		/* No address is there twice, and none is behind a hole. */
		if (cell->address && live_probe(live, cell->address) != cell)
			return false;
	}
	return used == live->count && live->count <= live_room(live->bits);
}

/* ---- groups ---- */

static bool is_written(const struct heap_groups *groups, const struct heap_strip *strip)
{
	return !groups->end || (strip->offset <= groups->end && strip->bytes <= groups->end - strip->offset);
}

bool groups_is_valid(const struct heap_groups *groups)
{
	if (groups->count > groups->capacity || (groups->reserved && groups->reserved < groups->count))
		return false;
	for (uint32_t i = 0; i < groups->count; i++) {
		const struct heap_group *group = &groups->items[i];
		if (group->first_ns > group->last_ns || group->end_count > PACK_ROWS || group->open_count > PACK_ROWS ||
		    group->row_count > PACK_ROWS)
			return false;
	}
	for (uint32_t i = 0; i < groups_strip_count(groups->count); i++)
		for (unsigned column = 0; column < PACK_STRIPS; column++)
			if (!is_written(groups, &groups->strips[i].of[column]))
				return false;
	return true;
}

/* ---- the table ---- */

/* The sums of its rows. */
struct sums_found {
	struct heap_numbers *numbers; /* by site */
	uint64_t nested_count;
};

static bool sites_are_valid(const struct heap_table *table)
{
	const struct trace_dictionary *dictionary = table->dictionary;
	struct map sites = {0};
	bool is_valid = true, added;
	for (uint32_t i = 0; i < table->site_count && is_valid; i++) {
		const struct heap_site *site = &table->sites[i];
		map_add(&sites, map_pair(site->stack, site->entry), &added);
		is_valid = added && (!site->stack || site->stack < dictionary->node_count) &&
			   (site->entry >= HEAP_OVERHEAD || site->entry < dictionary->entry_count);
	}
	map_fini(&sites);
	return is_valid;
}

/* Whether following `inside` from each heap ends somewhere. */
static bool heaps_are_valid(const struct heap_table *table)
{
	uint32_t count = table->dictionary->heap_count;
	for (uint32_t i = 0; i < count; i++)
		if (table->inside[i] != TRACE_NONE && (table->inside[i] >= count || table->inside[i] == i))
			return false;
	return true;
}

static bool row_is_valid(const struct heap_table *table, const struct heap_allocation *row,
			 const struct heap_details *details, uint32_t id)
{
	bool is_open = row->end == HEAP_END_OPEN;
	return row->site < table->site_count && row->end <= HEAP_END_OPEN &&
	       (row->end_site == HEAP_NONE || row->end_site < table->site_count) &&
	       row->thread < table->dictionary->thread_count &&
	       (row->heap == TRACE_NONE || row->heap < table->dictionary->heap_count) &&
	       (is_open || row->birth_ns <= row->end_ns) && (!(row->flags & HEAP_EARLIER) || row->birth_ns == 0) &&
	       (!(row->flags & HEAP_MOVED) || row->flags & HEAP_REALLOC) &&
	       (details->previous == HEAP_NONE || details->previous < id) &&
	       (details->end_thread == HEAP_NONE || details->end_thread < table->dictionary->thread_count) &&
	       (details->birth_point == HEAP_NONE || details->birth_point < table->point_count) &&
	       (details->end_point == HEAP_NONE ||
		(details->end_point < table->point_count && row->end <= HEAP_END_CONFLICT && row->end != HEAP_END_GAP));
}

static bool is_in_group(const struct heap_group *group, const struct heap_allocation *row)
{
	bool is_between = row->birth_ns >= group->first_ns && row->birth_ns <= group->last_ns;
	return row->flags & HEAP_EARLIER ? group->first_ns == INT64_MIN
					 : is_between && (row->end == HEAP_END_OPEN || row->end_ns <= group->end_ns);
}

static void row_count(struct sums_found *found, const struct heap_allocation *row)
{
	struct heap_numbers *numbers = &found->numbers[row->site];
	found->nested_count += !!(row->flags & HEAP_NESTED);
	if (row->flags & HEAP_NESTED)
		return;
	numbers->total_count++;
	numbers->total_bytes += row->size_bytes;
	numbers->outstanding_count += !heap_end_is_given_back(row->end);
	numbers->outstanding_bytes += heap_end_is_given_back(row->end) ? 0 : row->size_bytes;
}

static bool group_is_valid(const struct heap_table *table, struct groups_reader *reader, uint32_t at,
			   struct sums_found *found)
{
	static const unsigned wanted = PACK_EVERYTHING;
	const struct pack_limits limits = heap_table_limits(table);
	const struct heap_group *group = &table->groups.items[at];
	uint32_t first = at * PACK_ROWS, count = table->count - first < PACK_ROWS ? table->count - first : PACK_ROWS,
		 open_count = 0;
	int64_t end_ns = INT64_MIN;
	struct pack_columns columns;
	struct heap_details details[PACK_ROWS];
	if (!groups_read(reader, &table->groups, at, first, count, &limits, wanted, &columns, details))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct heap_allocation row = pack_row(&columns, i);
		if (!row_is_valid(table, &row, &details[i], first + i) || !is_in_group(group, &row))
			return false;
		row_count(found, &row);
		open_count += row.end == HEAP_END_OPEN;
		end_ns = row.end != HEAP_END_OPEN && row.end_ns > end_ns ? row.end_ns : end_ns;
	}
	return open_count == group->open_count && group->end_ns == (open_count ? INT64_MAX : end_ns);
}

/* Whether they are what the rows come to, each use is of a site and a thread, and none is there twice. */
static bool sums_are_valid(const struct heap_table *table, const struct sums_found *found)
{
	const struct heap_sums *sums = &table->sums;
	for (uint32_t i = 0; sums->numbers && i < table->site_count; i++) {
		const struct heap_numbers *told = &sums->numbers[i], *counted = &found->numbers[i];
		if (told->total_count != counted->total_count || told->total_bytes != counted->total_bytes ||
		    told->outstanding_count != counted->outstanding_count ||
		    told->outstanding_bytes != counted->outstanding_bytes)
			return false;
	}
	for (size_t i = 0; i < sums->use_count; i++) {
		const struct heap_use *use = &sums->uses[i];
		if (use->cell >= table->site_count || use->thread >= table->dictionary->thread_count ||
		    (i && map_pair(use[-1].cell, use[-1].thread) >= map_pair(use->cell, use->thread)))
			return false;
	}
	return sums->numbers || !sums->use_count;
}

bool heap_table_is_valid(const struct heap_table *table)
{
	struct groups_reader reader = {0};
	struct sums_found found = {memory_zeroed((size_t)table->site_count + 1, sizeof(*found.numbers)), 0};
	bool is_valid = table->groups.count == ((uint64_t)table->count + PACK_ROWS - 1) / PACK_ROWS &&
			groups_is_valid(&table->groups) && heap_points_are_good(table) && sites_are_valid(table) &&
			heaps_are_valid(table);
	for (uint32_t i = 0; i < table->groups.count && is_valid; i++)
		is_valid = group_is_valid(table, &reader, i, &found);
	is_valid = is_valid && found.nested_count == table->nested_count && sums_are_valid(table, &found);
	for (uint32_t i = 0; table->sum_sites && i < table->dictionary->sum_count && is_valid; i++)
		is_valid = table->sum_sites[i] < table->site_count;
	groups_reader_fini(&reader);
	free(found.numbers);
	return is_valid;
}
