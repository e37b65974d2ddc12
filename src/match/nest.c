/* SPDX-License-Identifier: MIT */
/*
 * Addresses in order form a tree. Its lowest level has granules of 16 bytes, at whose beginnings nearly all blocks
 * begin; each level above has 64 branches to a node. A node is a word of bits, in a table by level and the bits of the
 * address above; empty nodes do not exist, nor do those of granules in which only the first byte is an address. So
 * adding and finding touch few nodes if a neighbour is near.
 *
 * Spans are a family: two of them lie beside each other, or one in the other. Take the last span that begins up to an
 * address. The span around the address, if there is one, is that span or one around it: every span that begins between
 * the two lies in the latter.
 */
#include "match/nest.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "table/table_valid.h"

enum { LEVELS = 11, DIGIT_BITS = 6, DIGITS = 64, LEVEL_BITS = 4, GRANULE_BITS = 4, GRANULE = 16 };

/* ---- addresses in order ---- */

static uint64_t bits_above(uint64_t address, unsigned level)
{
	unsigned shift = GRANULE_BITS + DIGIT_BITS * level;
	return shift < 64 ? address >> shift : 0;
}

static unsigned digit_of(uint64_t address, unsigned level)
{
	return level ? bits_above(address, level - 1) & (DIGITS - 1) : address & (GRANULE - 1);
}

/* Return the key of a node. It is never 0, which is no key; the bits that the shift cuts off are never set. */
static uint64_t key_of(uint64_t above, unsigned level)
{
	assert(level < LEVELS);
	return above << LEVEL_BITS | (level + 1);
}

static uint64_t cell_bits(const struct live_cell *cell)
{
	return (uint64_t)cell->other << 32 | cell->current;
}

static uint64_t node_bits(const struct nest_starts *starts, uint64_t above, unsigned level)
{
	const struct live_cell *cell = live_find(&starts->nodes, key_of(above, level));
	return cell ? cell_bits(cell) : 0;
}

static void cell_set(struct live_cell *cell, uint64_t bits)
{
	cell->current = (uint32_t)bits;
	cell->other = (uint32_t)(bits >> 32);
}

/* Return the addresses of a granule that has some. */
static uint64_t granule_bits(const struct nest_starts *starts, uint64_t granule)
{
	uint64_t bits = starts->granule_count ? node_bits(starts, granule, 0) : 0;
	return bits ? bits : 1;
}

/* Add an address to its granule, which was there or not. */
static void granule_add(struct nest_starts *starts, uint64_t address, bool was_there)
{
	uint64_t key = key_of(bits_above(address, 0), 0), bit = UINT64_C(1) << digit_of(address, 0);
	struct live_cell *cell = starts->granule_count ? live_find(&starts->nodes, key) : NULL;
	if (!cell && bit == 1)
		return;
	uint64_t bits = cell ? cell_bits(cell) : was_there;
	starts->granule_count += !cell;
	cell_set(cell ? cell : live_add(&starts->nodes, key), bits | bit);
}

void nest_starts_add(struct nest_starts *starts, uint64_t address)
{
	bool is_new = true;
	for (unsigned level = 1; level < LEVELS && is_new; level++) {
		uint32_t count = starts->nodes.count;
		struct live_cell *cell = live_add(&starts->nodes, key_of(bits_above(address, level), level));
		uint64_t bit = UINT64_C(1) << digit_of(address, level);
		/* A node that exists is known to the level above it. */
		is_new = starts->nodes.count != count;
		uint64_t bits = is_new ? 0 : cell_bits(cell);
		cell_set(cell, bits | bit);
		if (level == 1)
			granule_add(starts, address, bits & bit);
	}
}

/* Remove an address from its granule. Return whether none is left in it. */
static bool granule_remove(struct nest_starts *starts, uint64_t address)
{
	uint64_t key = key_of(bits_above(address, 0), 0), bit = UINT64_C(1) << digit_of(address, 0);
	struct live_cell *cell = starts->granule_count ? live_find(&starts->nodes, key) : NULL;
	if (!cell)
		return bit == 1;
	uint64_t bits = cell_bits(cell) & ~bit;
	cell_set(cell, bits);
	if (bits > 1)
		return false;
	live_remove(&starts->nodes, cell);
	starts->granule_count--;
	return !bits;
}

void nest_starts_remove(struct nest_starts *starts, uint64_t address)
{
	if (!(node_bits(starts, bits_above(address, 1), 1) >> digit_of(address, 1) & 1) ||
	    !granule_remove(starts, address))
		return;
	for (unsigned level = 1; level < LEVELS; level++) {
		struct live_cell *cell = live_find(&starts->nodes, key_of(bits_above(address, level), level));
		if (!cell)
			return;
		uint64_t bits = cell_bits(cell) & ~(UINT64_C(1) << digit_of(address, level));
		cell_set(cell, bits);
		if (bits)
			return;
		live_remove(&starts->nodes, cell);
	}
}

