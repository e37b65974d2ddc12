/* SPDX-License-Identifier: MIT */
/** From a 64-bit key to a 32-bit value; keys are never removed. Nobody outside can choose keys that meet in one cell
    (base/hash.h). Zero it to begin. */
#ifndef XHEAP_BASE_MAP_H
#define XHEAP_BASE_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct map_cell {
	uint64_t key;
	uint32_t value, used;
};

struct map {
	struct map_cell *cells;
	uint32_t count, bits; /**< 1 << bits cells, or none when cells is NULL */
};

/** Return the value of the key, added as 0 if it is new; *added says so. Valid until the next key is added. Without
 *  memory work is given up (base/memory.h). */
uint32_t *map_add(struct map *map, uint64_t key, bool *added);

/** The same, but return NULL without memory. */
uint32_t *map_try_add(struct map *map, uint64_t key, bool *added);

/** The value of the key, or NULL. */
uint32_t *map_find(const struct map *map, uint64_t key);

void map_fini(struct map *map);

/** Two 32-bit numbers as one key. */
static inline uint64_t map_pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

#endif
