/* SPDX-License-Identifier: MIT */
/* A sort gives the order of qsort_r(), and can be left at any comparison with nothing lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/sort.h"

enum { MOST = 20000 };

static uint32_t numbers[MOST], *items[MOST];
static bool is_cancelled;
static size_t compared, left_at;

static int compare(const void *a, const void *b, void *context)
{
	const uint32_t *one = *(uint32_t *const *)a, *other = *(uint32_t *const *)b;
	(void)context;
	is_cancelled |= ++compared == left_at;
	return (*one > *other) - (*one < *other);
}

static void items_make(size_t count, uint32_t values)
{
	for (uint32_t i = 0; i < count; i++) {
		numbers[i] = i * 2654435761u >> 7;
		numbers[i] %= values;
		items[i] = &numbers[i];
	}
	compared = 0;
	is_cancelled = false;
}

static void all_are_sorted(void **state)
{
	static const size_t counts[] = {0, 1, 2, 1023, 1024, 1025, 2048, 3000, 4097, MOST};
	(void)state;
	left_at = 0;
	for (size_t k = 0; k < sizeof(counts) / sizeof(*counts); k++) {
		items_make(counts[k], 500);
		pointers_sort((void **)items, counts[k], compare, NULL, &is_cancelled);
		/* Equal ones keep their order. */
		for (size_t i = 1; i < counts[k]; i++)
			assert_true(*items[i - 1] < *items[i] ||
				    (*items[i - 1] == *items[i] && items[i - 1] < items[i]));
	}
}

static void nothing_is_lost(void **state)
{
	static uint8_t is_there[MOST];
	(void)state;
	for (left_at = 1; left_at < 400000; left_at = left_at * 2 + 7) {
		items_make(MOST, UINT32_MAX);
		pointers_sort((void **)items, MOST, compare, NULL, &is_cancelled);
		memset(is_there, 0, sizeof(is_there));
		for (size_t i = 0; i < MOST; i++)
			is_there[items[i] - numbers]++;
		for (size_t i = 0; i < MOST; i++)
			assert_int_equal(is_there[i], 1);
		/* One part at most after that. */
		assert_true(!is_cancelled || compared - left_at < 1024 * 11);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_are_sorted), cmocka_unit_test(nothing_is_lost)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
