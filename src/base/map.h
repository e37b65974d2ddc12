/* SPDX-License-Identifier: MIT */
/** A hash table from 64-bit keys to 32-bit values; keys are never removed. Nobody outside can choose keys that collide
    (base/hash.h). */
#ifndef XHEAP_BASE_MAP_H
#define XHEAP_BASE_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct map_cell {
	uint64_t key;
	uint32_t value, used;
};

/** A table. Zero it to begin. */
struct map {
	struct map_cell *cells;
	uint32_t count, bits; /**< there are 1 << bits cells; cells is NULL before the first key */
};

/** Return the value of the key, which is added with value 0 if it is new; set *added. Valid until the next key is
    added. Without memory the work is given up (base/memory.h). */
uint32_t *map_add(struct map *map, uint64_t key, bool *added);

/** As map_add(), but return NULL without memory. */
uint32_t *map_try_add(struct map *map, uint64_t key, bool *added);

/** Return the value of the key, or NULL. */
uint32_t *map_find(const struct map *map, uint64_t key);

/** Free the table. */
void map_fini(struct map *map);

/** Return two 32-bit numbers as one key. */
static inline uint64_t map_pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

#endif
