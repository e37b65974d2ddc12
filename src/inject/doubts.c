/* SPDX-License-Identifier: MIT */
/*
 * A thread that ends gives back what its cache has, before glibc 2.43 with the mark in it: who gets such a chunk then and does not write its second
 * word has a block that seems to be cached. It is in use if it lies in no cache, as long as it is looked at, and does not change:
 *
 *     words    lists    words ... words    lists    words    another walk    words
 *
 * What lies in a cache for so long is in its list. What leaves one without an event, since its thread ends, lies in a fast bin, whose lists are read
 * after those of the caches; or its words change; or it is no chunk any more, and that walk does not find it.
 */
#include "inject/chunks.h"

#include <stdlib.h>
#include <string.h>

#include "os/moment.h"

enum { SOME = 64, LISTINGS = 3, LOOKS = 8 };

void doubts_take(struct chunks *state, struct doubts *doubts)
{
	struct walk *walk = state->walk;
	size_t count = 0, kept = 0;
	for (size_t i = 0; i < walk->count; i++)
		count += (walk->blocks[i].heap & WALK_DOUBTFUL) != 0;
	*doubts = (struct doubts){.items = count ? calloc(count, sizeof(*doubts->items)) : NULL};
	if (count && !doubts->items)
		walk_missing_add(walk, "no memory for those of which it is not known whether they are in use");
	for (size_t i = 0; i < walk->count; i++) {
		struct walk_block block = walk->blocks[i];
		if (!(block.heap & WALK_DOUBTFUL)) {
			walk->blocks[kept++] = block;
			continue;
		}
		walk->bytes -= block.usable_bytes;
		if (doubts->items)
			doubts->items[doubts->count++].block = block;
	}
	walk->count = kept;
}

/* Read the words of some, without whether the chunk before is in use. */
static bool words_read(const struct chunks *state, const struct doubt *items, size_t count, uint64_t (*words)[3])
{
	struct glibc_piece pieces[SOME];
	for (size_t i = 0; i < count; i++)
		pieces[i] = (struct glibc_piece){items[i].block.address - sizeof(**words), words[i], sizeof(*words)};
	if (!glibc_read_pieces(state->walk->pid, pieces, count))
		return false;
	for (size_t i = 0; i < count; i++)
		words[i][0] &= ~(uint64_t)GLIBC_BEFORE_IN_USE;
	return true;
}

/* Drop those whose words are others than before; what cannot be read, too. */
static void words_look(const struct chunks *state, struct doubts *doubts, bool is_first)
{
	uint64_t words[SOME][3];
	size_t kept = 0;
	for (size_t done = 0, some; done < doubts->count; done += some) {
		struct doubt *items = doubts->items + done;
		some = doubts->count - done < SOME ? doubts->count - done : SOME;
		if (!words_read(state, items, some, words))
			continue;
		for (size_t i = 0; i < some; i++) {
			if (is_first)
				memcpy(items[i].words, words[i], sizeof(words[i]));
			if (!memcmp(items[i].words, words[i], sizeof(words[i])) && caches_have(state, words[i][2]))
				doubts->items[kept++] = items[i];
		}
	}
	doubts->count = kept;
}

void doubts_look(const struct chunks *state, struct doubts *doubts)
{
	words_look(state, doubts, false);
}

/* Where they would lie in a cache: a bin for each size, and behind these some for many sizes. */
static void bins_want(const struct doubts *doubts, struct bins *bins)
{
	enum { SMALL_BINS = 64 };
	*bins = (struct bins){.is_wanted = {false}};
	for (size_t i = 0; i < doubts->count; i++) {
		uint64_t bin = (doubts->items[i].block.usable_bytes + sizeof(uint64_t) - GLIBC_CHUNK_MIN) / 16;
		if (bin < SMALL_BINS)
			bins->is_wanted[bin] = true;
		for (uint32_t j = SMALL_BINS; bin >= SMALL_BINS && j < GLIBC_BINS_MAX; j++)
			bins->is_wanted[j] = true;
	}
}

/* Drop those in a list of free chunks. False: not all of the lists could be read. */
static bool lists_look(struct chunks *state, struct doubts *doubts)
{
	struct map cached = {0};
	struct bins bins;
	bins_want(doubts, &bins);
	bool are_read = caches_list(state, &bins, &cached);
	uint64_t arena = state->glibc.main_arena;
	do {
		are_read = lists_read(state, arena) && are_read;
		arena = glibc_next_arena(&state->glibc, state->walk->pid, arena);
	} while (arena && arena != state->glibc.main_arena && !walk_is_late(state));
	size_t kept = 0;
	for (size_t i = 0; i < doubts->count; i++) {
		uint64_t chunk = doubts->items[i].block.address - GLIBC_CHUNK_HEAD;
		if (!map_find(&cached, chunk) && !map_find(&state->listed, chunk))
			doubts->items[kept++] = doubts->items[i];
	}
	doubts->count = kept;
	map_fini(&cached);
	return are_read && arena;
}

void doubts_watch(struct chunks *state, struct doubts *doubts)
{
	/* As a rule all of them are in a list at the first look. */
	lists_look(state, doubts);
	words_look(state, doubts, true);
	for (int listings = 0; doubts->count && listings < LISTINGS;) {
		listings += lists_look(state, doubts);
		for (int i = 0; i < LOOKS && doubts->count; i++) {
			/* Lists that are long and change can take too long: what is in doubt is then taken for cached. */
			if (!walk_goes_on(state)) {
				walk_missing_add(state->walk, DOUBTS_LEFT);
				doubts->count = 0;
			}
			doubts_look(state, doubts);
		}
	}
}

void doubts_confirm(struct doubts *doubts, const struct walk *other)
{
	size_t kept = 0, at = 0;
	for (size_t i = 0; i < doubts->count; i++) {
		const struct walk_block *block = &doubts->items[i].block;
		while (at < other->count && other->blocks[at].address < block->address)
			at++;
		if (at < other->count && other->blocks[at].address == block->address && other->blocks[at].usable_bytes == block->usable_bytes)
			doubts->items[kept++] = doubts->items[i];
	}
	doubts->count = kept;
}

void doubts_give_back(struct doubts *doubts, struct walk *walk)
{
	for (size_t i = 0; i < doubts->count; i++) {
		const struct walk_block block = doubts->items[i].block;
		walk_block_add(walk, block.address, block.usable_bytes, block.heap & ~(uint32_t)WALK_DOUBTFUL);
	}
	free(doubts->items);
	*doubts = (struct doubts){0};
}
