/* SPDX-License-Identifier: MIT */
#include "reach/reach.h"

#include <stdlib.h>

#include "base/memory.h"
#include "reach/block_finder.h"

enum { WORD_BYTES = sizeof(uint64_t), READ_WORDS = 8192, HOLE_BYTES = 4096 };

#define X(id, word) [REACH_##id] = word,
const char *const reach_state_words[REACH_STATE_COUNT] = {REACH_STATES(X)};
#undef X

struct reach {
	struct reach_block *blocks;
	uint32_t count;
	struct reach_memory memory;
	uint64_t *addresses, *ends;
	struct block_finder finder;
	uint32_t *pending; /* reached blocks that were not followed yet */
	size_t pending_count, pending_capacity;
	uint32_t lost; /* the block whose words are looked at, which is not reached */
	uint64_t words[READ_WORDS];
};

/* Note that the words of the block are to be followed. */
static void block_follow(struct reach *reach, uint32_t i)
{
	memory_grow(reach->pending, reach->pending_count, reach->pending_capacity);
	reach->pending[reach->pending_count++] = i;
}

struct reach *reach_new(struct reach_block *blocks, uint32_t count, const struct reach_memory *memory)
{
	struct reach *reach = memory_zeroed(1, sizeof(*reach));
	reach->blocks = blocks;
	reach->count = count;
	reach->memory = *memory;
	reach->addresses = memory_resize(NULL, (size_t)count + 1, sizeof(*reach->addresses));
	reach->ends = memory_resize(NULL, (size_t)count + 1, sizeof(*reach->ends));
	for (uint32_t i = 0; i < count; i++) {
		/* A block of no bytes has an address, too. */
		const uint64_t size = blocks[i].size_bytes ? blocks[i].size_bytes : 1;
		reach->addresses[i] = blocks[i].address;
		if (__builtin_add_overflow(blocks[i].address, size, &reach->ends[i]))
			reach->ends[i] = UINT64_MAX;
	}
	for (uint32_t i = 0; i < count; i++)
		if (blocks[i].state == REACH_START)
			block_follow(reach, i);
	block_finder_make(&reach->finder, reach->addresses, reach->ends, count);
	return reach;
}

/* ---- words ---- */

static void block_reach(struct reach *reach, uint32_t i, enum reach_state state)
{
	struct reach_block *block = &reach->blocks[i];
	if (block->state < REACH_INTERIOR)
		block_follow(reach, i);
	if (block->state < state)
		block->state = (uint8_t)state;
}

/* An array of no elements, of a type with a destructor: its address lies behind its block, which has only the number
   of elements. */
static uint32_t empty_array_find(const struct reach *reach, uint64_t word)
{
	uint64_t element_count;
	const uint32_t i = block_finder_find(&reach->finder, word - WORD_BYTES);
	if (i == BLOCK_NOWHERE || reach->blocks[i].size_bytes != WORD_BYTES ||
	    reach->blocks[i].address != word - WORD_BYTES)
		return BLOCK_NOWHERE;
	bool is_read =
		reach->memory.read(reach->memory.context, word - WORD_BYTES, &element_count, WORD_BYTES) == WORD_BYTES;
	return is_read && !element_count ? i : BLOCK_NOWHERE;
}

/* Return the block that the word is an address in, and how it reaches that. */
static inline uint32_t word_find(const struct reach *reach, uint64_t word, enum reach_state *state)
{
	uint32_t i = block_finder_find(&reach->finder, word);
	if (i == BLOCK_NOWHERE && (word & (WORD_BYTES - 1)) == 0 && word >= WORD_BYTES)
		i = empty_array_find(reach, word);
	if (i != BLOCK_NOWHERE)
		*state = reach->addresses[i] == word ? REACH_START : REACH_INTERIOR;
	return i;
}

void reach_word(struct reach *reach, uint64_t word)
{
	enum reach_state state;
	const uint32_t i = word_find(reach, word, &state);
	if (i != BLOCK_NOWHERE)
		block_reach(reach, i, state);
}

void reach_words(struct reach *reach, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		reach_word(reach, words[i]);
}

/* Read the aligned words between two addresses, and give them to take(context, words, count). */
static void words_each(struct reach *reach, uint64_t low, uint64_t high,
		       void (*take)(void *context, const uint64_t *words, size_t count), void *context)
{
	uint64_t at = (low + WORD_BYTES - 1) & ~(uint64_t)(WORD_BYTES - 1);
	/* A block may be of any size, and hardly any of it be there. */
	at = at < low ? high : reach->memory.next(reach->memory.context, at);
	while (at >= low && at < high && high - at >= WORD_BYTES) {
		const uint64_t left = (high - at) & ~(uint64_t)(WORD_BYTES - 1);
		const size_t size = left < sizeof(reach->words) ? (size_t)left : sizeof(reach->words);
		const size_t got = reach->memory.read(reach->memory.context, at, reach->words, size);
		take(context, reach->words, got / WORD_BYTES);
		at += size;
		/* What could not be read ends with its page. */
		if (got < size)
			at = reach->memory.next(reach->memory.context, ((at - size + got) | (HOLE_BYTES - 1)) + 1);
	}
}

static void words_reach(void *context, const uint64_t *words, size_t count)
{
	reach_words(context, words, count);
}

void reach_range(struct reach *reach, uint64_t low, uint64_t high)
{
	words_each(reach, low, high, words_reach, reach);
}

/* ---- blocks ---- */

/* Words of a block that is not reached. */
static void words_of_lost(void *context, const uint64_t *words, size_t count)
{
	struct reach *reach = context;
	enum reach_state state;
	for (size_t i = 0; i < count; i++) {
		const uint32_t to = word_find(reach, words[i], &state);
		if (to != BLOCK_NOWHERE && to != reach->lost && reach->blocks[to].state == REACH_LOST)
			reach->blocks[to].state = REACH_INDIRECT;
	}
}

void reach_follow(struct reach *reach)
{
	while (reach->pending_count) {
		const uint32_t i = reach->pending[--reach->pending_count];
		reach_range(reach, reach->addresses[i], reach->ends[i]);
	}
	for (uint32_t i = 0; i < reach->count; i++) {
		reach->lost = i;
		if (reach->blocks[i].state < REACH_INTERIOR)
			words_each(reach, reach->addresses[i], reach->ends[i], words_of_lost, reach);
	}
}

void reach_free(struct reach *reach)
{
	if (!reach)
		return;
	block_finder_fini(&reach->finder);
	free(reach->addresses);
	free(reach->ends);
	free(reach->pending);
	free(reach);
}
