/* SPDX-License-Identifier: MIT */
#include "table/live.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

enum { LIVE_FIRST_BITS = 6 };

void live_rehash(struct live *live)
{
	struct live old = *live;
	assert(!old.cells || old.count <= live_room(old.bits));
	live->bits = old.cells ? old.bits + 1 : LIVE_FIRST_BITS;
	live->cells = memory_table((size_t)1 << live->bits, sizeof(*live->cells));
	for (size_t i = 0; old.cells && i < (size_t)1 << old.bits; i++)
		if (old.cells[i].address)
			*live_probe(live, old.cells[i].address) = old.cells[i];
	free(old.cells);
}

/* Close the hole by moving back each later cell of the run whose own place is not after the hole. */
void live_remove(struct live *live, struct live_cell *cell)
{
	assert(live->count > 0 && cell->address);
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
