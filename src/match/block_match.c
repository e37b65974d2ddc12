/* SPDX-License-Identifier: MIT */
/*
 * Each address in the block's points has a cell of eight bytes, so that all cells stay in the processor's cache. It
 * holds the row that is live there now, or none.
 *
 * The cell is new at the address's first point. A first End belongs to an earlier allocation, which must be found
 * elsewhere; a first Begin means that nothing may be live there before. From then on Begins and Ends must alternate. If
 * they do not, or if a point needs more than that, the block is not plain.
 */
#include "match/block_match.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/events.h"
#include "base/hash.h"
#include "base/memory.h"
#include "match/born.h"
#include "trace/reader.h"

/* Sums of a block's sizes cannot overflow. */
#define PLAIN_SIZE_MAX (UINT64_C(1) << 40)
enum { AHEAD = 12 /* points whose cells are fetched early */, CELL_ROW_BITS = 17, CELL_FIRST_BITS = 6 };
#define CELL_NOBODY (UINT64_C(1) << 16) /* in place of a row: the address has no live row now */
#define CELL_ROW_MASK ((UINT64_C(1) << CELL_ROW_BITS) - 1)
#define CELL_ADDRESS_MAX ((UINT64_C(1) << (64 - CELL_ROW_BITS)) - 1)
_Static_assert(TRACE_BLOCK_EVENTS_MAX <= CELL_NOBODY, "a row of an event block fits into a cell");

/* ---- cells: an address, and the row that lives there; 0: empty ---- */

/* Make an empty table with room for `count`, as small as possible. */
static void cells_reserve(struct block_match *local, uint32_t count)
{
	local->cell_bits = CELL_FIRST_BITS;
	while ((1u << local->cell_bits) / 8 * 5 < count)
		local->cell_bits++;
	size_t needed = (size_t)1 << local->cell_bits;
	if (needed > local->cell_capacity) {
		local->cells = memory_resize(local->cells, needed, sizeof(*local->cells));
		local->cell_capacity = needed;
	}
	memset(local->cells, 0, needed * sizeof(*local->cells));
}

static uint32_t cell_place(uint32_t bits, uint64_t address)
{
	return hash_bits(address >> 4 ^ address << 60, bits);
}

/* Return the cell of the address, or an empty one. */
static uint64_t *cell_probe(uint64_t *cells, uint32_t bits, uint64_t address)
{
	uint32_t mask = (1u << bits) - 1, place = cell_place(bits, address);
	while (cells[place] && cells[place] >> CELL_ROW_BITS != address)
		place = (place + 1) & mask;
	return &cells[place];
}

static void block_match_reserve(struct block_match *local, uint32_t count)
{
	local->open_count = local->taken_count = local->site_count = 0;
	local->open_bytes = 0;
	local->takes_before = false;
	cells_reserve(local, count);
	if (!local->notes)
		local->notes = memory_resize(NULL, 1 << WITHIN_NOTE_BITS, sizeof(*local->notes));
	memset(local->notes, 0xff, sizeof(*local->notes) << WITHIN_NOTE_BITS);
	if (count <= local->capacity)
		return;
	local->capacity = count;
#define RESERVE(items) local->items = memory_resize(local->items, count, sizeof(*local->items))
	RESERVE(rows);
	RESERVE(details);
	RESERVE(begin_of);
	RESERVE(end_of);
	RESERVE(ended);
	RESERVE(open);
	RESERVE(fresh);
	RESERVE(ends);
	RESERVE(taken);
	RESERVE(sites);
	RESERVE(site_ids);
	RESERVE(sums);
	RESERVE(changes);
#undef RESERVE
}

static uint32_t site_add(struct block_match *local, struct heap_site site)
{
	uint32_t place = (site.stack * 31 + site.entry) * 0x9e3779b1u >> (32 - WITHIN_NOTE_BITS);
	struct block_match_note *note = &local->notes[place];
	if (note->stack != site.stack || note->entry != site.entry || note->site == HEAP_NONE) {
		assert(local->site_count < local->capacity);
		*note = (struct block_match_note){site.stack, site.entry, local->site_count};
		local->sums[local->site_count] = (struct block_match_sum){0};
		local->sites[local->site_count++] = site;
	}
	return note->site;
}

