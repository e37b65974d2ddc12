/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/grow.h"
#include "base/hash.h"

enum { KEYS = 5000, FAR = 40 };

/* Keys that differ in a few bits only, low ones or high ones. */
static uint64_t key_of(uint32_t i)
{
	return i % 2 ? (uint64_t)i << FAR : i;
}

static void values_are_found_by_their_keys(void **state)
{
	uint32_t *(*const add[])(struct map *, uint64_t, bool *) = {map_add, map_try_add};
	(void)state;
	for (unsigned way = 0; way < 2; way++) {
		struct map map = {0};
		bool added;
		assert_null(map_find(&map, 0));
		for (uint32_t i = 0; i < KEYS; i++) {
			*add[way](&map, key_of(i), &added) = i;
			assert_true(added);
		}
		for (uint32_t i = 0; i < KEYS; i++) {
			assert_int_equal(*map_find(&map, key_of(i)), i);
			assert_int_equal(*add[way](&map, key_of(i), &added), i);
			assert_false(added);
		}
		assert_int_equal(map.count, KEYS);
		assert_null(map_find(&map, key_of(KEYS)));
		map_fini(&map);
		assert_null(map_find(&map, 1));
	}
}

static void arrays_grow_and_keep_what_they_hold(void **state)
{
	uint64_t *items = NULL;
	uint32_t count = 0, capacity = 0;
	(void)state;
	for (; count < KEYS; count++) {
		assert_true(grow_by_one(items, count, capacity));
		assert_true(capacity > count);
		items[count] = key_of(count);
	}
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(items[i], key_of(i));
	free(items);
}

static void an_array_that_cannot_grow_is_as_before(void **state)
{
	volatile size_t most = SIZE_MAX / sizeof(uint64_t) - 1; /* as if: its double is more than there can be */
	uint64_t *items = NULL;
	size_t count = most, capacity = most;
	(void)state;
	assert_false(grow_by_one(items, count, capacity));
	assert_null(items);
	assert_int_equal(capacity, most);
}

/* Numbers that differ by one stand in different cells as a rule. */
static void hashes_spread(void **state)
{
	enum { BITS = 12 };
	static uint8_t seen[1 << BITS], pairs[1 << BITS];
	unsigned cells = 0, pair_cells = 0;
	(void)state;
	for (uint32_t i = 0; i < 1 << BITS; i++) {
		uint8_t *cell = &seen[hash_bits(i, BITS)], *pair = &pairs[hash_pair(i, 0) & ((1 << BITS) - 1)];
		cells += !*cell;
		pair_cells += !*pair;
		*cell = *pair = 1;
	}
	assert_in_range(cells, (1 << BITS) / 2, 1 << BITS);
	assert_in_range(pair_cells, (1 << BITS) / 2, 1 << BITS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_found_by_their_keys),
		cmocka_unit_test(arrays_grow_and_keep_what_they_hold),
		cmocka_unit_test(an_array_that_cannot_grow_is_as_before),
		cmocka_unit_test(hashes_spread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
