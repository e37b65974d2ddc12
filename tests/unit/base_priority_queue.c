/* SPDX-License-Identifier: MIT */
/* Items leave a priority queue in their order, however they came into it. */
#include "base/priority_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/order.h"

enum { MOST = 1000 };

/* Items are the numbers of keys: the context has the keys. */
PRIORITY_QUEUE(queue, uint32_t, const uint32_t *, context[*one] < context[*other])

static uint32_t keys[MOST], sorted[MOST], items[MOST], keep[MOST];

/* Return whether no item comes before the one above it. */
static bool queue_is_valid(uint32_t count)
{
	for (uint32_t at = 1; at < count; at++)
		if (keys[items[at]] < keys[items[(at - 1) / 2]])
			return false;
	return true;
}

static void keys_make(uint32_t count, uint32_t values)
{
	for (uint32_t i = 0; i < count; i++) {
		keys[i] = (i * 2654435761u >> 7) % values;
		sorted[i] = keys[i];
		items[i] = i;
	}
	if (count)
		qsort(sorted, count, sizeof(*sorted), compare_u32);
}

/* Pop all of them; each item comes once. */
static void leave_in_order(uint32_t count)
{
	static bool has_come[MOST];
	memset(has_come, 0, sizeof(has_come));
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(keys[items[0]], sorted[i]);
		assert_false(has_come[items[0]]);
		has_come[items[0]] = true;
		queue_pop(keys, items, count - i - 1);
		assert_true(queue_is_valid(count - i - 1));
	}
}

static const uint32_t counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 100, MOST}, value_counts[] = {1, 3, UINT32_MAX};

#define EACH_CASE \
	for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++) \
		for (size_t v = 0; v < sizeof(value_counts) / sizeof(*value_counts); v++)

static void pushed_items_leave_in_order(void **state)
{
	(void)state;
	EACH_CASE
	{
		keys_make(counts[c], value_counts[v]);
		for (uint32_t i = 0; i < counts[c]; i++) {
			queue_push(keys, items, i, i);
			assert_true(queue_is_valid(i + 1));
		}
		leave_in_order(counts[c]);
	}
}

static void made_queues_leave_in_order(void **state)
{
	(void)state;
	EACH_CASE
	{
		keys_make(counts[c], value_counts[v]);
		queue_make(keys, items, counts[c]);
		assert_true(queue_is_valid(counts[c]));
		leave_in_order(counts[c]);
	}
}

/* The greatest ones are what is left if each that comes later replaces the first. */
static void replaced_items_sink(void **state)
{
	enum { KEPT = 10 };
	(void)state;
	keys_make(MOST, UINT32_MAX);
	queue_make(keys, items, KEPT);
	for (uint32_t i = KEPT; i < MOST; i++) {
		if (keys[i] <= keys[items[0]])
			continue;
		items[0] = i;
		queue_sink(keys, items, KEPT, 0);
		assert_true(queue_is_valid(KEPT));
	}
	for (uint32_t i = 0; i < KEPT; i++)
		keep[i] = keys[items[i]];
	qsort(keep, KEPT, sizeof(*keep), compare_u32);
	assert_memory_equal(keep, sorted + MOST - KEPT, sizeof(*keep) * KEPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pushed_items_leave_in_order),
		cmocka_unit_test(made_queues_leave_in_order),
		cmocka_unit_test(replaced_items_sink),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
