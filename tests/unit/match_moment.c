/* SPDX-License-Identifier: MIT */
/*
 * The heap at a position: for every point of a trace in which several share each nanosecond, and for steps before and
 * behind them, the filter passes the blocks that a walk over the points finds live. Texts of positions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "match/match.h"
#include "match/moment.h"
#include "match/point_stream.h"
#include "query/window.h"
#include "scene.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"

enum { EVENTS = 1500, BLOCKS = 97, TOGETHER = 4, EXIT_NS = EVENTS / TOGETHER };

static const char path[] = "moment.xht";
static struct diag diag;
static struct trace *trace;
static struct heap_table *table;

/* Blocks take turns, so that no two points of a nanosecond are of one block. */
static int begin(void **state)
{
	struct scene scene;
	uint64_t sizes[BLOCKS] = {0};
	(void)state;
	scene_open(&scene, path);
	uint32_t processes[] = {scene_process(&scene, 100, TRACE_NONE, 0), scene_process(&scene, 200, TRACE_NONE, 0)};
	uint32_t threads[] = {scene_thread(&scene, processes[0], 100), scene_thread(&scene, processes[1], 200),
			      scene_thread(&scene, processes[0], 101), scene_thread(&scene, processes[1], 201)};
	scene.stack = scene_stack(&scene, 0x1000, 0);
	for (uint32_t i = 0; i < EVENTS; i++) {
		uint32_t at = i % BLOCKS, thread = threads[at % 4];
		uint64_t address = 0x10000 + 0x1000 * (uint64_t)at, size = 1 + i * 7919 % 1000;
		int64_t time_ns = 1 + i / TOGETHER;
		bool is_changed = i * 2654435761u >> 16 & 3;
		if (!sizes[at])
			scene_alloc(&scene, thread, time_ns, address, size);
		else if (is_changed)
			scene_free(&scene, thread, time_ns, address);
		else
			scene_realloc(&scene, thread, time_ns, time_ns, address, address, size);
		sizes[at] = !sizes[at] || !is_changed ? size : 0;
	}
	scene_end(&scene, processes[0], EXIT_NS, TRACE_END_EXIT, 0);
	trace = scene_read(&scene, path);
	table = scene_match(trace);
	return 0;
}

static int end(void **state)
{
	(void)state;
	scene_remove(path, trace, table);
	return 0;
}

/* A walk over the points: what each address has. Blocks of a process lie at addresses of its own. */
struct live_blocks {
	uint64_t sizes[BLOCKS];
};

static uint64_t *size_at(struct live_blocks *live, uint64_t address)
{
	return &live->sizes[(address - 0x10000) / 0x1000];
}

static void assert_live(const struct live_blocks *live, struct position at)
{
	struct heap_filter filter;
	struct heap_window window;
	uint64_t count = 0, bytes = 0;
	for (unsigned i = 0; i < BLOCKS; i++) {
		count += live->sizes[i] > 0;
		bytes += live->sizes[i];
	}
	heap_filter_init(&filter);
	filter.moment = (struct heap_moment){.is_asked = true, .at = at};
	heap_moment_find(&filter.moment, table);
	assert_int_equal(heap_filter_prepare(&filter, table, NULL, &diag), 0);
	heap_window_make(&window, table, &filter, (struct heap_range){0, at.time_ns}, HEAP_BY_NONE);
	assert_int_equal(window.totals.total_count, count);
	assert_int_equal(window.totals.total_bytes, bytes);
	assert_int_equal(window.totals.outstanding_count, count);
	assert_int_equal(window.totals.outstanding_bytes, bytes);
	heap_window_fini(&window);
	heap_filter_fini(&filter);
}

static void apply(struct live_blocks *live, const struct heap_point *point)
{
	const struct trace_block *block = point->block;
	if (point->kind == HEAP_POINT_END)
		*size_at(live, block->kind[point->row] == EVENT_FREE ? block->address[point->row]
								     : block->previous[point->row]) = 0;
	if (point->kind == HEAP_POINT_BEGIN)
		*size_at(live, block->address[point->row]) = block->size[point->row];
}

