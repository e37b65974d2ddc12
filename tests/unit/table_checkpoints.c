/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints of what is live (src/table/checkpoints.c): with them the heap at any moment is the same as without, and
 * the allocations that are read for it are bounded by those that are live. Of programs that keep few blocks, many,
 * more and more, and that free all at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "match/match.h"
#include "query/window.h"
#include "scene.h"
#include "table/index_file.h"
#include "trace/reader.h"
#include "trace/row_ids.h"

enum { EVENTS = 200000, BLOCKS = 40000, STEP = 64 * PACK_ROWS, MOMENTS = 37, EARLIER = 10, BLOCK_EVENTS = 20000 };

static const char path[] = "checkpoints.xht", index_path[] = "checkpoints.index";
static struct diag diag;
static struct trace *trace;
static struct heap_table *whole, *indexed;

static void begin(uint32_t blocks, uint32_t leak_each, uint32_t empty_each, uint32_t earlier)
{
	static bool is_live[BLOCKS];
	struct scene scene;
	uint64_t leaked = 0;
	memset(is_live, 0, sizeof(is_live));
	scene_open(&scene, path);
	uint32_t thread = scene_thread(&scene, scene_process(&scene, 100, TRACE_NONE, 0), 100);
	scene.stack = scene_stack(&scene, 0x1000, 0);
	for (uint32_t i = 0; i < earlier; i++)
		scene_earlier(&scene, thread, 0, 0x200000000 + 64 * (uint64_t)i, 100);
	for (uint32_t i = 0; i < earlier; i++)
		scene_free(&scene, thread, 1, 0x200000000 + 64 * (uint64_t)i);
	for (uint32_t i = 0; i < EVENTS; i++) {
		uint32_t at = (uint32_t)(i * UINT64_C(2654435761) >> 7) % blocks;
		uint64_t address = 0x10000 + 64 * (uint64_t)at;
		if (i % BLOCK_EVENTS == 0)
			scene_block(&scene, thread);
		if (leak_each && i % leak_each == 0) {
			scene_alloc(&scene, thread, 10 * (int64_t)i, 0x100000000 + 64 * leaked++, 32);
			continue;
		}
		bool is_emptied = empty_each && i / empty_each % 2;
		if (is_emptied && !is_live[at])
			continue;
		if (is_live[at])
			scene_free(&scene, thread, 10 * (int64_t)i, address);
		else
			scene_alloc(&scene, thread, 10 * (int64_t)i, address, 1 + i % 500);
		is_live[at] = !is_live[at];
	}
	scene_close(&scene);
	struct heap_build how = {.fd = heap_index_begin(".", &diag), .reserved_bytes = HEAP_INDEX_HEAD_BYTES};
	struct heap_table *table;
	const char *paths = index_path;
	assert_int_equal(trace_open(&trace, path, &diag), 0);
	assert_int_equal(heap_table_build(&table, trace, &how, &diag), 0);
	assert_int_equal(heap_index_write(table, path, index_path, &diag), 0);
	heap_table_free(table);
	assert_int_equal(heap_table_build(&whole, trace, NULL, &diag), 0);
	assert_int_equal(heap_index_read(&indexed, trace, path, &paths, 1), 0);
}

static void end(void)
{
	heap_table_free(whole);
	heap_table_free(indexed);
	trace_close(trace);
	unlink(path);
	unlink(index_path);
}

struct live_sums {
	uint64_t count, bytes, births, read;
};

static struct live_sums sums_at(const struct heap_table *table, int64_t at_ns)
{
	struct live_sums sums = {0};
	struct heap_filter filter;
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_filter_init(&filter);
	filter.moment = (struct heap_moment){.is_asked = true, .at = {at_ns, POSITION_LAST}};
	heap_filter_prepare(&filter, table, NULL, &diag);
	const struct heap_scan_plan plan = {INT64_MIN, at_ns, INT64_MIN, PACK_TIMES | PACK_SIZES, &filter, NULL};
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan))) {
		sums.read += rows->count;
		heap_rows_each (rows, i) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			sums.count++;
			sums.bytes += row.size_bytes;
			sums.births += (uint64_t)row.birth_ns;
		}
	}
	heap_scan_end(&scan);
	heap_filter_fini(&filter);
	return sums;
}

/* What is read is at most what is live, as much again, and a step; where all live blocks are read anyway, as little. */
static void assert_moments(void)
{
	assert_null(whole->checkpoints.items);
	assert_true(indexed->checkpoints.count > 0);
	assert_true((uint64_t)indexed->checkpoints.copies.count * PACK_ROWS <
		    whole->count + (uint64_t)indexed->checkpoints.count * PACK_ROWS);
	for (uint32_t i = 0; i <= MOMENTS; i++) {
		int64_t at_ns = whole->duration_ns / MOMENTS * i + i % 10;
		const struct live_sums want = sums_at(whole, at_ns), found = sums_at(indexed, at_ns);
		assert_int_equal(found.count, want.count);
		assert_int_equal(found.bytes, want.bytes);
		assert_int_equal(found.births, want.births);
		if (found.read > 3 * want.count + 2 * STEP)
			fail_msg("at %u of %u: %zu read, %zu live", i, MOMENTS, (size_t)found.read, (size_t)want.count);
	}
}

