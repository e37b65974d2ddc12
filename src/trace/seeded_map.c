/* SPDX-License-Identifier: MIT */
#include "trace/seeded_map.h"

#include <stdlib.h>
#include <sys/random.h>

enum { INDEX_FIRST_BITS = 6 };

struct index_cell {
	uint64_t key;
	uint32_t value, is_used;
};

static uint64_t secret[2];

/* Any value will do, so threads that come here at once need no order. */
__attribute__((constructor))
static void secret_init(void)
{
	if (getrandom(secret, sizeof(secret), GRND_NONBLOCK) != (ssize_t)sizeof(secret)) {
		secret[0] = (uint64_t)(uintptr_t)&secret;
		secret[1] = 0x9e3779b97f4a7c15u;
	}
}

uint64_t index_hash(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)(a ^ secret[0]) * ((b ^ secret[1]) | 1);
	uint64_t mixed = (uint64_t)product ^ (uint64_t)(product >> 64) ^ b;
	product = (unsigned __int128)mixed * 0xd6e8feb86659fd93u;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static struct index_cell *index_probe(const struct index *index, uint64_t key)
{
	uint64_t mask = (UINT64_C(1) << index->bits) - 1;
	uint64_t place = index_hash(key, 0) & mask;
	while (index->cells[place].is_used && index->cells[place].key != key)
		place = (place + 1) & mask;
	return &index->cells[place];
}

static bool index_grow(struct index *index)
{
	struct index old = *index;
	uint32_t bits = old.cells ? old.bits + 1 : INDEX_FIRST_BITS;
	struct index_cell *cells = calloc((size_t)1 << bits, sizeof(*cells));
	if (!cells)
		return false;
	index->bits = bits;
	index->cells = cells;
	for (size_t i = 0; old.cells && i < (size_t)1 << old.bits; i++)
		if (old.cells[i].is_used)
			*index_probe(index, old.cells[i].key) = old.cells[i];
	free(old.cells);
	return true;
}

uint32_t *index_add(struct index *index, uint64_t key, bool *added)
{
	if ((!index->cells || index->count >= (UINT64_C(1) << index->bits) / 2) && !index_grow(index))
		return NULL;
	struct index_cell *cell = index_probe(index, key);
	*added = !cell->is_used;
	if (*added) {
		*cell = (struct index_cell){.key = key, .is_used = 1};
		index->count++;
	}
	return &cell->value;
}

uint32_t *index_find(const struct index *index, uint64_t key)
{
	if (!index->cells)
		return NULL;
	struct index_cell *cell = index_probe(index, key);
	return cell->is_used ? &cell->value : NULL;
}

void index_fini(struct index *index)
{
	free(index->cells);
	*index = (struct index){0};
}
