/* SPDX-License-Identifier: MIT */
/* What sites are split by (src/query/by.c): which part an allocation is of, and what the parts are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "match/match.h"
#include "query/by.h"
#include "query/window.h"
#include "scene.h"
#include "trace/row_ids.h"

static struct scene scene;
static struct trace *trace;
static struct heap_table *table;

static const char path[] = "by.xht";

/* A part, and what it comes to. */
struct part {
	const char *text;
	uint64_t count, bytes;
};

static int begin(void **state)
{
	(void)state;
	scene_open(&scene, path);
	return 0;
}

static int end(void **state)
{
	(void)state;
	scene_remove(path, trace, table);
	return 0;
}

static void build(void)
{
	trace = scene_read(&scene, path);
	table = scene_match(trace);
}

/* The parts of a range are these, whatever their order. */
static void assert_parts(enum heap_by by, struct heap_range range, const struct part *parts, uint32_t count)
{
	struct heap_filter filter;
	struct heap_window window;
	uint64_t total = 0;
	uint32_t found = 0;
	heap_filter_init(&filter);
	heap_window_make(&window, table, &filter, range, by);
	for (uint32_t i = 0; i < window.cell_count; i++) {
		/* Such a part has something at the peak only. */
		if (!window.numbers[i].total_count)
			continue;
		char *text = heap_by_text(&window, table, window.cells[i].by);
		uint32_t at = 0;
		while (at < count && strcmp(parts[at].text, text) != 0)
			at++;
		if (at == count)
			fail_msg("by %s: \"%s\" is not expected", heap_by_name(by), text);
		if (window.numbers[i].total_count != parts[at].count ||
		    window.numbers[i].total_bytes != parts[at].bytes)
			fail_msg("by %s: \"%s\" comes to %lu blocks of %lu bytes", heap_by_name(by), text,
				 (unsigned long)window.numbers[i].total_count,
				 (unsigned long)window.numbers[i].total_bytes);
		total += window.numbers[i].total_count;
		found++;
		free(text);
	}
	assert_int_equal(found, count);
	assert_int_equal(total, window.totals.total_count);
	heap_window_fini(&window);
	heap_filter_fini(&filter);
}
#define ASSERT_PARTS(by, ...) \
	assert_parts(by, (struct heap_range){0, table->duration_ns}, (const struct part[]){__VA_ARGS__}, \
		     sizeof((const struct part[]){__VA_ARGS__}) / sizeof(struct part))

static void names_are_found_in_any_case(void **state)
{
	(void)state;
	for (int by = HEAP_BY_PROCESS; by <= HEAP_BY_CLASS; by++)
		assert_int_equal(heap_by_find(heap_by_name((enum heap_by)by)), by);
	assert_int_equal(heap_by_find("LifeTime"), HEAP_BY_LIFETIME);
	assert_int_equal(heap_by_find(""), HEAP_BY_NONE);
	assert_int_equal(heap_by_find("threads"), HEAP_BY_NONE);
}

/* Labels that are alike end in what tells them apart. */
static void processes_and_threads_with_one_label_are_told_apart(void **state)
{
	(void)state;
	uint32_t first = scene_process(&scene, 100, TRACE_NONE, 0), second = scene_process(&scene, 100, TRACE_NONE, 0),
		 third = scene_process(&scene, 200, TRACE_NONE, 0);
	const uint32_t threads[] = {scene_thread(&scene, first, 100), scene_thread(&scene, second, 100),
				    scene_thread(&scene, third, 200), scene_thread(&scene, third, 201),
				    scene_thread(&scene, third, 201)};
	for (uint32_t i = 0; i < 5; i++)
		scene_alloc(&scene, threads[i], 10 + i, 0x1000 + 0x100 * (uint64_t)i, 1u << i);
	build();
	ASSERT_PARTS(HEAP_BY_PROCESS, {"pid 100 (app) #0", 1, 1}, {"pid 100 (app) #1", 1, 2}, {"pid 200 (app)", 3, 28});
	ASSERT_PARTS(HEAP_BY_THREAD, {"pid 100 thread 100 worker, process #0", 1, 1},
		     {"pid 100 thread 100 worker, process #1", 1, 2}, {"pid 200 thread 200 worker", 1, 4},
		     {"pid 200 thread 201 worker #3", 1, 8}, {"pid 200 thread 201 worker #4", 1, 16});
	ASSERT_PARTS(HEAP_BY_HEAP, {"main arena 0x7f0000001000 in pid 100", 5, 31});
	ASSERT_PARTS(HEAP_BY_NONE, {"", 5, 31});
	struct heap_window window = {.by = HEAP_BY_THREAD};
	assert_int_equal(heap_by_process(&window, table, 3), third);
	assert_int_equal(heap_by_thread(&window, table, 3), 3);
	assert_int_equal(heap_by_thread(&window, table, 5), HEAP_NONE);
	window.by = HEAP_BY_SIZE;
	assert_int_equal(heap_by_process(&window, table, 3), HEAP_NONE);
	assert_int_equal(heap_by_thread(&window, table, 3), HEAP_NONE);
}