static unsigned last_of(uint64_t bits)
{
	return 63 - (unsigned)__builtin_clzll(bits);
}

/* Return the bits up to a digit, with it or without. */
static uint64_t bits_up_to(unsigned digit, bool with)
{
	return (UINT64_C(1) << digit) - 1 + ((uint64_t)with << digit);
}

/* Return the last address of a granule. */
static uint64_t granule_last(const struct nest_starts *starts, uint64_t granule)
{
	return granule << GRANULE_BITS | last_of(granule_bits(starts, granule));
}

bool nest_starts_last(const struct nest_starts *starts, uint64_t at, uint64_t *found)
{
	for (unsigned level = 1; level < LEVELS; level++) {
		const unsigned digit = digit_of(at, level);
		uint64_t above = bits_above(at, level), bits = node_bits(starts, above, level);
		if (level == 1 && bits >> digit & 1) {
			uint64_t granule = bits_above(at, 0),
				 own = granule_bits(starts, granule) & bits_up_to(digit_of(at, 0), true);
			*found = own ? granule << GRANULE_BITS | last_of(own) : 0;
			if (own)
				return true;
		}
		/* What is in the same branch was looked at. */
		bits &= bits_up_to(digit, false);
		if (!bits)
			continue;
		above = above << DIGIT_BITS | last_of(bits);
		while (--level > 0 && (bits = node_bits(starts, above, level)))
			above = above << DIGIT_BITS | last_of(bits);
		*found = granule_last(starts, above);
		return true;
	}
	return false;
}

/* ---- spans ---- */

static struct nest_span *span_of(const struct nest *nest, uint32_t place)
{
	return place < nest->span_count ? &nest->spans[place] : NULL;
}

static void span_forget(struct nest *nest, uint32_t place)
{
	assert(place < nest->span_count);
	nest->spans[place].row = NEST_NONE;
	nest->spans[place].below = nest->free;
	nest->free = NEST_NONE - place;
}

static bool span_is_live(const struct nest_span *span, nest_is_live *is_live, void *context)
{
	return span->row != NEST_NONE && is_live(context, span->row);
}

/* Return the last live span of a cell, and forget dead ones, but for the first one: a block that begins where another
   one has ended takes its place. */
static struct nest_span *cell_settle(struct nest *nest, struct live_cell *cell, nest_is_live *is_live, void *context)
{
	for (;;) {
		uint32_t place = cell->current;
		struct nest_span *span = &nest->spans[place];
		if (span_is_live(span, is_live, context))
			return span;
		if (span->below == NEST_NONE) {
			span->row = NEST_NONE;
			return NULL;
		}
		cell->current = span->below;
		span_forget(nest, place);
	}
}

struct nest_span *nest_at(struct nest *nest, uint64_t address, nest_is_live *is_live, void *context)
{
	struct live_cell *cell = live_find(&nest->at, address);
	struct nest_span *span = cell ? cell_settle(nest, cell, is_live, context) : NULL;
	if (cell && !span) {
		span_forget(nest, cell->current);
		live_remove(&nest->at, cell);
		nest_starts_remove(&nest->annotated, address);
	}
	return span;
}

struct nest_span *nest_last_within(struct nest *nest, uint64_t from, uint64_t to, nest_is_live *is_live, void *context)
{
	uint64_t address;
	while (nest_starts_last(&nest->annotated, to, &address) && address >= from) {
		struct nest_span *span = nest_at(nest, address, is_live, context);
		if (span)
			return span;
	}
	return NULL;
}

static bool is_inside(const struct nest_span *span, uint64_t address)
{
	return address >= span->address && address - span->address < span->bytes;
}

struct nest_span *nest_enclosing(struct nest *nest, uint64_t address, nest_is_live *is_live, void *context)
{
	struct live_cell *cell = live_find(&nest->at, address);
	struct nest_span *span = cell ? cell_settle(nest, cell, is_live, context) : NULL;
	if (!span && address)
		span = nest_last_within(nest, 0, address - 1, is_live, context);
	while (span && !(is_inside(span, address) && span_is_live(span, is_live, context))) {
		struct nest_span *below = span_of(nest, span->below), *enclosing = span_of(nest, span->enclosing);
		span = below ? below : enclosing && enclosing->row == span->enclosing_row ? enclosing : NULL;
	}
	return span;
}

static uint32_t place_take(struct nest *nest)
{
	uint32_t place = NEST_NONE - nest->free;
	if (nest->free) {
		nest->free = nest->spans[place].below;
		return place;
	}
	memory_grow(nest->spans, nest->span_count, nest->span_capacity);
	return (uint32_t)nest->span_count++;
}

