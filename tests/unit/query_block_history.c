/* SPDX-License-Identifier: MIT */
/*
 * What an address was at a moment: the block before, at and after it, live neighbours, reallocs, a parent's block in a
 * forked process. And addresses that are nobody's, at both ends of the address space.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "query/block_history.h"
#include "scene.h"
#include "trace/reader.h"
#include "trace/row_ids.h"

enum { LOW = 0x10000, MIDDLE = 0x10100, HIGH = 0x10200, FAR = 0x80000 };

static const char path[] = "history.xht";

/* A process with a block below and one above, and two in the middle, one after the other; and what reallocs make of a
   block far away. A child that is forked while the first one in the middle is live. */
struct fixture {
	struct trace *trace;
	struct heap_table *table;
};

static int setup(void **state)
{
	static struct fixture fixture;
	struct scene scene;
	scene_open(&scene, path);
	uint32_t process = scene_process(&scene, 100, TRACE_NONE, 0), thread = scene_thread(&scene, process, 100);
	scene_alloc(&scene, thread, 10, LOW, 64);
	scene_alloc(&scene, thread, 20, HIGH, 64);
	scene_alloc(&scene, thread, 30, MIDDLE, 64);
	uint32_t child = scene_process(&scene, 101, process, 35);
	scene_free(&scene, scene_thread(&scene, child, 101), 38, HIGH);
	scene_free(&scene, thread, 40, MIDDLE);
	scene_alloc(&scene, thread, 50, MIDDLE, 32);
	scene_free(&scene, thread, 60, MIDDLE);
	scene_alloc(&scene, thread, 61, FAR, 16);
	for (int i = 0; i < 9; i++)
		scene_realloc(&scene, thread, 70 + 2 * i, 71 + 2 * i, FAR + (uint64_t)i * 0x1000,
			      FAR + (uint64_t)(i + 1) * 0x1000, 32 + (uint64_t)i);
	scene_end(&scene, process, 200, TRACE_END_EXIT, 0);
	fixture.trace = scene_read(&scene, path);
	fixture.table = scene_match(fixture.trace);
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	scene_remove(path, fixture->trace, fixture->table);
	return 0;
}

static struct block_history history_at(const struct fixture *fixture, uint32_t process, uint64_t address,
				       int64_t time_ns, uint64_t step)
{
	struct block_history history = {.address = address, .process = process, .at = {time_ns, step}};
	block_history_find(&history, 1, fixture->table);
	return history;
}

static struct block_history history_at_end(const struct fixture *fixture, uint64_t address)
{
	struct block_history history = {.address = address, .is_end = true};
	block_history_find(&history, 1, fixture->table);
	return history;
}

static void test_moments(void **state)
{
	const struct fixture *fixture = *state;
	struct block_history history = history_at(fixture, 0, MIDDLE + 63, 29, POSITION_LAST);
	assert_null(block_history_last(&history));
	assert_int_equal(history.after_count, 1);
	assert_int_equal(history.below.details.address, LOW);
	assert_int_equal(history.above.details.address, HIGH);
	history = history_at(fixture, 0, MIDDLE + 63, 30, POSITION_LAST);
	assert_int_equal(history.live.row.size_bytes, 64);
	history = history_at(fixture, 0, MIDDLE + 63, 39, POSITION_LAST);
	assert_int_equal(history.live.row.size_bytes, 64);
	/* A byte that only the first of both blocks had. */
	history = history_at(fixture, 0, MIDDLE + 63, 55, POSITION_LAST);
	assert_int_equal(history.live.id, HEAP_NONE);
	assert_int_equal(block_history_last(&history)->row.size_bytes, 64);
	history = history_at(fixture, 0, MIDDLE, 55, POSITION_LAST);
	assert_int_equal(history.live.row.size_bytes, 32);
	assert_int_equal(history.before_count, 2);
	assert_int_equal(block_history_kept(&history), 2);
	assert_int_equal(block_history_before(&history, 0)->row.size_bytes, 64);
}

