/* SPDX-License-Identifier: MIT */
/* Which blocks of a made memory are reached: chains, interiors, circles, holes; and the search for the block of an
   address against a plain one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reach/block_finder.h"
#include "reach/reach.h"

enum { BASE = 0x10000, WORDS = 4096, BLOCKS_MAX = 16, HOLE_AT = 0x12000, HOLE_END = 0x13000 };

/* Words of a process from BASE on; between HOLE_AT and HOLE_END there is nothing. */
static uint64_t words[WORDS];

static size_t words_read(void *context, uint64_t address, void *to, size_t size)
{
	(void)context;
	if (address < BASE || address >= BASE + sizeof(words) || (address >= HOLE_AT && address < HOLE_END))
		return 0;
	const uint64_t end = address < HOLE_AT ? HOLE_AT : BASE + sizeof(words);
	const size_t got = end - address < size ? (size_t)(end - address) : size;
	memcpy(to, (const char *)words + (address - BASE), got);
	return got;
}

static uint64_t words_next(void *context, uint64_t address)
{
	(void)context;
	if (address < BASE)
		return BASE;
	if (address >= HOLE_AT && address < HOLE_END)
		return HOLE_END;
	return address < BASE + sizeof(words) ? address : UINT64_MAX;
}

static const struct reach_memory memory = {words_read, words_next, NULL};

static void word_set(uint64_t address, uint64_t value)
{
	words[(address - BASE) / sizeof(*words)] = value;
}

static struct reach_block blocks[BLOCKS_MAX];
static struct reach *reach;

/* Blocks of 64 bytes, 0x100 apart from BASE on; their ids are their numbers. */
static uint64_t block_at(uint32_t i)
{
	return BASE + (uint64_t)i * 0x100;
}

static void blocks_begin(uint32_t count)
{
	memset(words, 0, sizeof(words));
	for (uint32_t i = 0; i < count; i++)
		blocks[i] = (struct reach_block){.address = block_at(i), .size_bytes = 64, .id = i};
}

/* Follow from one root, which is the word. */
static void follow(uint32_t count, uint64_t root)
{
	reach = reach_new(blocks, count, &memory);
	reach_word(reach, root);
	reach_follow(reach);
}

static void assert_states(const char *states)
{
	static const char letters[REACH_STATE_COUNT] = {'l', 'i', 'I', 'S'};
	for (uint32_t i = 0; states[i]; i++)
		assert_int_equal(letters[blocks[i].state], states[i]);
}

static void test_chain(void **state)
{
	(void)state;
	blocks_begin(5);
	word_set(block_at(0) + 56, block_at(1)); /* the last word of a block counts */
	word_set(block_at(1) + 8, block_at(2) + 63);
	word_set(block_at(2), block_at(3));
	word_set(block_at(3), block_at(4) + 64); /* not the address behind a block */
	follow(5, block_at(0));
	reach_free(reach);
	assert_states("SSISl");
}

static void test_start_is_stronger(void **state)
{
	(void)state;
	blocks_begin(2);
	word_set(block_at(0), block_at(1) + 16);
	word_set(block_at(0) + 8, block_at(1));
	word_set(block_at(0) + 16, block_at(1) + 8);
	follow(2, block_at(0));
	reach_free(reach);
	assert_states("SS");
}

static void test_lost_structures(void **state)
{
	(void)state;
	blocks_begin(6);
	word_set(block_at(0), block_at(1));
	word_set(block_at(1), block_at(0) + 8);  /* a circle: none of it is lost by itself */
	word_set(block_at(2), block_at(2));      /* a block's own address does not count */
	word_set(block_at(3), block_at(4));      /* what a lost block leads to */
	word_set(block_at(4), block_at(5) + 24); /* by way of another */
	follow(6, 0);
	reach_free(reach);
	assert_states("iillii");
}

static void test_empty_array(void **state)
{
	(void)state;
	blocks_begin(2);
	blocks[0].size_bytes = blocks[1].size_bytes = 8;
	word_set(block_at(1), 3); /* this one has elements elsewhere, so nothing is meant by the address behind it */
	reach = reach_new(blocks, 2, &memory);
	reach_word(reach, block_at(0) + 8);
	reach_word(reach, block_at(1) + 8);
	reach_follow(reach);
	reach_free(reach);
	assert_states("Il");
}

static void test_no_bytes(void **state)
{
	(void)state;
	blocks_begin(1);
	blocks[0].size_bytes = 0;
	follow(1, block_at(0));
	reach_free(reach);
	assert_states("S");
}

