/* SPDX-License-Identifier: MIT */
#include "heap/live.h"

#include <stdlib.h>

#include "base/memory.h"

enum { LIVE_FIRST_BITS = 6 };

static uint32_t live_place(const struct live *live, uint64_t address)
{
	return (uint32_t)((address >> 4 ^ address << 60) * 0x9e3779b97f4a7c15u >> (64 - live->bits));
}

static struct live_cell *live_probe(const struct live *live, uint64_t address)
{
	uint32_t mask = (1u << live->bits) - 1, place = live_place(live, address);
	while (live->cells[place].address && live->cells[place].address != address)
		place = (place + 1) & mask;
	return &live->cells[place];
}

struct live_cell *live_find(const struct live *live, uint64_t address)
{
	if (!live->cells || !address)
		return NULL;
	struct live_cell *cell = live_probe(live, address);
	return cell->address ? cell : NULL;
}

void live_expect(const struct live *live, uint64_t address)
{
	if (live->cells)
		__builtin_prefetch(&live->cells[live_place(live, address)], 1);
}

static void live_rehash(struct live *live)
{
	struct live old = *live;
	live->bits = old.cells ? old.bits + 1 : LIVE_FIRST_BITS;
	live->cells = memory_zeroed((size_t)1 << live->bits, sizeof(*live->cells));
	for (size_t i = 0; old.cells && i < (size_t)1 << old.bits; i++)
		if (old.cells[i].address)
			*live_probe(live, old.cells[i].address) = old.cells[i];
	free(old.cells);
}

struct live_cell *live_add(struct live *live, uint64_t address)
{
	if (!live->cells || live->count >= (1u << live->bits) / 8 * 5)
		live_rehash(live);
	struct live_cell *cell = live_probe(live, address);
	if (!cell->address) {
		*cell = (struct live_cell){address, UINT32_MAX, UINT32_MAX};
		live->count++;
	}
	return cell;
}

/* Close the hole by moving back each later cell of the run whose own place is not after the hole. */
void live_remove(struct live *live, struct live_cell *cell)
{
	uint32_t mask = (1u << live->bits) - 1;
	uint32_t hole = (uint32_t)(cell - live->cells);
	for (uint32_t at = (hole + 1) & mask; live->cells[at].address; at = (at + 1) & mask) {
		uint32_t home = live_place(live, live->cells[at].address);
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		live->cells[hole] = live->cells[at];
		hole = at;
	}
	live->cells[hole] = (struct live_cell){0};
	live->count--;
}

void live_fini(struct live *live)
{
	free(live->cells);
	*live = (struct live){0};
}
