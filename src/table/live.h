/* SPDX-License-Identifier: MIT */
/** The blocks of one process by address. The inner loop of matching: 16 bytes a block, one probe as a rule. Blocks end,
    and base/map.h cannot remove a key. */
#ifndef XHEAP_TABLE_LIVE_H
#define XHEAP_TABLE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

/** A block's address and two numbers, whose meaning is the caller's. */
struct live_cell {
	uint64_t address; /**< 0: empty */
	uint32_t current, other;
};

/** A table. Zero it to begin. Without memory the work is given up (base/memory.h). */
struct live {
	struct live_cell *cells;
	uint32_t count, bits;
};

/** Make room for more blocks. */
void live_rehash(struct live *live);

/** Return how many blocks fit into 1 << bits cells. */
static inline uint32_t live_room(uint32_t bits)
{
	return (1u << bits) / 8 * 5;
}

/** Return the first cell to probe for an address. */
static inline uint32_t live_place(const struct live *live, uint64_t address)
{
	return hash_bits(address >> 4 ^ address << 60, live->bits);
}

/** Return the cell of the address, or the empty cell where it belongs. */
static inline struct live_cell *live_probe(const struct live *live, uint64_t address)
{
	uint32_t mask = (1u << live->bits) - 1, place = live_place(live, address);
	while (live->cells[place].address && live->cells[place].address != address)
		place = (place + 1) & mask;
	return &live->cells[place];
}

/** Return the cell of the address, or NULL. Valid until the next live_add() or live_remove(). */
static inline struct live_cell *live_find(const struct live *live, uint64_t address)
{
	if (!live->cells || !address)
		return NULL;
	struct live_cell *cell = live_probe(live, address);
	return cell->address ? cell : NULL;
}

/** Return the cell of the address (not 0); a new one has `current` and `other` UINT32_MAX. */
static inline struct live_cell *live_add(struct live *live, uint64_t address)
{
	if (!live->cells || live->count >= live_room(live->bits))
		live_rehash(live);
	struct live_cell *cell = live_probe(live, address);
	if (!cell->address) {
		*cell = (struct live_cell){address, UINT32_MAX, UINT32_MAX};
		live->count++;
	}
	return cell;
}

/** Prefetch the cell of the address. */
static inline void live_expect(const struct live *live, uint64_t address)
{
	if (live->cells)
		__builtin_prefetch(&live->cells[live_place(live, address)], 1);
}

/** Remove a cell that was found or added, with no change of the table since. */
void live_remove(struct live *live, struct live_cell *cell);

/** Free the table. */
void live_fini(struct live *live);

#endif
