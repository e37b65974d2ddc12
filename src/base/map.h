/* SPDX-License-Identifier: MIT */
/**
 * The hash table of the whole tree: from a 64-bit key to a 32-bit value; keys are never removed. Nobody outside can
 * choose keys that meet in one cell (base/hash.h). Zero it to begin. base/intern.h has texts as keys.
 *
 * Tables of another kind, each in an inner loop, and why they are not this one:
 *
 * - trace/stack_tree.h: cells of 4 bytes, beside rows that have the keys; a quarter of the memory for each stack.
 * - table/live.h: blocks end, so cells are removed; a cell has two values.
 * - match/block_match.c: cells of 8 bytes; those of a whole event block stay in the processor's cache.
 * - trace/model.h, trace/encode.c, query/extents.c, session/drain/record_decode.c: memories of what came last, one cell
 *   for a hash; the next key replaces the one before.
 * - recorder/thread.h, heap_rows.h, sampling.h, capture.c: of fixed size in memory that targets share, without locks;
 *   the recorder allocates nothing.
 */
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

/** Return the value of the key, or NULL. Valid until the next key is added. */
uint32_t *map_find(const struct map *map, uint64_t key);

/** Free the cells; the map is empty then. */
void map_fini(struct map *map);

/** Return two 32-bit numbers as one key. */
static inline uint64_t map_pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

#endif
