/* SPDX-License-Identifier: MIT */
#include "cells/cell_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { BITS_FIRST = 12 };
_Static_assert(CELL_INTERVALS_MAX + 2 < 1 << CELL_MOMENT_BITS, "every moment has its number");

static uint32_t node_of(const struct cell *cell)
{
	return (uint32_t)(cell->place >> 32);
}

/* The place of the cell with these keys, or the free one where it belongs. */
static inline struct cell_place *place_find(const struct cell_set *set, const struct cell *like, uint32_t hash)
{
	uint32_t mask = (UINT32_C(1) << set->bits) - 1;
	for (uint32_t at = hash & mask;; at = (at + 1) & mask) {
		struct cell_place *place = &set->places[at];
		if (!place->number)
			return place;
		if (place->hash != hash)
			continue;
		const struct cell *cell = &set->cells[place->number - 1];
		if (cell->place == like->place && cell->moments == like->moments)
			return place;
	}
}

/* The cells themselves are not needed. */
static void places_grow(struct cell_set *set)
{
	struct cell_place *old = set->places;
	size_t count = set->bits ? (size_t)1 << set->bits : 0;
	set->bits = set->bits ? set->bits + 1 : BITS_FIRST;
	set->places = memory_table((size_t)1 << set->bits, sizeof(*set->places));
	uint32_t mask = (UINT32_C(1) << set->bits) - 1;
	for (size_t i = 0; i < count; i++) {
		uint32_t at = old[i].hash & mask;
		while (old[i].number && set->places[at].number)
			at = (at + 1) & mask;
		if (old[i].number)
			set->places[at] = old[i];
	}
	free(old);
}

static __attribute__((noinline)) struct cell_sums *cell_new(struct cell_set *set, const struct cell *like,
							    uint32_t hash)
{
	if (set->count >= (UINT32_C(1) << set->bits) / 4 * 3)
		places_grow(set);
	memory_grow(set->cells, set->count, set->capacity);
	struct cell *cell = &set->cells[set->count];
	*cell = (struct cell){like->place, like->moments, {.blocks = 0}};
	*place_find(set, like, hash) = (struct cell_place){hash, ++set->count};
	return &cell->sums;
}

struct cell_sums *cell_set_at(struct cell_set *set, const struct cell *like, uint32_t most)
{
	uint32_t hash = (uint32_t)hash_pair(like->place, like->moments);
	if (!set->bits)
		places_grow(set);
	uint32_t number = place_find(set, like, hash)->number;
	if (number)
		return &set->cells[number - 1].sums;
	return set->count < most ? cell_new(set, like, hash) : NULL;
}

bool cell_set_add(struct cell_set *set, const struct cell *like, const struct cell_sums *sums, uint32_t most)
{
	struct cell_sums *to = cell_set_at(set, like, most);
	if (to)
		cell_sums_add(to, sums);
	return to;
}

bool cell_set_add_changed(struct cell_set *set, const struct cell_set *from, const struct cell_change *change,
			  uint32_t most)
{
	for (uint32_t i = 0; i < from->count; i++) {
		struct cell like = from->cells[i];
		uint32_t node = node_of(&like);
		like.place = (uint64_t)change->nodes[node] << 32 | (uint32_t)like.place;
		if (change->is_plain[node])
			like.moments = (like.moments & ~CELL_CLASSES) | CELL_CLASSES_ANY;
		if (!cell_set_add(set, &like, &from->cells[i].sums, most))
			return false;
	}
	return true;
}

void cell_set_add_sample(struct cell_set *set, const struct cell_set *from, unsigned level)
{
	for (uint32_t i = 0; i < from->count; i++)
		if (cell_is_in(&from->cells[i], level))
			cell_set_add(set, &from->cells[i], &from->cells[i].sums, UINT32_MAX);
}

static int cell_compare(const void *a, const void *b)
{
	const struct cell *left = a, *right = b;
	if (left->place != right->place)
		return left->place < right->place ? -1 : 1;
	return (left->moments > right->moments) - (left->moments < right->moments);
}

/* Cells of one node lie together then. Return where those of each node end. */
static uint32_t *nodes_order(struct cell_set *set, uint32_t nodes)
{
	uint32_t *ends = memory_zeroed((size_t)nodes + 1, sizeof(*ends));
	struct cell *ordered = memory_resize(NULL, set->count, sizeof(*ordered));
	for (uint32_t i = 0; i < set->count; i++)
		ends[node_of(&set->cells[i]) + 1]++;
	for (uint32_t i = 1; i <= nodes; i++)
		ends[i] += ends[i - 1];
	/* They are beginnings, which filling turns into ends. */
	for (uint32_t i = 0; i < set->count; i++)
		ordered[ends[node_of(&set->cells[i])]++] = set->cells[i];
	free(set->cells);
	set->cells = ordered;
	set->capacity = set->count;
	return ends;
}

/* By node first, so that the rest of the order is one of few cells. */
void cell_set_sort(struct cell_set *set)
{
	uint32_t nodes = 1, at = 0;
	for (uint32_t i = 0; i < set->count; i++)
		nodes = node_of(&set->cells[i]) + 1 > nodes ? node_of(&set->cells[i]) + 1 : nodes;
	uint32_t *ends = nodes_order(set, nodes);
	for (uint32_t i = 0; i < nodes; at = ends[i++])
		if (ends[i] - at > 1)
			qsort(&set->cells[at], ends[i] - at, sizeof(*set->cells), cell_compare);
	free(ends);
	free(set->places);
	set->places = NULL;
	set->bits = 0;
}

void cell_set_clear(struct cell_set *set)
{
	set->count = 0;
	if (set->bits)
		memset(set->places, 0, sizeof(*set->places) << set->bits);
}

void cell_set_fini(struct cell_set *set)
{
	free(set->cells);
	free(set->places);
	*set = (struct cell_set){.cells = NULL};
}

/* ---- classes of lifetimes ---- */

/* The limits between classes: 100, 316, 1000, 3162, ...; those of odd classes are the powers of ten. */
static const int64_t life_limits[] = {
#define PAIR(power, between) INT64_C(1##power), INT64_C(between)
	PAIR(00, 316),
	PAIR(000, 3162),
	PAIR(0000, 31622),
	PAIR(00000, 316227),
	PAIR(000000, 3162277),
	PAIR(0000000, 31622776),
	PAIR(00000000, 316227766),
	PAIR(000000000, 3162277660),
	PAIR(0000000000, 31622776601),
	PAIR(00000000000, 316227766016),
	PAIR(000000000000, 3162277660168),
	PAIR(0000000000000, 31622776601683),
	PAIR(00000000000000, 316227766016837),
	PAIR(000000000000000, 3162277660168379),
	PAIR(0000000000000000, 31622776601683793),
	PAIR(00000000000000000, 316227766016837933),
	PAIR(000000000000000000, 3162277660168379331)
#undef PAIR
};
enum { LIFE_LIMITS = sizeof(life_limits) / sizeof(*life_limits) };
_Static_assert(LIFE_LIMITS < 1 << CELL_LIFE_BITS, "a key has room for each class");

/* Between two powers of two there are at most two limits. */
uint8_t cell_life_class(int64_t lifetime_ns)
{
	if (lifetime_ns < life_limits[0])
		return 0;
	/* 0.602 classes for each doubling: never too high. */
	unsigned log = 63 - (unsigned)__builtin_clzll((uint64_t)lifetime_ns), class = log * 6 / 10;
	class = class > 4 ? class - 4 : 0;
	while (class < LIFE_LIMITS && life_limits[class] <= lifetime_ns)
		class ++;
	return (uint8_t) class;
}
