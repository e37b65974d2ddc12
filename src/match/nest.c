/* SPDX-License-Identifier: MIT */
/*
 * Addresses in order form a tree of 64 branches to a node, eleven levels for 64 bits. A node is a word of bits, in a
 * table by level and the bits of the address above; empty nodes do not exist. So adding and finding touch few nodes if
 * a neighbour is near.
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

enum { LEVELS = 11, DIGIT_BITS = 6, DIGITS = 64, LEVEL_BITS = 4 };

/* ---- addresses in order ---- */

static uint64_t bits_above(uint64_t address, unsigned level)
{
	unsigned shift = DIGIT_BITS * (level + 1);
	return shift < 64 ? address >> shift : 0;
}

static unsigned digit_of(uint64_t address, unsigned level)
{
	return address >> DIGIT_BITS * level & (DIGITS - 1);
}

/* Return the key of a node. It is never 0, which is no key; the bits that the shift cuts off are never set. */
static uint64_t key_of(uint64_t above, unsigned level)
{
	assert(level < LEVELS);
	return above << LEVEL_BITS | (level + 1);
}

static uint64_t node_bits(const struct nest_starts *starts, uint64_t above, unsigned level)
{
	const struct live_cell *cell = live_find(&starts->nodes, key_of(above, level));
	return cell ? (uint64_t)cell->other << 32 | cell->current : 0;
}

static void cell_set(struct live_cell *cell, uint64_t bits)
{
	cell->current = (uint32_t)bits;
	cell->other = (uint32_t)(bits >> 32);
}

void nest_starts_add(struct nest_starts *starts, uint64_t address)
{
	for (unsigned level = 0; level < LEVELS; level++) {
		uint64_t above = bits_above(address, level), bits = node_bits(starts, above, level);
		cell_set(live_add(&starts->nodes, key_of(above, level)), bits | UINT64_C(1)
											 << digit_of(address, level));
		/* A node that exists is known to the level above it. */
		if (bits)
			return;
	}
}

void nest_starts_remove(struct nest_starts *starts, uint64_t address)
{
	for (unsigned level = 0; level < LEVELS; level++) {
		struct live_cell *cell = live_find(&starts->nodes, key_of(bits_above(address, level), level));
		if (!cell)
			return;
		uint64_t bits =
			((uint64_t)cell->other << 32 | cell->current) & ~(UINT64_C(1) << digit_of(address, level));
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

bool nest_starts_last(const struct nest_starts *starts, uint64_t at, uint64_t *found)
{
	for (unsigned level = 0; level < LEVELS; level++) {
		unsigned digit = digit_of(at, level);
		/* Above the lowest level, what is in the same branch was looked at. */
		uint64_t allowed = level ? (UINT64_C(1) << digit) - 1 : UINT64_MAX >> (DIGITS - 1 - digit);
		uint64_t above = bits_above(at, level), bits = node_bits(starts, above, level) & allowed;
		if (!bits)
			continue;
		uint64_t address = above << DIGIT_BITS | last_of(bits);
		while (level-- > 0 && (bits = node_bits(starts, address, level)))
			address = address << DIGIT_BITS | last_of(bits);
		*found = address;
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

struct nest_span *nest_at(struct nest *nest, uint64_t address, nest_is_live *is_live, void *context)
{
	struct live_cell *cell = live_find(&nest->at, address);
	while (cell && cell->current != NEST_NONE) {
		uint32_t place = cell->current;
		if (is_live(context, nest->spans[place].row))
			return &nest->spans[place];
		cell->current = nest->spans[place].below;
		span_forget(nest, place);
	}
	if (cell) {
		live_remove(&nest->at, cell);
		nest_starts_remove(&nest->annotated, address);
	}
	return NULL;
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
	struct nest_span *span = nest_last_within(nest, 0, address, is_live, context);
	while (span && !(is_inside(span, address) && is_live(context, span->row))) {
		struct nest_span *below = span_of(nest, span->below), *enclosing = span_of(nest, span->enclosing);
		span = below ? below : enclosing && enclosing->row == span->enclosing_row ? enclosing : NULL;
	}
	return span;
}

void nest_add(struct nest *nest, const struct nest_span *span, const struct nest_span *enclosing)
{
	uint32_t place = NEST_NONE - nest->free,
		 enclosing_place = enclosing ? (uint32_t)(enclosing - nest->spans) : NEST_NONE;
	uint32_t enclosing_row = enclosing ? enclosing->row : NEST_NONE;
	if (!span->address)
		return;
	if (nest->free) {
		nest->free = nest->spans[place].below;
	} else {
		memory_grow(nest->spans, nest->span_count, nest->span_capacity);
		place = (uint32_t)nest->span_count++;
	}
	struct live_cell *cell = live_add(&nest->at, span->address);
	assert(place < nest->span_count);
	nest->spans[place] = *span;
	nest->spans[place].below = cell->current;
	nest->spans[place].enclosing = enclosing_place;
	nest->spans[place].enclosing_row = enclosing_row;
	cell->current = place;
	nest_starts_add(&nest->annotated, span->address);
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
	return node_bits(starts, bits_above(address, 0), 0) >> digit_of(address, 0) & 1;
}

static uint64_t starts_count(const struct nest_starts *starts)
{
	const struct live *nodes = &starts->nodes;
	uint64_t count = 0;
	for (uint64_t i = 0; nodes->cells && i < UINT64_C(1) << nodes->bits; i++)
		if ((nodes->cells[i].address & ((1u << LEVEL_BITS) - 1)) == 1)
			count += (uint64_t)__builtin_popcount(nodes->cells[i].current) +
				 (uint64_t)__builtin_popcount(nodes->cells[i].other);
	return count;
}

/* Whether the node has branches, each of these its node, and the node is a branch of the one above. */
static bool node_is_valid(const struct nest_starts *starts, uint64_t key)
{
	unsigned level = (unsigned)(key & ((1u << LEVEL_BITS) - 1)) - 1;
	uint64_t above = key >> LEVEL_BITS, bits = level < LEVELS ? node_bits(starts, above, level) : 0;
	if (!bits)
		return false;
	for (unsigned digit = 0; level && digit < DIGITS; digit++)
		if (bits >> digit & 1 && !node_bits(starts, above << DIGIT_BITS | digit, level - 1))
			return false;
	return level + 1 == LEVELS || node_bits(starts, above >> DIGIT_BITS, level + 1) >> (above & (DIGITS - 1)) & 1;
}

bool nest_starts_is_valid(const struct nest_starts *starts)
{
	const struct live *nodes = &starts->nodes;
	if (!live_is_valid(nodes))
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