static void test_range_with_hole(void **state)
{
	(void)state;
	blocks_begin(3);
	word_set(HOLE_AT - 8, block_at(0));
	word_set(HOLE_AT, block_at(1));
	word_set(HOLE_END, block_at(2));
	word_set(HOLE_END + 8, block_at(1));
	reach = reach_new(blocks, 3, &memory);
	reach_range(reach, HOLE_AT - 9, HOLE_END + 15); /* not the last word, which is not whole */
	reach_follow(reach);
	reach_free(reach);
	assert_states("SlS");
}

static void test_loader(void **state)
{
	(void)state;
	blocks_begin(2);
	word_set(block_at(1), block_at(0));
	blocks[1].state = REACH_START;
	reach = reach_new(blocks, 2, &memory);
	reach_follow(reach);
	reach_free(reach);
	assert_states("SS");
}

/* Of a trace that a stranger made. */
static void test_wild_blocks(void **state)
{
	(void)state;
	struct reach_block wild[] = {{.address = 0, .size_bytes = UINT64_MAX},
				     {.address = BASE, .size_bytes = 8},
				     {.address = BASE, .size_bytes = 16, .id = 1},
				     {.address = UINT64_MAX, .size_bytes = UINT64_MAX}};
	memset(words, 0, sizeof(words));
	reach = reach_new(wild, 4, &memory);
	reach_word(reach, UINT64_MAX);
	reach_word(reach, BASE + 8);
	reach_range(reach, UINT64_MAX - 64, UINT64_MAX);
	reach_follow(reach);
	reach_free(reach);
	/* The one at 0, which the words 0 reach; the two at BASE, of which the second one counts. */
	assert_int_equal(wild[0].state, REACH_START);
	assert_int_equal(wild[1].state, REACH_LOST);
	assert_int_equal(wild[2].state, REACH_INTERIOR);
}

/* ---- the search ---- */

static uint32_t plain_find(const uint64_t *addresses, const uint64_t *ends, uint32_t count, uint64_t address)
{
	uint32_t last = BLOCK_NOWHERE;
	for (uint32_t i = 0; i < count && addresses[i] <= address; i++)
		last = i;
	return last != BLOCK_NOWHERE && address < ends[last] ? last : BLOCK_NOWHERE;
}

static int numbers_compare(const void *one, const void *other)
{
	const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
	return a < b ? -1 : a > b;
}

/* Dense blocks on few pages, sparse ones, and a far-off group, with every address near a block's begin and end. */
static void test_finder(void **state)
{
	enum { COUNT = 600 };
	static const uint64_t distances[] = {64, 8192, UINT64_C(1) << 22, UINT64_C(1) << 34};
	uint64_t addresses[COUNT], ends[COUNT];
	(void)state;
	srand(34);
	for (unsigned kind = 0; kind < sizeof(distances) / sizeof(*distances); kind++) {
		for (uint32_t i = 0; i < COUNT; i++)
			addresses[i] = 0x555500001000 + (uint64_t)rand() % COUNT * distances[kind] +
				       (i % 2 ? UINT64_C(0x100000000000) : 0);
		qsort(addresses, COUNT, sizeof(*addresses), numbers_compare);
		for (uint32_t i = 0; i < COUNT; i++)
			ends[i] = addresses[i] + 1 + (uint64_t)rand() % (2 * distances[kind]);
		struct block_finder finder;
		block_finder_make(&finder, addresses, ends, COUNT);
		for (uint32_t i = 0; i < COUNT; i++) {
			const uint64_t near[] = {
				addresses[i] - 1, addresses[i],   addresses[i] + 1,    ends[i] - 1,
				ends[i],          ends[i] + 4096, addresses[i] - 4096, addresses[i] + distances[kind]};
			for (unsigned j = 0; j < sizeof(near) / sizeof(*near); j++) {
				const uint32_t found = block_finder_find(&finder, near[j]);
				const uint32_t plain = plain_find(addresses, ends, COUNT, near[j]);
				assert_int_equal(found, plain);
			}
		}
		assert_int_equal(block_finder_find(&finder, 0), BLOCK_NOWHERE);
		assert_int_equal(block_finder_find(&finder, UINT64_MAX), BLOCK_NOWHERE);
		block_finder_fini(&finder);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain),           cmocka_unit_test(test_start_is_stronger),
		cmocka_unit_test(test_lost_structures), cmocka_unit_test(test_empty_array),
		cmocka_unit_test(test_no_bytes),        cmocka_unit_test(test_range_with_hole),
		cmocka_unit_test(test_loader),          cmocka_unit_test(test_wild_blocks),
		cmocka_unit_test(test_finder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
