/* SPDX-License-Identifier: MIT */
/* Blocks that looks find lost, reachable, freed and lost again: since which look, and what stays when a look is made once more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "action/leaks/leak_looks.h"

enum { BLOCKS = 40, LOOKS = 30, STEP_NS = 1000 };

static struct leak_looks looks;
static uint32_t process;

static struct looked_block block_of(uint64_t i)
{
	return (struct looked_block){.address = 4096 + i / 2 * 16, .birth_ns = (int64_t)(i % 2), .size_bytes = i + 1};
}

/* A look at blocks, a letter each: l lost, r reachable, - not live. */
static void look(uint32_t number, const char *states)
{
	leak_looks_begin(&looks, process, number, number * STEP_NS);
	for (uint64_t i = 0; states[i]; i++) {
		const struct looked_block block = block_of(i);
		if (states[i] != '-')
			leak_looks_see(&looks, &block, states[i] == 'l');
	}
	leak_looks_end(&looks);
}

static void expect_block(uint64_t i, enum looked_state state, uint32_t since)
{
	const struct looked_block name = block_of(i), *block = leak_looks_find(&looks, name.address, name.birth_ns);
	assert_non_null(block);
	assert_int_equal(block->state, state);
	assert_int_equal(block->size_bytes, name.size_bytes);
	if (state == LOOKED_LOST) {
		assert_int_equal(block->since, since);
		assert_int_equal(block->since_ns, since * STEP_NS);
	}
}

static int end(void **state)
{
	(void)state;
	leak_looks_fini(&looks);
	return 0;
}

static void since(void **state)
{
	(void)state;
	look(1, "lrll-l");
	look(2, "lllr--");
	expect_block(0, LOOKED_LOST, 1);
	expect_block(1, LOOKED_LOST, 2);
	expect_block(2, LOOKED_LOST, 1);
	expect_block(3, LOOKED_REACHABLE, 0);
	expect_block(5, LOOKED_FREED, 0);
	assert_null(leak_looks_find(&looks, block_of(4).address, block_of(4).birth_ns));
	look(3, "-lll-");
	expect_block(0, LOOKED_FREED, 0);
	expect_block(1, LOOKED_LOST, 2);
	expect_block(2, LOOKED_LOST, 1);
	expect_block(3, LOOKED_LOST, 3);
	expect_block(5, LOOKED_FREED, 0);
	assert_int_equal(looks.first_ns, STEP_NS);
}

/* What a look had said before is forgotten, and not what those before it had. */
static void once_more(void **state)
{
	(void)state;
	look(1, "lrr");
	look(2, "rlr");
	look(2, "lrr");
	expect_block(0, LOOKED_LOST, 1);
	assert_null(leak_looks_find(&looks, block_of(1).address, block_of(1).birth_ns));
	look(3, "lll");
	expect_block(0, LOOKED_LOST, 1);
	expect_block(1, LOOKED_LOST, 3);
}

/* Another process may have the same pid, and an exec leaves nothing of what was there: nothing is freed, or lost since then. */
static void other_process(void **state)
{
	(void)state;
	look(1, "lll");
	process++;
	look(2, "l-r");
	look(2, "l-r");
	expect_block(0, LOOKED_LOST, 2);
	assert_int_equal(looks.now.count, 1);
	assert_int_equal(looks.first, 2);
	assert_int_equal(looks.first_ns, 2 * STEP_NS);
	look(3, "lrl");
	expect_block(0, LOOKED_LOST, 2);
	expect_block(2, LOOKED_LOST, 3);
	assert_int_equal(looks.first, 2);
}

static void at_random(void **state)
{
	static const char letters[] = "lr-";
	char states[LOOKS][BLOCKS + 1] = {{0}};
	uint32_t seed = 1;
	(void)state;
	for (uint32_t number = 1; number <= LOOKS; number++) {
		for (int i = 0; i < BLOCKS; i++)
			states[number - 1][i] =
				letters[(seed = seed * 1664525 + 1013904223) >> 16 & 1 || i % 4 == 0 ? (seed >> 20) % 3
												     : 0];
		look(number, states[number - 1]);
		for (int i = 0; i < BLOCKS; i++) {
			uint32_t first = number;
			bool was_lost = false;
			while (first > 1 && states[first - 2][i] == 'l')
				first--;
			for (uint32_t before = 0; before < number; before++)
				was_lost |= states[before][i] == 'l';
			const char now = states[number - 1][i];
			if (was_lost)
				expect_block((uint64_t)i,
					     now == 'l'   ? LOOKED_LOST
					     : now == 'r' ? LOOKED_REACHABLE
							  : LOOKED_FREED,
					     first);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(since, end),
		cmocka_unit_test_teardown(once_more, end),
		cmocka_unit_test_teardown(other_process, end),
		cmocka_unit_test_teardown(at_random, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