/* ---- pairs of points ---- */

static uint32_t choose(bool is_one, uint32_t one, uint32_t other)
{
	return other ^ ((one ^ other) & (0 - (uint32_t)is_one));
}

/* Pair the points. No branch depends on whether the next point is a Begin, which cannot be predicted. An element
   written behind a list becomes part of it only when the list's count is raised. */
static void points_pair(struct block_match *local, const struct trace_block *block, const struct point_place *places,
			uint32_t count)
{
	uint32_t row_count = 0, fresh_count = 0, end_count = 0, *begin_of = local->begin_of, *end_of = local->end_of,
		 *ended = local->ended;
	uint64_t *fresh = local->fresh, *cells = local->cells;
	uint32_t bits = local->cell_bits;
	struct block_match_end *ends = local->ends;
	bool is_plain = true;
	for (uint32_t i = 0; i < count; i++) {
		__builtin_prefetch(&cells[cell_place(bits, places[i + AHEAD < count ? i + AHEAD : i].address)], 1);
		if (places[i].kind == HEAP_POINT_NONE) {
			is_plain &= block->kind[places[i].row] != EVENT_DESTROY;
			continue;
		}
		uint64_t address = places[i].address & CELL_ADDRESS_MAX;
		uint64_t *cell = cell_probe(cells, bits, address);
		uint32_t row = (uint32_t)(*cell & CELL_ROW_MASK);
		bool is_begin = places[i].kind == HEAP_POINT_BEGIN, is_first = !*cell,
		     has_row = !is_first & (row != CELL_NOBODY);
		bool is_first_end = !is_begin & is_first, is_end_of_row = !is_begin & has_row;
		is_plain &= (is_begin != (has_row | is_first_end)) & (address == places[i].address);
		begin_of[row_count] = i;
		end_of[choose(is_end_of_row, row, row_count)] = choose(is_begin, HEAP_NONE, i);
		ended[i] = choose(has_row, row, WITHIN_END + end_count);
		fresh[fresh_count] = address;
		fresh_count += is_begin & is_first;
		ends[end_count].address = address;
		ends[end_count].place = i;
		end_count += is_first_end;
		*cell = address << CELL_ROW_BITS | choose(is_begin, row_count, CELL_NOBODY);
		row_count += is_begin;
	}
	local->is_plain = is_plain;
	local->count = row_count;
	local->fresh_count = fresh_count;
	local->end_count = end_count;
}

/* ---- what they say ---- */

/* Note what a realloc's row took: its thread's last point before ended that. If another row began between, a signal
   handler made it. */
static void taken_add(struct block_match *local, const struct trace_block *block, const struct point_place *places,
		      uint32_t row)
{
	assert(local->taken_count < local->capacity);
	for (uint32_t i = local->begin_of[row]; i-- > 0 && places[i].kind != HEAP_POINT_BEGIN;) {
		if (places[i].kind != HEAP_POINT_END || block->kind[places[i].row] != EVENT_REALLOC)
			continue;
		local->taken[local->taken_count++] = (struct block_match_taken){row, local->ended[i]};
		return;
	}
	local->takes_before |= !row;
}

/* Find what a realloc after the last row took. */
static void last_realloc_find(struct block_match *local, const struct trace_block *block,
			      const struct point_place *places, uint32_t count)
{
	local->last_realloc_from = HEAP_NONE;
	for (uint32_t i = count;
	     i-- > 0 && places[i].kind != HEAP_POINT_BEGIN && local->last_realloc_from == HEAP_NONE;)
		if (places[i].kind == HEAP_POINT_END && block->kind[places[i].row] == EVENT_REALLOC)
			local->last_realloc_from = local->ended[i];
}

