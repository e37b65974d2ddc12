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
static void cells_reserve(struct block_match *match, uint32_t count)
{
	match->cell_bits = CELL_FIRST_BITS;
	while ((1u << match->cell_bits) / 8 * 5 < count)
		match->cell_bits++;
	size_t needed = (size_t)1 << match->cell_bits;
	if (needed > match->cell_capacity) {
		match->cells = memory_resize(match->cells, needed, sizeof(*match->cells));
		match->cell_capacity = needed;
	}
	memset(match->cells, 0, needed * sizeof(*match->cells));
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

static void block_match_reserve(struct block_match *match, uint32_t count)
{
	match->open_count = match->taken_count = match->site_count = 0;
	match->open_bytes = 0;
	match->takes_before = false;
	cells_reserve(match, count);
	if (!match->notes)
		match->notes = memory_resize(NULL, 1 << BLOCK_MATCH_NOTE_BITS, sizeof(*match->notes));
	memset(match->notes, 0xff, sizeof(*match->notes) << BLOCK_MATCH_NOTE_BITS);
	if (count <= match->capacity)
		return;
	match->capacity = count;
#define RESERVE(items) match->items = memory_resize(match->items, count, sizeof(*match->items))
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

static uint32_t site_add(struct block_match *match, struct heap_site site)
{
	uint32_t place = (site.stack * 31 + site.entry) * 0x9e3779b1u >> (32 - BLOCK_MATCH_NOTE_BITS);
	struct block_match_note *note = &match->notes[place];
	if (note->stack != site.stack || note->entry != site.entry || note->site == HEAP_NONE) {
		assert(match->site_count < match->capacity);
		*note = (struct block_match_note){site.stack, site.entry, match->site_count};
		match->sums[match->site_count] = (struct block_match_sum){0};
		match->sites[match->site_count++] = site;
	}
	return note->site;
}

/* ---- pairs of points ---- */

static uint32_t choose(bool is_one, uint32_t one, uint32_t other)
{
	return other ^ ((one ^ other) & (0 - (uint32_t)is_one));
}

/* Return whether the event makes or deletes a whole heap. */
static bool is_of_heap(uint8_t kind)
{
	return kind == EVENT_CREATE || kind == EVENT_DESTROY;
}

/* Pair the points. No branch depends on whether the next point is a Begin, which cannot be predicted. An element
   written behind a list becomes part of it only when the list's count is raised. */
static void points_pair(struct block_match *match, const struct trace_block *block, const struct point_place *places,
			uint32_t count)
{
	uint32_t row_count = 0, fresh_count = 0, end_count = 0, *begin_of = match->begin_of, *end_of = match->end_of,
		 *ended = match->ended;
	uint64_t *fresh = match->fresh, *cells = match->cells;
	uint32_t bits = match->cell_bits;
	struct block_match_end *ends = match->ends;
	bool is_plain = true;
	for (uint32_t i = 0; i < count; i++) {
		__builtin_prefetch(&cells[cell_place(bits, places[i + AHEAD < count ? i + AHEAD : i].address)], 1);
		if (places[i].kind == HEAP_POINT_NONE) {
			is_plain &= !is_of_heap(block->kind[places[i].row]);
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
		ended[i] = choose(has_row, row, BLOCK_MATCH_END + end_count);
		fresh[fresh_count] = address;
		fresh_count += is_begin & is_first;
		ends[end_count].address = address;
		ends[end_count].place = i;
		end_count += is_first_end;
		*cell = address << CELL_ROW_BITS | choose(is_begin, row_count, CELL_NOBODY);
		row_count += is_begin;
	}
	match->is_plain = is_plain;
	match->count = row_count;
	match->fresh_count = fresh_count;
	match->end_count = end_count;
}

/* ---- what they say ---- */

/* Note what a realloc's row took: its thread's last point before ended that. If another row began between, a signal
   handler made it. */
static void taken_add(struct block_match *match, const struct trace_block *block, const struct point_place *places,
		      uint32_t row)
{
	assert(match->taken_count < match->capacity);
	for (uint32_t i = match->begin_of[row]; i-- > 0 && places[i].kind != HEAP_POINT_BEGIN;) {
		if (places[i].kind != HEAP_POINT_END || block->kind[places[i].row] != EVENT_REALLOC)
			continue;
		match->taken[match->taken_count++] = (struct block_match_taken){row, match->ended[i]};
		return;
	}
	match->takes_before |= !row;
}

/* Find what a realloc after the last row took. */
static void last_realloc_find(struct block_match *match, const struct trace_block *block,
			      const struct point_place *places, uint32_t count)
{
	match->last_realloc_from = HEAP_NONE;
	for (uint32_t i = count;
	     i-- > 0 && places[i].kind != HEAP_POINT_BEGIN && match->last_realloc_from == HEAP_NONE;)
		if (places[i].kind == HEAP_POINT_END && block->kind[places[i].row] == EVENT_REALLOC)
			match->last_realloc_from = match->ended[i];
}

static void row_end(struct block_match *match, const struct trace_block *block, const struct point_place *places,
		    uint32_t row)
{
	struct heap_allocation *allocation = &match->rows[row];
	uint32_t place = match->end_of[row];
	const struct point_place *at = &places[place];
	bool is_next = place == match->begin_of[row] + 1;
	match->is_plain &= !born_is_measured(block, at->row);
	allocation->end = born_end(block, at->row);
	allocation->end_ns = at->time_ns;
	allocation->end_site = site_add(match, born_site(block, at->row));
	allocation->flags |= is_next && allocation->end == HEAP_END_FREE ? HEAP_TEMPORARY : 0;
	match->details[row].end_thread = block->thread;
	match->details[row].end_point = place;
	uint64_t size_bytes = born_size(block, places[match->begin_of[row]].row);
	struct block_match_sum *sum = &match->sums[allocation->site];
	sum->given_count++;
	sum->given_bytes += size_bytes;
	sum->temporary_count += !!(allocation->flags & HEAP_TEMPORARY);
	match->changes[place] = 0 - size_bytes;
}

static void rows_make(struct block_match *match, const struct trace_block *block, const struct point_place *places)
{
	for (uint32_t row = 0; row < match->count; row++) {
		const struct point_place *at = &places[match->begin_of[row]];
		struct heap_allocation *allocation = &match->rows[row];
		born_allocation(allocation, block, at);
		allocation->site = site_add(match, born_site(block, at->row));
		born_details(&match->details[row], block, at->row, match->begin_of[row]);
		/* Not from the row: what was written to parts of a word cannot be read as a whole at once. */
		uint64_t size_bytes = born_size(block, at->row);
		struct block_match_sum *sum = &match->sums[allocation->site];
		sum->count++;
		sum->bytes += size_bytes;
		match->changes[match->begin_of[row]] = size_bytes;
		match->is_plain &= size_bytes <= PLAIN_SIZE_MAX && block->kind[at->row] != EVENT_EARLIER &&
				   !(block->flags[at->row] & EVENT_FOLDED);
		if (allocation->flags & HEAP_REALLOC) {
			sum->realloc_count++;
			sum->moved_count += !!(allocation->flags & HEAP_MOVED);
			taken_add(match, block, places, row);
		}
		if (match->end_of[row] != HEAP_NONE) {
			row_end(match, block, places, row);
			continue;
		}
		match->open[match->open_count++] = row;
		match->open_bytes += size_bytes;
	}
}

static void ends_make(struct block_match *match, const struct trace_block *block, const struct point_place *places)
{
	for (uint32_t i = 0; i < match->end_count; i++) {
		struct block_match_end *end = &match->ends[i];
		const struct point_place *at = &places[end->place];
		match->is_plain &= !born_is_measured(block, at->row);
		end->time_ns = at->time_ns;
		end->site = site_add(match, born_site(block, at->row));
		end->end = (uint8_t)born_end(block, at->row);
	}
}

static void changes_sum(struct block_match *match, uint32_t count)
{
	int64_t sum_bytes = 0, most_bytes = 0;
	for (uint32_t i = 0; i < count; i++) {
		sum_bytes += (int64_t)match->changes[i];
		most_bytes = sum_bytes > most_bytes ? sum_bytes : most_bytes;
	}
	match->sum_bytes = (uint64_t)sum_bytes;
	match->most_bytes = (uint64_t)most_bytes;
}

void block_match_make(struct block_match *match, const struct trace_block *block, const struct point_place *places,
		      uint32_t count)
{
	block_match_reserve(match, count);
	points_pair(match, block, places, count);
	if (!match->is_plain)
		return;
	memset(match->changes, 0, count * sizeof(*match->changes));
	rows_make(match, block, places);
	ends_make(match, block, places);
	changes_sum(match, count);
	last_realloc_find(match, block, places, count);
	const struct point_place *last = count ? &places[count - 1] : NULL;
	assert(match->count <= count && match->open_count <= match->count);
	assert(match->fresh_count + match->end_count <= count);
	match->last_alloc = last && last->kind == HEAP_POINT_BEGIN ? match->count - 1 : HEAP_NONE;
}

void block_match_fini(struct block_match *match)
{
	free(match->cells);
	free(match->rows);
	free(match->details);
	free(match->begin_of);
	free(match->end_of);
	free(match->ended);
	free(match->open);
	free(match->fresh);
	free(match->ends);
	free(match->taken);
	free(match->sites);
	free(match->site_ids);
	free(match->sums);
	free(match->changes);
	free(match->notes);
	*match = (struct block_match){0};
}
