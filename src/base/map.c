/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include <stdlib.h>

#include "base/memory.h"

enum { MAP_FIRST_BITS = 6 };

static uint32_t map_place(uint64_t key, uint32_t bits)
{
	key ^= key >> 32;
	return (uint32_t)(key * 0x9e3779b97f4a7c15u >> (64 - bits));
}

static struct map_cell *map_probe(const struct map *map, uint64_t key)
{
	uint32_t mask = (1u << map->bits) - 1;
	uint32_t place = map_place(key, map->bits);
	while (map->cells[place].used && map->cells[place].key != key)
		place = (place + 1) & mask;
	return &map->cells[place];
}

static void map_rehash(struct map *map)
{
	struct map old = *map;
	map->bits = old.cells ? old.bits + 1 : MAP_FIRST_BITS;
	map->cells = memory_table((size_t)1 << map->bits, sizeof(*map->cells));
	for (size_t i = 0; old.cells && i < (size_t)1 << old.bits; i++)
		if (old.cells[i].used)
			*map_probe(map, old.cells[i].key) = old.cells[i];
	free(old.cells);
}

uint32_t *map_add(struct map *map, uint64_t key, bool *added)
{
	if (!map->cells || map->count >= (1u << map->bits) / 2)
		map_rehash(map);
	struct map_cell *cell = map_probe(map, key);
	*added = !cell->used;
	if (*added) {
		*cell = (struct map_cell){.key = key, .used = 1};
		map->count++;
	}
	return &cell->value;
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