/* Each bound is on its side. */
static void sizes_are_powers_of_two(void **state)
{
	const uint64_t sizes[] = {0, 1, 2, 3, 4, 7, 1023, 1024, (UINT64_C(1) << 40) - 1, UINT64_C(1) << 40};
	(void)state;
	uint32_t thread = scene_thread(&scene, scene_process(&scene, 100, TRACE_NONE, 0), 100);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		scene_alloc(&scene, thread, 10 + i, 0x1000 + 0x100 * (uint64_t)i, sizes[i]);
	build();
	ASSERT_PARTS(HEAP_BY_SIZE, {"0 B", 1, 0}, {"1 B", 1, 1}, {"2 B to 3 B", 2, 5}, {"4 B to 7 B", 2, 11},
		     {"512 B to 1023 B", 1, 1023}, {"1.0 KiB to 2.0 KiB", 1, 1024},
		     {"512.0 GiB to 1.0 TiB", 1, (UINT64_C(1) << 40) - 1},
		     {"1.0 TiB to 2.0 TiB", 1, UINT64_C(1) << 40});
}

static void lifetimes_are_powers_of_ten(void **state)
{
	(void)state;
	uint32_t thread = scene_thread(&scene, scene_process(&scene, 100, TRACE_NONE, 0), 100);
	const int64_t lifetimes[] = {0, 999, 1000, 9999, 10000, 2000000000};
	for (uint32_t i = 0; i < sizeof(lifetimes) / sizeof(*lifetimes); i++) {
		scene_alloc(&scene, thread, 10 + i, 0x1000 + 0x100 * (uint64_t)i, 10);
		scene_block(&scene, thread);
	}
	for (uint32_t i = 0; i < sizeof(lifetimes) / sizeof(*lifetimes); i++)
		scene_free(&scene, thread, 10 + i + lifetimes[i], 0x1000 + 0x100 * (uint64_t)i);
	build();
	ASSERT_PARTS(HEAP_BY_LIFETIME, {"below 1.00 us", 2, 20}, {"1.00 us to 10.0 us", 2, 20},
		     {"10.0 us to 100 us", 1, 10}, {"1.00 s to 10.0 s", 1, 10});
}

/* Twenty parts of the range, the first and the last with their bounds. */
static void times_are_parts_of_the_range(void **state)
{
	(void)state;
	uint32_t thread = scene_thread(&scene, scene_process(&scene, 100, TRACE_NONE, 0), 100);
	const int64_t times[] = {0, 49, 51, 500, 999, 1000};
	for (uint32_t i = 0; i < sizeof(times) / sizeof(*times); i++)
		scene_alloc(&scene, thread, times[i], 0x1000 + 0x100 * (uint64_t)i, 10);
	build();
	ASSERT_PARTS(HEAP_BY_TIME, {"0 ns to 50 ns", 2, 20}, {"50 ns to 100 ns", 1, 10}, {"450 ns to 500 ns", 1, 10},
		     {"950 ns to 1.00 us", 2, 20});
	const struct part part = {"50 ns to 50 ns", 1, 10};
	assert_parts(HEAP_BY_TIME, (struct heap_range){50, 52}, &part, 1);
}

/* Begun and given back in the range, or one of both. */
static void classes_are_those_of_the_range(void **state)
{
	(void)state;
	uint32_t thread = scene_thread(&scene, scene_process(&scene, 100, TRACE_NONE, 0), 100);
	scene_alloc(&scene, thread, 10, 0x1000, 1);
	scene_alloc(&scene, thread, 20, 0x2000, 2);
	scene_free(&scene, thread, 110, 0x1000);
	scene_alloc(&scene, thread, 120, 0x3000, 4);
	scene_free(&scene, thread, 130, 0x3000);
	scene_alloc(&scene, thread, 140, 0x4000, 8);
	scene_free(&scene, thread, 300, 0x4000);
	scene_free(&scene, thread, 310, 0x2000);
	build();
	const struct part parts[] = {{"AIFI", 1, 4}, {"AIFO", 1, 8}, {"AOFI", 1, 1}, {"AOFO", 1, 2}};
	struct heap_filter filter;
	struct heap_window window;
	heap_filter_init(&filter);
	heap_window_make(&window, table, &filter, (struct heap_range){100, 200}, HEAP_BY_CLASS);
	assert_int_equal(window.cell_count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		char *text = heap_by_text(&window, table, window.cells[i].by);
		assert_string_equal(text, parts[window.cells[i].by].text);
		assert_int_equal(window.numbers[i].total_bytes, parts[window.cells[i].by].bytes);
		free(text);
	}
	/* What began before is in no total. */
	assert_int_equal(window.totals.total_count, 2);
	assert_int_equal(window.totals.total_bytes, 12);
	heap_window_fini(&window);
	heap_filter_fini(&filter);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found_in_any_case),
		TEST(processes_and_threads_with_one_label_are_told_apart),
		TEST(sizes_are_powers_of_two),
		TEST(lifetimes_are_powers_of_ten),
		TEST(times_are_parts_of_the_range),
		TEST(classes_are_those_of_the_range),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