/* A beginning at a position is before it, and an end behind it. */
static void test_steps(void **state)
{
	const struct fixture *fixture = *state;
	struct block_history history = history_at(fixture, 0, MIDDLE, 30, 0);
	assert_int_equal(history.live.id, HEAP_NONE);
	history = history_at(fixture, 0, MIDDLE, 30, 1);
	assert_int_not_equal(history.live.id, HEAP_NONE);
	history = history_at(fixture, 0, MIDDLE, 40, 1);
	assert_int_not_equal(history.live.id, HEAP_NONE);
	history = history_at(fixture, 0, MIDDLE, 40, 2);
	assert_int_equal(history.live.id, HEAP_NONE);
}

static void test_end(void **state)
{
	const struct fixture *fixture = *state;
	struct block_history history = history_at_end(fixture, MIDDLE);
	assert_int_equal(history.live.id, HEAP_NONE);
	assert_int_equal(block_history_last(&history)->row.size_bytes, 32);
	assert_int_equal(block_history_last(&history)->row.end, HEAP_END_FREE);
	/* What was live when its process ended is live at the end. */
	history = history_at_end(fixture, LOW + 1);
	assert_int_equal(history.live.row.end, HEAP_END_EXIT);
	assert_int_equal(history.above.details.address, HIGH);
	assert_int_equal(history.below.id, HEAP_NONE);
}

static void test_nobody(void **state)
{
	const struct fixture *fixture = *state;
	static const uint64_t addresses[] = {0, 1, LOW - 1, LOW + 64, FAR + 16, UINT64_MAX};
	for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
		struct block_history history = history_at_end(fixture, addresses[i]);
		assert_null(block_history_last(&history));
		assert_int_equal(history.before_count + history.after_count, 0);
	}
}

static void test_counts(void **state)
{
	const struct fixture *fixture = *state;
	uint64_t counts[2] = {0};
	block_history_count(counts, fixture->table, MIDDLE);
	assert_int_equal(counts[0], 2);
	assert_int_equal(counts[1], 0);
}

static void test_reallocs(void **state)
{
	const struct fixture *fixture = *state;
	struct history_chain earlier, later;
	struct block_history history = history_at_end(fixture, FAR + 0x7000);
	const struct history_block *block = block_history_last(&history);
	block_history_chains(&earlier, &later, fixture->table, block);
	assert_int_equal(earlier.count, 7);
	assert_int_equal(earlier.step_count, HISTORY_STEPS_MAX);
	assert_int_equal(earlier.steps[HISTORY_STEPS_MAX - 1].details.address, FAR + 0x6000);
	assert_int_equal(earlier.steps[0].details.address, FAR + 0x2000);
	assert_int_equal(later.count, 2);
	assert_int_equal(later.steps[0].details.address, FAR + 0x8000);
	assert_int_equal(later.steps[1].details.address, FAR + 0x9000);
	history = history_at_end(fixture, LOW);
	block_history_chains(&earlier, &later, fixture->table, block_history_last(&history));
	assert_int_equal(earlier.count + later.count, 0);
}

static void test_fork(void **state)
{
	const struct fixture *fixture = *state;
	struct block_history history = history_at(fixture, 1, MIDDLE + 1, 100, POSITION_LAST);
	assert_null(block_history_last(&history));
	block_history_inherit(&history, fixture->table);
	assert_true(history.is_inherited);
	assert_int_equal(history.process, 0);
	assert_int_equal(history.live.row.size_bytes, 64);
	/* It began behind the fork. */
	history = history_at(fixture, 1, FAR, 100, POSITION_LAST);
	block_history_inherit(&history, fixture->table);
	assert_false(history.is_inherited);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moments), cmocka_unit_test(test_steps),  cmocka_unit_test(test_end),
		cmocka_unit_test(test_nobody),  cmocka_unit_test(test_counts), cmocka_unit_test(test_reallocs),
		cmocka_unit_test(test_fork),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
