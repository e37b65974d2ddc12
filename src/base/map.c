/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"

enum { MAP_FIRST_BITS = 6, MAP_LARGE_BITS = 16 };

static struct map_cell *map_probe(const struct map *map, uint64_t key)
{
	uint64_t mask = (UINT64_C(1) << map->bits) - 1;
	uint64_t place = hash_pair(key, 0) & mask;
	while (map->cells[place].used && map->cells[place].key != key)
		place = (place + 1) & mask;
	return &map->cells[place];
}

/* Each step moves all keys, so a table that grows on grows fourfold; a large one would have too many empty cells. */
static uint32_t next_bits(const struct map *map)
{
	return !map->cells ? MAP_FIRST_BITS : map->bits < MAP_LARGE_BITS ? map->bits + 2 : map->bits + 1;
}

static bool is_full(const struct map *map)
{
	return !map->cells || map->count >= (UINT64_C(1) << map->bits) / 2;
}

/* Move all to `cells`, which are zeroed and 1 << next_bits(). */
static void map_rehash(struct map *map, struct map_cell *cells)
{
	assert(cells && (!map->cells || map->count <= UINT64_C(1) << map->bits));
	struct map old = *map;
	map->bits = next_bits(map);
	map->cells = cells;
	for (size_t i = 0; old.cells && i < (size_t)1 << old.bits; i++)
		if (old.cells[i].used)
			*map_probe(map, old.cells[i].key) = old.cells[i];
	free(old.cells);
}

static uint32_t *map_place(struct map *map, uint64_t key, bool *added)
{
	struct map_cell *cell = map_probe(map, key);
	*added = !cell->used;
	if (*added) {
		*cell = (struct map_cell){.key = key, .used = 1};
		map->count++;
	}
	return &cell->value;
}

uint32_t *map_add(struct map *map, uint64_t key, bool *added)
{
	if (is_full(map))
		map_rehash(map, memory_table((size_t)1 << next_bits(map), sizeof(*map->cells)));
	return map_place(map, key, added);
}

uint32_t *map_try_add(struct map *map, uint64_t key, bool *added)
{
	if (is_full(map)) {
		struct map_cell *cells = calloc((size_t)1 << next_bits(map), sizeof(*cells));
		if (!cells)
			return NULL;
		map_rehash(map, cells);
	}
	return map_place(map, key, added);
}

uint32_t *map_find(const struct map *map, uint64_t key)
{
	if (!map->cells)
		return NULL;
	struct map_cell *cell = map_probe(map, key);
	return cell->used ? &cell->value : NULL;
}

void map_fini(struct map *map)
{
	free(map->cells);
	*map = (struct map){0};
}