/* Return the allocations that a pass for a range reads. */
static uint64_t read_for(const struct heap_table *table, struct heap_range range)
{
	const struct heap_scan_plan plan = {range.from_ns, range.to_ns, range.from_ns, PACK_TIMES, NULL, NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	uint64_t count = 0;
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		count += rows->count;
	heap_scan_end(&scan);
	return count;
}

static void window_make(struct heap_window *window, const struct heap_table *table, struct heap_range range,
			enum heap_by by)
{
	struct heap_filter filter;
	heap_filter_init_for(&filter, table);
	heap_window_make(window, table, &filter, range, by);
	heap_filter_fini(&filter);
}

static void assert_window(struct heap_range range, enum heap_by by)
{
	struct heap_window want, found;
	window_make(&want, whole, range, by);
	window_make(&found, indexed, range, by);
	assert_memory_equal(&found.totals, &want.totals, sizeof(want.totals));
	assert_int_equal(found.peak_at_ns, want.peak_at_ns);
	assert_int_equal(found.earlier_count, want.earlier_count);
	assert_int_equal(found.earlier_bytes, want.earlier_bytes);
	assert_int_equal(found.cell_count, want.cell_count);
	heap_window_fini(&want);
	heap_window_fini(&found);
}

/* What is read is at most what began in the window, and twice what was live at its beginning. */
static void assert_windows(void)
{
	for (uint32_t i = 0; i < MOMENTS; i++) {
		int64_t from_ns = whole->duration_ns / MOMENTS * i + i % 10,
			to_ns = from_ns + whole->duration_ns / (i % 3 ? MOMENTS : 4);
		const struct heap_range range = {from_ns, to_ns};
		uint64_t live = sums_at(whole, from_ns).count, read = read_for(indexed, range);
		assert_window(range, HEAP_BY_NONE);
		assert_window(range, HEAP_BY_CLASS);
		assert_window(range, HEAP_BY_SIZE);
		assert_true(read <= read_for(whole, range));
		if (read > 3 * live + (uint64_t)(to_ns - from_ns) / 10 + 2 * STEP)
			fail_msg("from %u of %u: %zu read, %zu live", i, MOMENTS, (size_t)read, (size_t)live);
	}
}

static void test_few(void **state)
{
	(void)state;
	begin(500, 0, 0, 0);
	assert_moments();
	assert_windows();
	end();
}

/* Nearly every group has a block that lives on: without checkpoints late moments would cost all of them. */
static void test_scattered(void **state)
{
	(void)state;
	begin(500, 300, 0, 0);
	assert_moments();
	assert_windows();
	int64_t late_ns = whole->duration_ns - 10;
	assert_true(sums_at(indexed, late_ns).read <= 2 * STEP);
	assert_true(sums_at(whole, late_ns).read > 4 * STEP);
	const struct heap_range late = {late_ns, whole->duration_ns};
	assert_true(read_for(indexed, late) <= 2 * STEP);
	assert_true(read_for(whole, late) > 4 * STEP);
	end();
}

/* Blocks from before the trace are counted in every window, and have no copies when they have ended. */
static void test_earlier(void **state)
{
	(void)state;
	begin(500, 300, 0, EARLIER);
	for (uint32_t i = 0; i < MOMENTS; i++)
		assert_window((struct heap_range){whole->duration_ns / MOMENTS * i, whole->duration_ns}, HEAP_BY_NONE);
	struct heap_window window;
	window_make(&window, indexed, (struct heap_range){whole->duration_ns / 2, whole->duration_ns}, HEAP_BY_NONE);
	assert_int_equal(window.earlier_count, EARLIER);
	heap_window_fini(&window);
	end();
}

static void test_many(void **state)
{
	(void)state;
	begin(BLOCKS, 0, 0, 0);
	assert_moments();
	assert_windows();
	end();
}

static void test_more_and_more(void **state)
{
	(void)state;
	begin(500, 7, 0, 0);
	assert_moments();
	assert_windows();
	end();
}

static void test_freed_at_once(void **state)
{
	(void)state;
	begin(BLOCKS / 4, 0, EVENTS / 10, 0);
	assert_moments();
	assert_windows();
	end();
}

/* Both ends of the sizes of each group, and no sizes beyond them. */
static void test_sizes(void **state)
{
	struct heap_scan_plan plan = HEAP_SCAN_ALL;
	struct heap_scan scan;
	const struct heap_rows *rows;
	(void)state;
	begin(500, 0, 0, 0);
	heap_scan_begin(&scan, indexed, &plan, NULL);
	for (uint32_t place = 0; place < heap_scan_places(&scan); place++) {
		const struct heap_sizes *sizes = heap_scan_sizes(&scan, place);
		uint64_t least = UINT64_MAX, greatest = 0;
		heap_scan_range(&scan, place, place + 1);
		rows = heap_scan_next(&scan);
		for (uint32_t i = 0; i < rows->count; i++) {
			uint64_t size = rows->columns.numbers[PACK_SIZE][i];
			least = size < least ? size : least;
			greatest = size > greatest ? size : greatest;
		}
		assert_int_equal(sizes->least, least);
		assert_int_equal(sizes->greatest, greatest);
	}
	heap_scan_end(&scan);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_few),           cmocka_unit_test(test_scattered),
					   cmocka_unit_test(test_earlier),       cmocka_unit_test(test_many),
					   cmocka_unit_test(test_more_and_more), cmocka_unit_test(test_freed_at_once),
					   cmocka_unit_test(test_sizes)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
