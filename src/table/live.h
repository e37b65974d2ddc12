/* SPDX-License-Identifier: MIT */
/** The blocks of one process by address. The inner loop of matching: 16 bytes a block, one probe as a rule. Blocks end,
    and base/map.h cannot remove a key. */
#ifndef XHEAP_TABLE_LIVE_H
#define XHEAP_TABLE_LIVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

/** A block's address and what is known of it; meanings of the numbers are the caller's. */
struct live_cell {
	uint64_t address; /**< 0: empty */
	uint32_t current, other;
};

/** Zero it to begin. */
struct live {
	struct live_cell *cells;
	uint32_t count, bits;
};

/** Make room for more. */
void live_rehash(struct live *live);

/** How many fit. */
static inline uint32_t live_room(uint32_t bits)
{
	return (1u << bits) / 8 * 5;
}

static inline uint32_t live_place(const struct live *live, uint64_t address)
{
	return hash_bits(address >> 4 ^ address << 60, live->bits);
}

static inline struct live_cell *live_probe(const struct live *live, uint64_t address)
{
	uint32_t mask = (1u << live->bits) - 1, place = live_place(live, address);
	while (live->cells[place].address && live->cells[place].address != address)
		place = (place + 1) & mask;
	return &live->cells[place];
}

/** The cell of the address, or NULL. Valid until the next live_add() or live_remove(). */
static inline struct live_cell *live_find(const struct live *live, uint64_t address)
{
	if (!live->cells || !address)
		return NULL;
	struct live_cell *cell = live_probe(live, address);
	return cell->address ? cell : NULL;
}

/** The cell of the address (not 0); a new one has `current` and `other` UINT32_MAX. */
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

/** The cell will be asked for soon. */
static inline void live_expect(const struct live *live, uint64_t address)
{
	if (live->cells)
		__builtin_prefetch(&live->cells[live_place(live, address)], 1);
}

/** Forget the cell that was found or added last. */
void live_remove(struct live *live, struct live_cell *cell);

/** Forget all of them. */
void live_fini(struct live *live);

#endif
