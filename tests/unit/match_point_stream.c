/* SPDX-License-Identifier: MIT */
/*
 * Streams of single times: at these times they have the points, and the numbers of events, that a stream of the whole
 * trace has there. Threads write event blocks of different lengths, and one of them is seldom awake.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "match/point_stream.h"
#include "scene.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"

enum { EVENTS = 6000, THREADS = 5, TIMES_MAX = 12, ROUNDS = 300, LAST_NS = EVENTS / 2 };

static const char path[] = "point_stream.xht";
static struct trace *trace;
static uint32_t seed = 1;

static uint32_t random_number(uint32_t limit)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % limit;
}

static int begin(void **state)
{
	struct scene scene;
	(void)state;
	scene_open(&scene, path);
	uint32_t processes[] = {scene_process(&scene, 100, TRACE_NONE, 0), scene_process(&scene, 200, TRACE_NONE, 0)};
	uint32_t threads[THREADS];
	for (uint32_t i = 0; i < THREADS; i++)
		threads[i] = scene_thread(&scene, processes[i % 2], 100 * (i % 2 + 1) + i);
	for (uint32_t i = 0; i < EVENTS; i++) {
		/* The last thread calls twice: near the beginning, and near the end. */
		uint32_t which = i % (EVENTS * 3 / 4) == 100 ? THREADS - 1 : random_number(THREADS - 1);
		int64_t time_ns = 10 + i / 2;
		uint64_t address = 0x10000 + 0x40 * (uint64_t)i;
		if (random_number(4))
			scene_alloc(&scene, threads[which], time_ns, address, 8);
		else
			scene_realloc(&scene, threads[which], time_ns - random_number(2), time_ns, address - 0x40,
				      address, 8);
		if (!random_number(60) && which < THREADS - 1)
			scene_block(&scene, threads[which]);
	}
	trace = scene_read(&scene, path);
	assert_true(trace_block_count(trace) > 50);
	return 0;
}

static int end(void **state)
{
	(void)state;
	scene_remove(path, trace, NULL);
	return 0;
}

/* A point at one of the times. */
struct seen {
	int64_t time_ns;
	uint64_t address, number; /* of the order of events */
	uint32_t thread, kind;
};

static bool is_asked(const struct heap_times *times, int64_t time_ns)
{
	for (uint32_t i = 0; i < times->count; i++)
		if (times->items[i] == time_ns)
			return true;
	return false;
}

/* Return what the stream has at the times. The stream ends. */
static uint32_t points_take(struct heap_stream *stream, const struct heap_times *times, bool is_whole,
			    struct seen **seen)
{
	struct heap_point point;
	struct diag diag = {""};
	uint64_t number = 0, before = 0;
	uint32_t count = 0;
	size_t capacity = 0;
	while (heap_stream_next(stream, &point, &diag) > 0) {
		assert_true(heap_stream_is_valid(stream));
		number++;
		if (!is_asked(times, point.time_ns))
			continue;
		assert_true(is_whole || heap_stream_skipped_before(stream, point.time_ns, &before));
		memory_grow(*seen, count, capacity);
		(*seen)[count++] = (struct seen){.time_ns = point.time_ns,
						 .address = point.block->address[point.row],
						 .number = number + before,
						 .thread = point.block->thread,
						 .kind = point.kind};
	}
	assert_string_equal(diag.text, "");
	heap_stream_free(stream);
	return count;
}

static int time_order(const void *one, const void *other)
{
	const int64_t *a = one, *b = other;
	return (*a > *b) - (*a < *b);
}

static void assert_times(enum heap_order order, const struct heap_times *times)
{
	struct seen *expected = NULL, *found = NULL;
	uint32_t count = points_take(heap_stream_new(trace, order, INT64_MIN, INT64_MAX), times, true, &expected);
	assert_int_equal(points_take(heap_stream_at(trace, order, times), times, false, &found), count);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(found[i].time_ns, expected[i].time_ns);
		assert_int_equal(found[i].address, expected[i].address);
		assert_int_equal(found[i].thread, expected[i].thread);
		assert_int_equal(found[i].kind, expected[i].kind);
		if (order == HEAP_ORDER_EVENTS)
			assert_int_equal(found[i].number, expected[i].number);
	}
	free(expected);
	free(found);
}

static void test_times(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		int64_t items[TIMES_MAX];
		uint32_t count = 1 + random_number(TIMES_MAX);
		for (uint32_t i = 0; i < count; i++)
			items[i] = random_number(LAST_NS + 20);
		qsort(items, count, sizeof(*items), time_order);
		const struct heap_times times = {items, count};
		assert_times(HEAP_ORDER_POINTS, &times);
		assert_times(HEAP_ORDER_EVENTS, &times);
	}
}

/* A stream of one time reads few blocks, and says of a time far from it that points may be missing. */
static void test_skipped(void **state)
{
	const int64_t middle_ns = LAST_NS / 2;
	const struct heap_times times = {&middle_ns, 1};
	struct heap_stream *stream = heap_stream_at(trace, HEAP_ORDER_EVENTS, &times);
	struct heap_point point;
	struct diag diag = {""};
	uint64_t before, number = 0;
	(void)state;
	assert_true(heap_stream_skipped_before(stream, 0, &before));
	assert_int_equal(before, 0);
	assert_true(heap_stream_skipped_before(stream, middle_ns, &before));
	assert_in_range(before, EVENTS / 4, EVENTS / 2);
	assert_false(heap_stream_skipped_before(stream, LAST_NS / 8, &before));
	assert_true(heap_stream_skipped_before(stream, LAST_NS + 100, &before));
	while (heap_stream_next(stream, &point, &diag) > 0)
		number++;
	assert_int_equal(number + before, EVENTS);
	assert_in_range(number, 1, EVENTS / 4);
	heap_stream_free(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_skipped),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
