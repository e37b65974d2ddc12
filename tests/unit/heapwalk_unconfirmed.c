/* SPDX-License-Identifier: MIT */
#include "heapwalk/unconfirmed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { BLOCKS = 100, GONE = 7, KEY = 4711, WORDS = 4 };

/* A heap may shrink while its blocks are watched: the others stay. */
static void test_memory_that_is_gone(void **state)
{
	(void)state;
	const struct glibc_layout layout = {.has_random_key = true};
	struct heapwalk walk = {.pid = getpid()};
	struct heap_reading reading = {.walk = &walk, .glibc.layout = &layout};
	struct unconfirmed unconfirmed = {calloc(BLOCKS, sizeof(struct unconfirmed_block)), BLOCKS};
	uint64_t *words = calloc(BLOCKS, WORDS * sizeof(*words));
	void *gone = mmap(NULL, READING_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool added;
	assert_non_null(unconfirmed.items);
	assert_non_null(words);
	map_add(&reading.keys, KEY, &added);
	for (size_t i = 0; i < BLOCKS; i++) {
		uint64_t *block = words + i * WORDS;
		block[0] = 33;
		block[2] = KEY;
		unconfirmed.items[i].block.address = (uint64_t)(i == GONE ? gone : block + 1);
		memcpy(unconfirmed.items[i].words, (uint64_t[]){32, 0, KEY}, sizeof(unconfirmed.items[i].words));
	}
	unconfirmed_drop_changed(&reading, &unconfirmed);
	assert_int_equal(unconfirmed.count, BLOCKS - 1);
	/* One that was given out again has no mark. */
	words[2] = 0;
	unconfirmed_drop_changed(&reading, &unconfirmed);
	assert_int_equal(unconfirmed.count, BLOCKS - 2);
	assert_int_equal(unconfirmed.items[0].block.address, (uint64_t)(words + WORDS + 1));
	free(unconfirmed.items);
	map_fini(&reading.keys);
	munmap(gone, READING_PAGE);
	free(words);
}

/* Arenas lie anywhere: what another walk has found again stays, wherever its arena comes. */
static void test_arenas_in_any_order(void **state)
{
	(void)state;
	static const uint64_t first_walk[] = {0x7ffad8077970, 0x7ffad424f2b0, 0x7ffae0175f00, 0x7ffadc117400};
	struct heapwalk_block second_walk[] = {
		{0x7ffad424f2b0, 24, 1}, {0x7ffad8077970, 24, 0}, {0x7ffadc117400, 40, 3}, {0x7ffae0175f00, 24, 2}};
	const struct heapwalk other = {.blocks = second_walk, .count = 4};
	struct heapwalk walk = {.pid = getpid()};
	struct heap_reading reading = {.walk = &walk};
	struct unconfirmed unconfirmed;
	for (uint32_t i = 0; i < 4; i++) {
		assert_true(found_block_add(&walk, first_walk[i], 24, i | HEAPWALK_UNCONFIRMED));
		assert_true(found_block_add(&walk, first_walk[i] + 64, 24, i));
	}
	unconfirmed_take(&reading, &unconfirmed);
	assert_int_equal(walk.count, 4);
	assert_int_equal(unconfirmed.count, 4);
	/* One has another size. */
	unconfirmed_confirm(&unconfirmed, &other);
	assert_int_equal(unconfirmed.count, 3);
	unconfirmed_return(&unconfirmed, &walk);
	assert_int_equal(walk.count, 7);
	assert_int_equal(walk.bytes, 7 * 24);
	for (size_t i = 4; i < walk.count; i++) {
		assert_int_not_equal(walk.blocks[i].address, first_walk[3]);
		assert_false(walk.blocks[i].heap & HEAPWALK_UNCONFIRMED);
	}
	heapwalk_fini(&walk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_that_is_gone),
					   cmocka_unit_test(test_arenas_in_any_order)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
