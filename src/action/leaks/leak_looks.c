/* SPDX-License-Identifier: MIT */
#include "action/leaks/leak_looks.h"

#include <stdlib.h>

#include "base/bisect.h"
#include "base/memory.h"
#include "base/order.h"

COMPARE_BY_TWO(blocks_compare, struct looked_block, address, birth_ns)

static struct looked_block *block_add(struct looked_blocks *blocks, const struct looked_block *block)
{
	memory_grow(blocks->items, blocks->count, blocks->capacity);
	blocks->items[blocks->count] = *block;
	return &blocks->items[blocks->count++];
}

static struct looked_block *block_find(const struct looked_blocks *blocks, const struct looked_block *block)
{
	size_t place;
	BISECT(place, blocks->count, i, blocks_compare(&blocks->items[i], block) < 0);
	return place < blocks->count && !blocks_compare(&blocks->items[place], block) ? &blocks->items[place] : NULL;
}

void leak_looks_begin(struct leak_looks *looks, uint32_t process, uint32_t number, int64_t at_ns)
{
	if (!looks->number || process != looks->process) {
		leak_looks_fini(looks);
		looks->process = process;
		looks->first = number;
	}
	if (number != looks->number) {
		const struct looked_blocks before = looks->before;
		looks->before = looks->now;
		looks->now = before;
	}
	looks->now.count = 0;
	looks->number = number;
	looks->at_ns = at_ns;
	looks->first_ns = number == looks->first ? at_ns : looks->first_ns;
}

void leak_looks_see(struct leak_looks *looks, const struct looked_block *block, bool is_lost)
{
	const struct looked_block *earlier = block_find(&looks->before, block);
	if (!is_lost && !earlier)
		return;
	struct looked_block *seen = block_add(&looks->now, earlier ? earlier : block);
	seen->state = is_lost ? LOOKED_LOST : LOOKED_REACHABLE;
	if (!is_lost || (earlier && earlier->state == LOOKED_LOST))
		return;
	seen->since = looks->number;
	seen->since_ns = looks->at_ns;
}

static void sort(struct looked_blocks *blocks)
{
	if (blocks->count)
		qsort(blocks->items, blocks->count, sizeof(*blocks->items), blocks_compare);
}

void leak_looks_end(struct leak_looks *looks)
{
	sort(&looks->now);
	/* What was not seen is no longer live. */
	const size_t seen = looks->now.count;
	for (size_t i = 0; i < looks->before.count; i++) {
		const struct looked_block *block = &looks->before.items[i];
		if (!block_find(&(struct looked_blocks){looks->now.items, seen, 0}, block))
			block_add(&looks->now, block)->state = LOOKED_FREED;
	}
	sort(&looks->now);
}

struct looked_block *leak_looks_find(const struct leak_looks *looks, uint64_t address, int64_t birth_ns)
{
	return block_find(&looks->now, &(struct looked_block){.address = address, .birth_ns = birth_ns});
}

void leak_looks_fini(struct leak_looks *looks)
{
	free(looks->now.items);
	free(looks->before.items);
	*looks = (struct leak_looks){.number = 0};
}