static void row_end(struct block_match *local, const struct trace_block *block, const struct point_place *places,
		    uint32_t row)
{
	struct heap_allocation *allocation = &local->rows[row];
	uint32_t place = local->end_of[row];
	const struct point_place *at = &places[place];
	bool is_next = place == local->begin_of[row] + 1;
	local->is_plain &= !born_is_measured(block, at->row);
	allocation->end = born_end(block, at->row);
	allocation->end_ns = at->time_ns;
	allocation->end_site = site_add(local, born_site(block, at->row));
	allocation->flags |= is_next && allocation->end == HEAP_END_FREE ? HEAP_TEMPORARY : 0;
	local->details[row].end_thread = block->thread;
	uint64_t size_bytes = born_size(block, places[local->begin_of[row]].row);
	struct block_match_sum *sum = &local->sums[allocation->site];
	sum->given_count++;
	sum->given_bytes += size_bytes;
	sum->temporary_count += !!(allocation->flags & HEAP_TEMPORARY);
	local->changes[place] = 0 - size_bytes;
}

static void rows_make(struct block_match *local, const struct trace_block *block, const struct point_place *places)
{
	for (uint32_t row = 0; row < local->count; row++) {
		const struct point_place *at = &places[local->begin_of[row]];
		struct heap_allocation *allocation = &local->rows[row];
		born_allocation(allocation, block, at);
		allocation->site = site_add(local, born_site(block, at->row));
		born_details(&local->details[row], block, at->row);
		/* Not from the row: what was written to parts of a word cannot be read as a whole at once. */
		uint64_t size_bytes = born_size(block, at->row);
		struct block_match_sum *sum = &local->sums[allocation->site];
		sum->count++;
		sum->bytes += size_bytes;
		local->changes[local->begin_of[row]] = size_bytes;
		local->is_plain &= size_bytes <= PLAIN_SIZE_MAX && block->kind[at->row] != EVENT_EARLIER &&
				   !(block->flags[at->row] & EVENT_FOLDED);
		if (allocation->flags & HEAP_REALLOC) {
			sum->realloc_count++;
			sum->moved_count += !!(allocation->flags & HEAP_MOVED);
			taken_add(local, block, places, row);
		}
		if (local->end_of[row] != HEAP_NONE) {
			row_end(local, block, places, row);
			continue;
		}
		local->open[local->open_count++] = row;
		local->open_bytes += size_bytes;
	}
}

static void ends_make(struct block_match *local, const struct trace_block *block, const struct point_place *places)
{
	for (uint32_t i = 0; i < local->end_count; i++) {
		struct block_match_end *end = &local->ends[i];
		const struct point_place *at = &places[end->place];
		local->is_plain &= !born_is_measured(block, at->row);
		end->time_ns = at->time_ns;
		end->site = site_add(local, born_site(block, at->row));
		end->end = (uint8_t)born_end(block, at->row);
	}
}

static void changes_sum(struct block_match *local, uint32_t count)
{
	int64_t sum_bytes = 0, most_bytes = 0;
	for (uint32_t i = 0; i < count; i++) {
		sum_bytes += (int64_t)local->changes[i];
		most_bytes = sum_bytes > most_bytes ? sum_bytes : most_bytes;
	}
	local->sum_bytes = (uint64_t)sum_bytes;
	local->most_bytes = (uint64_t)most_bytes;
}

void block_match_make(struct block_match *local, const struct trace_block *block, const struct point_place *places,
		      uint32_t count)
{
	block_match_reserve(local, count);
	points_pair(local, block, places, count);
	if (!local->is_plain)
		return;
	memset(local->changes, 0, count * sizeof(*local->changes));
	rows_make(local, block, places);
	ends_make(local, block, places);
	changes_sum(local, count);
	last_realloc_find(local, block, places, count);
	const struct point_place *last = count ? &places[count - 1] : NULL;
	assert(local->count <= count && local->open_count <= local->count);
	assert(local->fresh_count + local->end_count <= count);
	local->last_alloc = last && last->kind == HEAP_POINT_BEGIN ? local->count - 1 : HEAP_NONE;
}

void block_match_fini(struct block_match *local)
{
	free(local->cells);
	free(local->rows);
	free(local->details);
	free(local->begin_of);
	free(local->end_of);
	free(local->ended);
	free(local->open);
	free(local->fresh);
	free(local->ends);
	free(local->taken);
	free(local->sites);
	free(local->site_ids);
	free(local->sums);
	free(local->changes);
	free(local->notes);
	*local = (struct block_match){0};
}