/* At a position an end is not applied yet. */
static void assert_live_at(const struct live_blocks *before, const struct heap_point *point, uint64_t step)
{
	struct live_blocks live = *before;
	if (point->kind == HEAP_POINT_BEGIN)
		apply(&live, point);
	assert_live(&live, (struct position){point->time_ns, step});
}

static void test_every_point(void **state)
{
	struct heap_stream *stream = heap_stream_new(trace, HEAP_ORDER_POINTS, INT64_MIN, INT64_MAX);
	struct live_blocks live = {{0}};
	struct heap_point point;
	struct position last = {0, 0};
	unsigned count = 0, most = 0;
	(void)state;
	while (heap_stream_next(stream, &point, &diag) > 0) {
		if (point.time_ns != last.time_ns && last.time_ns) {
			/* Behind all points of a nanosecond, the end of the process among them. */
			assert_live(&live, (struct position){last.time_ns, last.step + 1});
			if (last.time_ns < EXIT_NS)
				assert_live(&live, (struct position){last.time_ns, POSITION_LAST});
		}
		if (point.time_ns != last.time_ns) {
			last = (struct position){point.time_ns, 0};
			assert_live(&live, last);
		}
		assert_live_at(&live, &point, ++last.step);
		apply(&live, &point);
		most = last.step > most ? (unsigned)last.step : most;
		count++;
	}
	heap_stream_free(stream);
	assert_true(count > EVENTS && most > TOGETHER);
}

/* At its end, a recording that a detach ended has what lived then; one whose process ended has nothing. */
static void assert_at_end(uint8_t one, uint8_t other, uint64_t live_count)
{
	static const char ended[] = "ended.xht";
	const uint8_t ends[] = {one, other};
	struct trace *whole_trace = trace;
	struct heap_table *whole_table = table;
	struct scene scene;
	struct live_blocks live = {{0}};
	scene_open(&scene, ended);
	scene.stack = scene_stack(&scene, 0x1000, 0);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t process = scene_process(&scene, 100 + i, TRACE_NONE, 0);
		scene_alloc(&scene, scene_thread(&scene, process, 100 + i), 1 + i, 0x10000, 50);
		live.sizes[i] = i < live_count ? 50 : 0;
		scene_end(&scene, process, 10, ends[i], 0);
	}
	trace = scene_read(&scene, ended);
	table = scene_match(trace);
	assert_live(&live, (struct position){10, POSITION_LAST});
	assert_live(&live, (struct position){20, POSITION_LAST});
	scene_remove(ended, trace, table);
	trace = whole_trace;
	table = whole_table;
}

static void test_ends(void **state)
{
	(void)state;
	assert_at_end(TRACE_END_DETACHED, TRACE_END_DETACHED, 2);
	assert_at_end(TRACE_END_EXIT, TRACE_END_EXIT, 0);
	assert_at_end(TRACE_END_EXIT, TRACE_END_DETACHED, 0);
}

static void test_texts(void **state)
{
	static const char *const bad[] = {"",
					  ":",
					  "1",
					  "1:",
					  ":1",
					  "0x:1",
					  "1:0x",
					  "1:2:3",
					  "1:2 ",
					  " 1:2",
					  "-1:2",
					  "1 :2",
					  "g:1",
					  "1:g",
					  "10000000000000000:1",
					  "8000000000000000:0",
					  "FFFFFFFFFFFFFFFF:0"};
	static const struct {
		const char *text, *written;
		struct position position;
	} good[] = {{"0:0", "0:0", {0, 0}},
		    {"2d1F:1", "2D1F:1", {0x2d1f, 1}},
		    {"0x2D1F:0X1a", "2D1F:1A", {0x2d1f, 0x1a}},
		    {"7fffffffffffffff:0", "7FFFFFFFFFFFFFFF:0", {INT64_MAX, 0}},
		    {POSITION_END_TEXT, POSITION_END_TEXT, {POSITION_END_NS, POSITION_LAST}}};
	struct position position;
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(position_parse(bad[i], &position));
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(position_parse(good[i].text, &position));
		assert_int_equal(position.time_ns, good[i].position.time_ns);
		assert_int_equal(position.step, good[i].position.step);
		assert_string_equal(position_text(position).data, good[i].written);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_point), cmocka_unit_test(test_ends),
					   cmocka_unit_test(test_texts)};
	return cmocka_run_group_tests(tests, begin, end);
}