void nest_add(struct nest *nest, const struct nest_span *span, const struct nest_span *enclosing)
{
	uint32_t enclosing_place = enclosing ? (uint32_t)(enclosing - nest->spans) : NEST_NONE;
	uint32_t enclosing_row = enclosing ? enclosing->row : NEST_NONE;
	if (!span->address)
		return;
	struct live_cell *cell = live_add(&nest->at, span->address);
	uint32_t place = cell->current, below = NEST_NONE;
	if (place == NEST_NONE || nest->spans[place].row != NEST_NONE) {
		below = place;
		place = place_take(nest);
		cell->current = place;
		nest_starts_add(&nest->annotated, span->address);
	}
	assert(place < nest->span_count);
	nest->spans[place] = *span;
	nest->spans[place].below = below;
	nest->spans[place].enclosing = enclosing_place;
	nest->spans[place].enclosing_row = enclosing_row;
}

void nest_fini(struct nest *nest)
{
	live_fini(&nest->plain.nodes);
	live_fini(&nest->annotated.nodes);
	live_fini(&nest->at);
	free(nest->spans);
	*nest = (struct nest){.free = 0};
}

/* ---- checks ---- */

static bool starts_has(const struct nest_starts *starts, uint64_t address)
{
	return node_bits(starts, bits_above(address, 1), 1) >> digit_of(address, 1) & 1 &&
	       granule_bits(starts, bits_above(address, 0)) >> digit_of(address, 0) & 1;
}

/* A granule whose addresses have a node is one address of the level above. */
static uint64_t starts_count(const struct nest_starts *starts)
{
	const struct live *nodes = &starts->nodes;
	uint64_t count = 0;
	for (uint64_t i = 0; nodes->cells && i < UINT64_C(1) << nodes->bits; i++) {
		uint64_t level = (nodes->cells[i].address & ((1u << LEVEL_BITS) - 1)) - 1;
		if (nodes->cells[i].address && level < 2)
			count += (uint64_t)__builtin_popcountll(cell_bits(&nodes->cells[i])) - !level;
	}
	return count;
}

/* Whether the node has branches, each of these its node, and the node is a branch of the one above. */
static bool node_is_valid(const struct nest_starts *starts, uint64_t key)
{
	unsigned level = (unsigned)(key & ((1u << LEVEL_BITS) - 1)) - 1;
	uint64_t above = key >> LEVEL_BITS, bits = level < LEVELS ? node_bits(starts, above, level) : 0;
	if (!bits || (!level && (bits == 1 || bits >> GRANULE)))
		return false;
	for (unsigned digit = 0; level > 1 && digit < DIGITS; digit++)
		if (bits >> digit & 1 && !node_bits(starts, above << DIGIT_BITS | digit, level - 1))
			return false;
	return level + 1 == LEVELS || node_bits(starts, above >> DIGIT_BITS, level + 1) >> (above & (DIGITS - 1)) & 1;
}

static uint32_t granules_count(const struct nest_starts *starts)
{
	const struct live *nodes = &starts->nodes;
	uint32_t count = 0;
	for (uint64_t i = 0; nodes->cells && i < UINT64_C(1) << nodes->bits; i++)
		count += (nodes->cells[i].address & ((1u << LEVEL_BITS) - 1)) == 1;
	return count;
}

bool nest_starts_is_valid(const struct nest_starts *starts)
{
	const struct live *nodes = &starts->nodes;
	if (!live_is_valid(nodes) || granules_count(starts) != starts->granule_count)
		return false;
	for (uint64_t i = 0; nodes->cells && i < UINT64_C(1) << nodes->bits; i++)
		if (nodes->cells[i].address && !node_is_valid(starts, nodes->cells[i].address))
			return false;
	return true;
}

/* Count the spans that began at the cell's address. False: one is of another, or there are more than there can be. */
static bool spans_count(const struct nest *nest, const struct live_cell *cell, size_t *count)
{
	for (uint32_t place = cell->current; place != NEST_NONE; place = nest->spans[place].below)
		if (place >= nest->span_count || nest->spans[place].address != cell->address ||
		    ++*count > nest->span_count)
			return false;
	return true;
}

bool nest_is_valid(const struct nest *nest)
{
	size_t count = 0;
	if (!live_is_valid(&nest->at) || !nest_starts_is_valid(&nest->plain) || !nest_starts_is_valid(&nest->annotated))
		return false;
	for (uint64_t i = 0; nest->at.cells && i < UINT64_C(1) << nest->at.bits; i++) {
		const struct live_cell *cell = &nest->at.cells[i];
		if (cell->address && (!starts_has(&nest->annotated, cell->address) || !spans_count(nest, cell, &count)))
			return false;
	}
	for (uint32_t free = nest->free; free; free = nest->spans[NEST_NONE - free].below)
		if (NEST_NONE - free >= nest->span_count || ++count > nest->span_count ||
		    nest->spans[NEST_NONE - free].row != NEST_NONE)
			return false;
	return count == nest->span_count && starts_count(&nest->annotated) == nest->at.count;
}
