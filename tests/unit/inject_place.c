/* SPDX-License-Identifier: MIT */
/* Where memory of ours is placed: in reach, in a gap, and where the program does not count on room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "inject/place.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

enum { BYTES = 256 << 10 };

static const struct place_heap no_heap = {0, 0, 0};

static void assert_fits(const struct proc_map *maps, int count, const struct place_heap *heap,
			const struct place_wish *place, uint64_t at)
{
	assert_true(at >= PLACE_LOWEST && at >= place->low && at + BYTES <= place->high && at % 4096 == 0);
	assert_false(place_is_kept(heap, at, BYTES));
	for (int i = 0; i < count; i++)
		assert_true(at + BYTES < maps[i].low || at > maps[i].high);
}

static void beside_libraries_it_lies_below_them(void **state)
{
	const struct proc_map maps[] = {{.low = 0x555555554000, .high = 0x555555600000},
					{.low = 0x7ffff7c00000, .high = 0x7ffff7fff000}};
	const struct place_wish place = place_near(maps[1].low, maps[1].high);
	(void)state;
	uint64_t at = place_find(maps, 2, &no_heap, &place, BYTES);
	assert_fits(maps, 2, &no_heap, &place, at);
	assert_int_equal(at, maps[1].low - 512 * MIB);
}

static void in_low_memory_it_lies_as_high_as_a_jump_reaches(void **state)
{
	struct proc_map maps[] = {{.low = 0x400000, .high = 0x500000},
				  {.low = 0x2000000, .high = 0x2100000, .path = "[heap]"}};
	const struct place_heap heap = {0x500000, 0x2100000 + GIB, 0x2000000};
	const struct place_wish place = place_near(maps[0].low, maps[0].high);
	(void)state;
	uint64_t at = place_find(maps, 2, &heap, &place, BYTES);
	assert_fits(maps, 2, &heap, &place, at);
	assert_int_equal(at, 0x400000 + PLACE_REACH - BYTES);
}

static void a_heap_that_may_come_to_be_far_away_is_kept(void **state)
{
	/* Linked at 0x7c400000; its break is so far that all above is kept or out of reach. */
	const struct proc_map maps[] = {{.low = 0x7c400000, .high = 0x7c500000}};
	const struct place_heap heap = {0x7c500000, 0xbc500000 + GIB, 0xbc500000};
	const struct place_wish place = place_near(maps[0].low, maps[0].high);
	(void)state;
	uint64_t at = place_find(maps, 1, &heap, &place, BYTES);
	assert_fits(maps, 1, &heap, &place, at);
	assert_true(at > 0x68000000 && at < 0x7c400000);
}

static void where_nothing_else_is_in_reach_it_lies_before_the_heap(void **state)
{
	/* A static program whose break is almost 1 GiB behind it. */
	const struct proc_map maps[] = {{.low = 0x400000, .high = 0x500000}};
	const struct place_heap heap = {0x500000, 0x40400000 + GIB, 0x40400000};
	const struct place_wish place = place_near(maps[0].low, maps[0].high);
	(void)state;
	uint64_t at = place_find(maps, 1, &heap, &place, BYTES);
	assert_int_equal(at, 0x40400000 - BYTES);
}

static void nothing_is_better_than_the_programs_room(void **state)
{
	/* All that is free is below 4 MiB, or where the heap grows. */
	const struct proc_map maps[] = {{.low = 0x400000, .high = 0x500000},
					{.low = 0x20000000, .high = 0x7fffffff0000}};
	const struct place_heap heap = {0x500000, 0x20000000, 0x500000};
	const struct place_wish near = place_near(maps[0].low, maps[0].high), anywhere = place_anywhere();
	(void)state;
	assert_int_equal(place_find(maps, 2, &heap, &near, BYTES), 0);
	assert_int_equal(place_find(maps, 2, &heap, &anywhere, BYTES), 0);
	assert_int_not_equal(place_find(maps, 2, &no_heap, &near, BYTES), 0);
	assert_true(place_is_kept(&heap, 0x10000, BYTES) && place_is_kept(&heap, 0x500000 - 4096, 8192) &&
		    !place_is_kept(&heap, 0x20000000, BYTES));
}

static void a_stack_keeps_room_to_grow(void **state)
{
	const struct proc_map maps[] = {{.low = 0x7ffffffde000, .high = 0x7ffffffff000, .path = "[stack]"}};
	const struct place_wish anywhere = place_anywhere();
	(void)state;
	uint64_t at = place_find(maps, 1, &no_heap, &anywhere, BYTES);
	assert_int_equal(at, maps[0].low - 256 * MIB - BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beside_libraries_it_lies_below_them),
		cmocka_unit_test(in_low_memory_it_lies_as_high_as_a_jump_reaches),
		cmocka_unit_test(a_heap_that_may_come_to_be_far_away_is_kept),
		cmocka_unit_test(where_nothing_else_is_in_reach_it_lies_before_the_heap),
		cmocka_unit_test(nothing_is_better_than_the_programs_room),
		cmocka_unit_test(a_stack_keeps_room_to_grow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
