/* SPDX-License-Identifier: MIT */
/* The model, on traces whose every number is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "match/match.h"
#include "match/point_stream.h"
#include "query/extents.h"
#include "query/lifetimes.h"
#include "query/window.h"
#include "scene.h"
#include "table/index_file.h"
#include "table/live.h"
#include "table/table_valid.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"

static struct scene scene;
static struct trace *trace;
static struct heap_table *table;
static struct heap_window window;
static uint32_t process, thread, other;

static const char path[] = "scene.xht";

static int begin(void **state)
{
	(void)state;
	scene_open(&scene, path);
	process = scene_process(&scene, 100, TRACE_NONE, 0);
	thread = scene_thread(&scene, process, 100);
	other = scene_thread(&scene, process, 101);
	return 0;
}

static int end(void **state)
{
	(void)state;
	heap_window_fini(&window);
	scene_remove(path, trace, table);
	return 0;
}

static void build(void)
{
	trace = scene_read(&scene, path);
	table = scene_match(trace);
}

/* Of all that the window counts. */
static uint64_t lifetimes_sum(void)
{
	struct heap_filter filter;
	struct heap_lifetimes lifetimes;
	uint32_t *list_of = calloc(window.cell_count, sizeof(*list_of));
	uint64_t sum_ns = 0;
	heap_filter_init(&filter);
	heap_window_lifetimes(&lifetimes, &window, table, &filter, list_of, 1);
	assert_int_equal(lifetimes.starts[1], window.totals.total_count);
	for (uint64_t i = 0; i < lifetimes.starts[1]; i++)
		sum_ns += (uint64_t)lifetimes.values[i];
	heap_lifetimes_fini(&lifetimes);
	free(list_of);
	return sum_ns;
}

/* Allocation i of the table. */
static struct heap_allocation row(uint32_t i)
{
	struct heap_allocation found = {0};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, table, &HEAP_SCAN_ALL, NULL);
	while ((rows = heap_scan_next(&scan)))
		if (i >= rows->first && i - rows->first < rows->count)
			found = heap_rows_get(rows, i - rows->first);
	heap_scan_end(&scan);
	return found;
}

static void sum(int64_t from_ns, int64_t to_ns)
{
	struct heap_filter filter;
	heap_filter_init(&filter);
	heap_window_fini(&window);
	heap_window_make(&window, table, &filter, (struct heap_range){from_ns, to_ns}, HEAP_BY_NONE);
}

static void sum_all(void)
{
	build();
	sum(0, table->duration_ns);
}

#define assert_numbers(count, bytes, outstanding, outstanding_size) \
	do { \
		assert_int_equal(window.totals.total_count, (count)); \
		assert_int_equal(window.totals.total_bytes, (bytes)); \
		assert_int_equal(window.totals.outstanding_count, (outstanding)); \
		assert_int_equal(window.totals.outstanding_bytes, (outstanding_size)); \
	} while (0)

#define assert_peak(bytes, count, at) \
	do { \
		assert_int_equal(window.totals.peak_bytes, (bytes)); \
		assert_int_equal(window.totals.peak_count, (count)); \
		assert_int_equal(window.peak_at_ns, (at)); \
	} while (0)

#define assert_clean() \
	do { \
		assert_int_equal(table->order_conflicts, 0); \
		assert_int_equal(table->unknown_frees, 0); \
	} while (0)

static void test_totals(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x1000, 100);
	scene_alloc(&scene, thread, 20, 0x2000, 50);
	scene_free(&scene, thread, 30, 0x2000);
	scene_alloc(&scene, thread, 40, 0x2000, 7);
	scene_alloc(&scene, thread, 50, 0x3000, 0);
	sum_all();
	assert_numbers(4, 157, 3, 107);
	assert_peak(150, 2, 20);
	assert_int_equal(window.totals.temporary_count, 1);
	assert_int_equal(window.totals.open_count, 3);
	assert_int_equal(row(1).end, HEAP_END_FREE);
	assert_int_equal(row(1).end_ns, 30);
	assert_int_equal(row(0).end, HEAP_END_OPEN);
	assert_clean();
}

/* Freed by the very next event of the thread that made it; a failed call is an event, a realloc is no free. */
static void test_temporary(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x1000, 1);
	scene_free(&scene, other, 20, 0x1000);
	scene_alloc(&scene, thread, 30, 0x2000, 1);
	scene.flags = EVENT_FAILED;
	scene_alloc(&scene, thread, 40, 0, 1 << 30);
	scene_free(&scene, thread, 50, 0x2000);
	scene_alloc(&scene, thread, 60, 0x3000, 1);
	scene_realloc(&scene, thread, 70, 80, 0x3000, 0x4000, 2);
	scene_free(&scene, thread, 90, 0x4000);
	sum_all();
	assert_numbers(4, 5, 0, 0);
	assert_int_equal(window.totals.temporary_count, 1);
	assert_int_equal(row(3).flags, HEAP_REALLOC | HEAP_MOVED | HEAP_TEMPORARY);
}

static void test_reallocs(void **state)
{
	(void)state;
	scene_realloc(&scene, thread, 5, 10, 0, 0x1000, 10);       /* realloc(NULL, 10) */
	scene_realloc(&scene, thread, 20, 25, 0x1000, 0x1000, 20); /* in place */
	scene_realloc(&scene, thread, 30, 35, 0x1000, 0x2000, 40); /* moved */
	scene.flags = EVENT_FAILED;
	scene_realloc(&scene, thread, 40, 45, 0x2000, 0, 1000);
	/* takes the old place before the realloc returns */
	scene_alloc(&scene, other, 33, 0x1000, 5);
	scene_realloc(&scene, thread, 50, 55, 0x2000, 0, 0); /* gives it back */
	sum_all();
	assert_numbers(4, 75, 1, 5);
	assert_int_equal(window.totals.realloc_count, 2);
	assert_int_equal(window.totals.realloc_moved_count, 1);
	assert_peak(45, 2, 35);
	assert_clean();
}

static void test_range(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x1000, 100);
	scene_alloc(&scene, thread, 20, 0x2000, 10);
	scene_free(&scene, thread, 30, 0x1000);
	scene_alloc(&scene, thread, 40, 0x3000, 1);
	scene_free(&scene, thread, 50, 0x2000);
	scene_free(&scene, thread, 60, 0x3000);
	build();
	sum(20, 40);
	assert_numbers(2, 11, 2, 11);
	assert_peak(110, 2, 20);
	assert_int_equal(window.totals.open_count, 0);
	assert_int_equal(lifetimes_sum(), 30 + 20);
	sum(31, 39);
	assert_numbers(0, 0, 0, 0);
	assert_peak(10, 1, 31);
	sum(40, 60);
	assert_numbers(1, 1, 0, 0);
	assert_peak(11, 2, 40);
	sum(1000, 2000);
	assert_numbers(0, 0, 0, 0);
	assert_peak(0, 0, 1000);
}

/* A block that ends at a time is not live at it: one that begins there does not add to it. */
static void test_peak_of_equal_times(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x1000, 100);
	scene_alloc(&scene, thread, 20, 0x2000, 100);
	scene_free(&scene, other, 20, 0x1000);
	scene_free(&scene, thread, 30, 0x2000);
	sum_all();
	assert_peak(100, 1, 10);
}

/* Stamps of two threads may be equal or a little inverted. */
static void test_stamps(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x1000, 1);
	scene_alloc(&scene, thread, 100, 0x1000, 2); /* after the other's free, in truth */
	scene_free(&scene, other, 100, 0x1000);
	scene_alloc(&scene, thread, 200, 0x1000 + 0x1000, 3);
	scene_free(&scene, thread, 300, 0x1000);
	scene_alloc(&scene, thread, 5000, 0x1000, 4);
	scene_free(&scene, other, 6000, 0x1000);
	scene_free(&scene, other, 7000, 0x9000); /* before its block, by its stamp */
	scene_alloc(&scene, thread, 7400, 0x9000, 5);
	sum_all();
	assert_clean();
	assert_numbers(5, 15, 1, 3);
	assert_int_equal(row(0).end_ns, 100);
	assert_int_equal(row(1).end_ns, 300);
	assert_int_equal(row(4).end, HEAP_END_FREE);
	assert_int_equal(row(4).end_ns, 7400);
}

static void test_conflicts(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 1000, 0x1000, 1);
	scene_alloc(&scene, thread, 20000, 0x1000, 2); /* nothing freed the first */
	scene_free(&scene, thread, 20100, 0x1000);     /* one thread's order is certain: this is the second's */
	scene_free(&scene, other, 30000, 0x1000);      /* twice */
	scene_free(&scene, other, 40000, 0x7000);      /* never seen */
	scene_alloc(&scene, other, 50000, 0x8000, 3);
	scene_alloc(&scene, other, 60000, 0x8000, 4); /* to the end */
	sum_all();
	assert_int_equal(table->order_conflicts, 2);
	assert_int_equal(table->unknown_frees, 2);
	assert_int_equal(row(0).end, HEAP_END_CONFLICT);
	assert_int_equal(row(0).end_ns, 20000);
	assert_int_equal(row(1).end, HEAP_END_FREE);
	assert_numbers(4, 10, 1, 4);
}

static void test_gap(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x1000, 1);
	scene_alloc(&scene, thread, 20, 0x2000, 2);
	scene_alloc(&scene, thread, 9000, 0x1000, 4);
	scene_gap(&scene, process, other, 100, 200, 1);
	sum_all();
	assert_clean();
	assert_int_equal(row(0).end, HEAP_END_GAP);
	assert_int_equal(row(0).end_ns, 200);
	assert_numbers(3, 7, 2, 6);
	assert_int_equal(window.uncertain_count, 1);
	assert_int_equal(window.uncertain_bytes, 2);
}

static void test_failed_and_in_flight(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x1000, 1);
	scene_alloc(&scene, thread, 20, 0x2000, 2);
	scene_alloc(&scene, thread, 30, 0x3000, 4);
	scene.flags = EVENT_FAILED;
	scene_realloc(&scene, thread, 40, 50, 0x1000, 0, 100);
	scene.flags = EVENT_IN_FLIGHT;
	scene_free(&scene, thread, 60, 0x2000);
	scene.flags = EVENT_IN_FLIGHT;
	scene_realloc(&scene, other, 70, 70, 0x3000, 0, 9);
	sum_all();
	assert_clean();
	assert_numbers(3, 7, 1, 1);
	assert_int_equal(row(1).end, HEAP_END_FREE);
	assert_int_equal(row(2).end, HEAP_END_REALLOC);
}

/* A child's copies are its own business: nothing that it does to them shows in its parent, or in its totals. */
static void test_fork(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x1000, 100);
	scene_alloc(&scene, thread, 20, 0x2000, 50);
	uint32_t child = scene_process(&scene, 200, process, 30);
	uint32_t child_thread = scene_thread(&scene, child, 200);
	scene_free(&scene, thread, 40, 0x1000);       /* by the parent, later */
	scene_free(&scene, child_thread, 50, 0x1000); /* and by the child: its copy */
	scene_alloc(&scene, child_thread, 60, 0x1000, 7);
	uint32_t grandchild = scene_process(&scene, 300, child, 70);
	uint32_t grandchild_thread = scene_thread(&scene, grandchild, 300);
	scene_realloc(&scene, grandchild_thread, 80, 85, 0x2000, 0x5000, 60); /* of the first process's block */
	scene_free(&scene, grandchild_thread, 90, 0x1000);                    /* of its parent's */
	scene_free(&scene, child_thread, 5000, 0x1000);
	scene_free(&scene, child_thread, 7000, 0x1000); /* twice: known dead */
	scene_alloc(&scene, child_thread, 9000, 0x4000, 1);
	sum_all();
	assert_int_equal(table->order_conflicts, 0);
	assert_int_equal(table->unknown_frees, 1);
	assert_int_equal(table->processes[child].inherited_count, 2);
	assert_int_equal(table->processes[child].inherited_bytes, 150);
	assert_int_equal(table->processes[child].inherited_freed, 1);
	assert_int_equal(table->processes[grandchild].inherited_count, 2);
	assert_int_equal(table->processes[grandchild].inherited_bytes, 57);
	assert_int_equal(table->processes[grandchild].inherited_freed, 2);
	assert_numbers(5, 218, 3, 111);
	assert_int_equal(window.totals.realloc_count, 1);
	assert_peak(150, 2, 20);
}

static void test_ends_of_processes(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x1000, 100);
	scene_end(&scene, process, 100, TRACE_END_EXEC, 0);
	uint32_t second = scene_process(&scene, 100, TRACE_NONE, 110);
	uint32_t second_thread = scene_thread(&scene, second, 100);
	scene_alloc(&scene, second_thread, 120, 0x1000, 30);
	scene_alloc(&scene, second_thread, 130, 0x2000, 40);
	scene_free(&scene, second_thread, 140, 0x2000);
	scene_end(&scene, second, 150, TRACE_END_SIGNAL, 9);
	sum_all();
	assert_clean();
	assert_numbers(3, 170, 2, 130);
	assert_peak(100, 1, 10);
	assert_int_equal(row(0).end, HEAP_END_EXIT);
	assert_int_equal(row(0).end_ns, 100);
	assert_int_equal(row(1).end_ns, 150);
	assert_int_equal(window.totals.open_count, 2);
	sum(105, 150);
	assert_peak(70, 2, 130);
}

/* A peak over processes is the most of the sum, not the sum of the most. */
static void test_peak_over_processes(void **state)
{
	(void)state;
	uint32_t second = scene_process(&scene, 200, TRACE_NONE, 5);
	uint32_t second_thread = scene_thread(&scene, second, 200);
	scene_alloc(&scene, thread, 10, 0x1000, 100);
	scene_alloc(&scene, second_thread, 15, 0x1000, 10);
	scene_free(&scene, thread, 20, 0x1000);
	scene_alloc(&scene, second_thread, 30, 0x2000, 95);
	sum_all();
	assert_clean();
	assert_peak(110, 2, 15);
}

static void test_earlier(void **state)
{
	(void)state;
	scene_earlier(&scene, thread, 10, 0x1000, 1000);
	scene_alloc(&scene, thread, 20, 0x2000, 5);
	scene_free(&scene, thread, 30, 0x1000);
	sum_all();
	assert_clean();
	assert_numbers(1, 5, 1, 5);
	assert_int_equal(window.earlier_count, 1);
	assert_int_equal(window.earlier_bytes, 1000);
	assert_peak(1005, 2, 20);
}

/* Found some time after the attach: what has had an event since is settled by that. */
static void test_earlier_settled(void **state)
{
	(void)state;
	scene_free(&scene, thread, 10, 0x1000); /* given back before it was found */
	scene_measure(&scene, thread, 100);
	scene_realloc(&scene, thread, 20, 30, 0x2000, 0x7000, 50); /* likewise */
	scene_measure(&scene, thread, 200);
	scene_alloc(&scene, thread, 40, 0x3000, 7);
	scene_alloc(&scene, thread, 50, 0x4000, 8);
	scene_free(&scene, thread, 60, 0x4000);
	scene_measure(&scene, thread, 24);
	uint32_t heap_reader = scene_thread(&scene, process, TRACE_TID_NONE);
	scene_earlier(&scene, heap_reader, 5000, 0x1000, 100);
	scene_earlier(&scene, heap_reader, 5000, 0x3000, 24);
	scene_earlier(&scene, heap_reader, 5000, 0x4000, 24);
	scene_earlier(&scene, heap_reader, 5000, 0x5000, 400);
	scene_earlier(&scene, heap_reader, 5000, 0x6000, 800);
	scene_free(&scene, thread, 6000, 0x5000);
	scene_free(&scene, thread, 9000, 0x1000); /* twice: known dead */
	scene_measure(&scene, thread, 100);
	scene_alloc(&scene, thread, 20000, 0x8000, 1);
	sum_all();
	assert_int_equal(table->unknown_frees, 1);
	assert_int_equal(table->order_conflicts, 0);
	assert_int_equal(window.earlier_count, 4);
	assert_int_equal(window.earlier_bytes, 1500);
	assert_numbers(4, 66, 3, 58);
	assert_peak(1500, 4, 0);
}

/* Each of them is two rows, and one event. */
static void test_earlier_reallocs(void **state)
{
	enum { REALLOCS = 1000 };
	(void)state;
	for (unsigned i = 0; i < REALLOCS; i++) {
		const uint64_t address = 0x10000 + i * 0x1000;
		scene_realloc(&scene, thread, 10 * i + 1, 10 * i + 2, address, address + 0x800, 50);
		scene_measure(&scene, thread, 20);
	}
	sum_all();
	assert_int_equal(table->unknown_frees, 0);
	assert_int_equal(table->count, 2 * REALLOCS);
	assert_int_equal(window.earlier_count, REALLOCS);
}

/* A call that was under way at the attach is no event: it may begin a block where another one was given back since. */
static void test_earlier_begun_by_nobody(void **state)
{
	(void)state;
	uint32_t heap_reader = scene_thread(&scene, process, TRACE_TID_NONE);
	/* was over before the heaps were read; was not, so they may have been read before */
	static const int64_t lasted_ns[] = {100, 2900, 90000};
	for (unsigned i = 0; i < 3; i++) {
		scene_free(&scene, thread, 1000 * (i + 1), 0x1000 * (i + 1));
		scene_measure(&scene, thread, 40);
		scene_lasted(&scene, thread, lasted_ns[i]);
	}
	for (unsigned i = 0; i < 3; i++) {
		scene_earlier(&scene, heap_reader, 100000, 0x1000 * (i + 1), 40);
		scene_lasted(&scene, heap_reader, 95000);
	}
	scene_free(&scene, thread, 200000, 0x1000);
	scene_alloc(&scene, thread, 300000, 0x9000, 1);
	sum_all();
	assert_clean();
	assert_int_equal(window.earlier_count, 4);
	assert_numbers(1, 1, 1, 1);
}

/* Likewise, and given back before it was found; twice, when no such call can have been between. */
static void test_earlier_given_back_again(void **state)
{
	(void)state;
	static const int64_t again_ns[] = {7000, 7000, 60000};
	for (unsigned i = 0; i < 3; i++) {
		scene_free(&scene, thread, 1000 * (i + 1), 0x1000 * (i + 1));
		scene_measure(&scene, thread, 40);
		scene_lasted(&scene, thread, i == 1 ? 3500 : 100);
	}
	for (unsigned i = 0; i < 3; i++) {
		scene_free(&scene, thread, again_ns[i] + i, 0x1000 * (i + 1));
		scene_measure(&scene, thread, 24);
	}
	uint32_t heap_reader = scene_thread(&scene, process, TRACE_TID_NONE);
	scene_earlier(&scene, heap_reader, 100000, 0x7000, 40);
	scene_lasted(&scene, heap_reader, 95000);
	scene_alloc(&scene, thread, 300000, 0x9000, 1);
	sum_all();
	assert_int_equal(table->unknown_frees, 1);
	assert_int_equal(table->order_conflicts, 0);
	assert_int_equal(window.earlier_count, 6);
	assert_int_equal(window.earlier_bytes, 3 * 40 + 2 * 24 + 40);
	assert_numbers(1, 1, 1, 1);
}

/* The end of an earlier block is not taken for that of a block that another thread begins there at once. */
static void test_earlier_begun_again_at_once(void **state)
{
	(void)state;
	uint32_t other = scene_thread(&scene, process, 2);
	scene_free(&scene, thread, 1000, 0x1000);
	scene_measure(&scene, thread, 40);
	scene_alloc(&scene, other, 1500, 0x1000, 30);
	scene_free(&scene, thread, 9000, 0x1000);
	scene_measure(&scene, thread, 40);
	scene_alloc(&scene, thread, 20000, 0x9000, 1);
	sum_all();
	assert_clean();
	assert_int_equal(window.earlier_count, 1);
	assert_numbers(2, 31, 1, 1);
}

/* An event block of which all began and ended in it tells, too, what cannot be there any more when the heaps are
   read. */
static void test_earlier_apart(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x4000, 8);
	scene_free(&scene, thread, 20, 0x4000);
	scene_measure(&scene, thread, 24);
	scene_block(&scene, thread);
	scene_earlier(&scene, scene_thread(&scene, process, TRACE_TID_NONE), 5000, 0x4000, 24);
	scene_alloc(&scene, thread, 20000, 0x8000, 1);
	sum_all();
	assert_clean();
	assert_int_equal(window.earlier_count, 0);
	assert_numbers(2, 9, 1, 1);
}

/* A child has its parent's earlier blocks, too. */
static void test_earlier_inherited(void **state)
{
	(void)state;
	scene_earlier(&scene, thread, 10, 0x1000, 1000);
	scene_earlier(&scene, thread, 10, 0x2000, 500);
	uint32_t child = scene_process(&scene, 200, process, 30);
	uint32_t child_thread = scene_thread(&scene, child, 200);
	scene_free(&scene, child_thread, 40, 0x1000);
	scene_free(&scene, thread, 50, 0x1000);
	scene_alloc(&scene, thread, 60, 0x3000, 5);
	sum_all();
	assert_clean();
	assert_numbers(1, 5, 1, 5);
	assert_int_equal(table->processes[child].inherited_count, 2);
	assert_int_equal(table->processes[child].inherited_bytes, 1500);
	assert_int_equal(table->processes[child].inherited_freed, 1);
	assert_int_equal(window.earlier_count, 2);
}

static void test_destroy(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x1000, 5);
	scene_alloc(&scene, thread, 20, 0x2000, 6);
	scene_event(&scene, thread, EVENT_DESTROY, 30);
	scene_alloc(&scene, thread, 40, 0x1000, 7);
	sum_all();
	assert_clean();
	assert_numbers(3, 18, 1, 7);
	assert_int_equal(row(0).end, HEAP_END_DESTROY);
}

/* A handler that interrupts a realloc makes events of later points that lie before it in the thread's order. */
static void test_stream_order(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x1000, 5);
	scene.flags = EVENT_IN_SIGNAL;
	scene_alloc(&scene, thread, 60, 0x1000, 1);
	scene_realloc(&scene, thread, 50, 70, 0x1000, 0x2000, 9);
	scene_block(&scene, thread);
	for (int i = 0; i < 100; i++)
		scene_alloc(&scene, i % 2 ? thread : other, 100 + i / 3, 0x10000 + (uint64_t)i * 16, 1);
	sum_all();
	assert_clean();
	assert_int_equal(window.totals.realloc_moved_count, 1);
	for (int order = HEAP_ORDER_POINTS; order <= HEAP_ORDER_EVENTS; order++) {
		struct heap_stream *stream = heap_stream_new(trace, (enum heap_order)order, INT64_MIN, INT64_MAX);
		struct heap_point point;
		struct diag diag;
		int64_t last_ns = -1;
		uint32_t last_thread = 0;
		int count = 0;
		while (heap_stream_next(stream, &point, &diag) > 0) {
			assert_true(point.time_ns > last_ns ||
				    (point.time_ns == last_ns && point.block->thread >= last_thread));
			last_ns = point.time_ns;
			last_thread = point.block->thread;
			count++;
		}
		assert_int_equal(count, order == HEAP_ORDER_POINTS ? 104 : 103);
		heap_stream_free(stream);
	}
}

/* Random calls of three threads, against a table that cannot be wrong. */
static void test_random(void **state)
{
	enum { ADDRESSES = 50, CALLS = 60000 };
	struct {
		uint64_t size;
		int64_t birth_ns;
	} blocks[ADDRESSES] = {{0, 0}};
	uint32_t threads[3] = {thread, other, scene_thread(&scene, process, 102)}, seed = 1;
	uint64_t total = 0, live = 0, peak = 0, count = 0, lifetimes = 0;
	int64_t peak_ns = 0, now = 0;
	(void)state;
	for (int i = 0; i < CALLS; i++) {
		seed = seed * 1664525 + 1013904223;
		uint32_t which = seed >> 8, at = which % ADDRESSES, by = threads[(which >> 6) % 3];
		uint64_t size = 1 + (which >> 4) % 100, address = 0x1000 + at * 0x10;
		now += 2 + (seed >> 28);
		if (!blocks[at].size) {
			scene_alloc(&scene, by, now, address, size);
		} else {
			live -= blocks[at].size;
			lifetimes += (uint64_t)(now - blocks[at].birth_ns);
			if (which & 1) {
				scene_free(&scene, by, now, address);
				blocks[at].size = 0;
				continue;
			}
			scene_realloc(&scene, by, now, now + 1, address, address, size);
			now++;
		}
		blocks[at].size = size;
		blocks[at].birth_ns = now;
		total += size;
		live += size;
		count++;
		if (live > peak) {
			peak = live;
			peak_ns = now;
		}
		if (i % 1000 == 0)
			scene_block(&scene, by);
	}
	for (int i = 0; i < ADDRESSES; i++)
		if (blocks[i].size)
			lifetimes += (uint64_t)(now - blocks[i].birth_ns);
	scene_free(&scene, thread, now, 0);
	sum_all();
	assert_clean();
	assert_int_equal(window.totals.total_count, count);
	assert_int_equal(window.totals.total_bytes, total);
	assert_int_equal(window.totals.outstanding_bytes, live);
	assert_int_equal(window.totals.peak_bytes, peak);
	assert_int_equal(window.peak_at_ns, peak_ns);
	assert_int_equal(lifetimes_sum(), lifetimes);
}

/* An end that was stamped too early and is the last of its event block, for a block that begins in another. */
static void test_stamps_apart(void **state)
{
	(void)state;
	scene_free(&scene, other, 100, 0x1000);
	scene_alloc(&scene, thread, 150, 0x1000, 5);
	scene_alloc(&scene, thread, 160, 0x2000, 6);
	sum_all();
	assert_clean();
	assert_numbers(2, 11, 1, 6);
	assert_int_equal(row(0).end_ns, 150);
}

/* Random calls in blocks of events, some of them with contradictions, destroyed heaps and failed calls in them: of one
 * thread, or of two that take turns of up to so many calls; then now and then one calls while the other is in a
 * realloc. */
static void calls_write(uint32_t seed, uint32_t turn_calls)
{
	enum { ADDRESSES = 400, CALLS = 40000, BLOCK_CALLS = 700 };
	const uint32_t stacks[] = {0, scene_stack(&scene, 0x10, 0), scene_stack(&scene, 0x10, 0x20, 0)};
	bool is_live[ADDRESSES] = {false};
	uint32_t last = 0, caller = thread, left = turn_calls;
	int64_t now = 10;
	for (int i = 0; i < CALLS; i++) {
		seed = seed * 1664525 + 1013904223;
		uint32_t which = seed >> 8, at = which % ADDRESSES;
		if (which & 1 << 23) /* what was allocated just now, as a rule */
			at = last;
		last = at;
		uint64_t size = (which >> 4) % 100, address = 0x1000 + at * 0x10,
			 moved = 0x1000 + (which >> 3) % ADDRESSES * 0x10;
		bool is_odd = which % 1024 == 0 && i / BLOCK_CALLS % 3 == 0;
		now += seed >> 30;
		scene.stack = stacks[which % 3];
		if (turn_calls && !left--) {
			caller = caller == thread ? other : thread;
			left = which % turn_calls;
			now += 2000;
		}
		if ((which >> 9) % 16 == 0) {
			scene.flags = EVENT_FAILED;
			scene_realloc(&scene, caller, now, now, address, 0, size);
		} else if (is_odd && which & 1 << 12) {
			scene_event(&scene, caller, EVENT_DESTROY, now);
		} else if (is_live[at] == is_odd) {
			scene_alloc(&scene, caller, now, address, size);
			is_live[at] = true;
		} else if ((which >> 16) % 4 || is_live[(moved - 0x1000) / 0x10]) {
			scene_free(&scene, caller, now, address);
			is_live[at] = false;
		} else {
			bool is_between = turn_calls && which % 128 == 5;
			int64_t from = now;
			if (is_between) {
				now += 2000;
				scene.flags = EVENT_FAILED;
				scene_alloc(&scene, caller == thread ? other : thread, now, 0, 1);
				now += 2000;
			}
			now += seed >> 31;
			scene_realloc(&scene, caller, from, now, address, moved, size);
			is_live[at] = false;
			is_live[(moved - 0x1000) / 0x10] = true;
		}
		if (i % BLOCK_CALLS == 0)
			scene_block(&scene, thread);
		if (turn_calls && i % (BLOCK_CALLS * 10) == 0)
			scene_block(&scene, other);
	}
	scene.flags = EVENT_FAILED;
	scene_alloc(&scene, thread, now, 0, 1);
}

/* Sites may have other numbers. */
static void assert_same_site(const struct heap_table *left, const struct heap_table *right, uint32_t *site,
			     uint32_t expected)
{
	if (*site == HEAP_NONE)
		return;
	assert_int_not_equal(expected, HEAP_NONE);
	assert_int_equal(left->sites[*site].stack, right->sites[expected].stack);
	assert_int_equal(left->sites[*site].entry, right->sites[expected].entry);
	*site = expected;
}

static void assert_same_points(const struct heap_table *left, const struct heap_table *right)
{
	assert_int_equal(left->point_count, right->point_count);
	assert_int_equal(left->instant_count, right->instant_count);
	for (uint32_t i = 0; i < left->instant_count; i++)
		assert_memory_equal(&left->instants[i], &right->instants[i], sizeof(*left->instants));
	for (uint32_t i = 0; i < heap_time_count(left->point_count); i++)
		assert_int_equal(left->point_times[i], right->point_times[i]);
	assert_int_equal(left->fault_count, right->fault_count);
	for (uint32_t i = 0; i < left->fault_count; i++)
		assert_memory_equal(&left->faults[i], &right->faults[i], sizeof(*left->faults));
}

static void assert_same_rows(const struct heap_table *left, const struct heap_table *right)
{
	struct heap_scan scans[2];
	struct heap_scan_plan plan = HEAP_SCAN_ALL;
	const struct heap_rows *a, *b;
	plan.columns = PACK_EVERYTHING;
	heap_scan_begin(&scans[0], left, &plan, NULL);
	heap_scan_begin(&scans[1], right, &plan, NULL);
	do {
		a = heap_scan_next(&scans[0]);
		b = heap_scan_next(&scans[1]);
		assert_true(!a == !b);
		for (uint32_t i = 0; a && i < a->count; i++) {
			struct heap_allocation row = heap_rows_get(a, i), other = heap_rows_get(b, i);
			assert_same_site(left, right, &row.site, other.site);
			assert_same_site(left, right, &row.end_site, other.end_site);
			assert_memory_equal(&row, &other, sizeof(row));
			assert_int_equal(a->details[i].address, b->details[i].address);
			assert_int_equal(a->details[i].slack_bytes, b->details[i].slack_bytes);
			assert_int_equal(a->details[i].previous, b->details[i].previous);
			assert_int_equal(a->details[i].end_thread, b->details[i].end_thread);
			assert_int_equal(a->details[i].birth_point, b->details[i].birth_point);
			assert_int_equal(a->details[i].end_point, b->details[i].end_point);
		}
	} while (a);
	heap_scan_end(&scans[0]);
	heap_scan_end(&scans[1]);
}

/* Runs with a block match, whole event blocks and parts between other threads' points, give what their points give one
   by one. */
static void test_block_matches(void **state)
{
	const uint32_t turn_calls[] = {0, 1, 40, 300, 700, 3000};
	enum { FIRST_SEEDS = 5 /* of one thread, with contradictions in each */, SEEDS = 35 };
	for (uint32_t seed = 1; seed <= SEEDS; seed++) {
		struct heap_table *by_points;
		struct diag diag = {""};
		calls_write(seed, seed > FIRST_SEEDS ? turn_calls[seed % 6] : 0);
		build();
		int64_t end_ns = table->duration_ns;
		const bool is_small = seed % 3 == 0;
		const struct heap_build how = {.fd = is_small ? heap_index_begin(".", &diag) : -1,
					       .until_ns = is_small ? NULL : &end_ns,
					       .is_small = is_small};
		assert_int_equal(heap_table_build(&by_points, trace, &how, &diag), 0);
		assert_true(table->count > 10000 && table->unknown_frees &&
			    (table->order_conflicts || seed > FIRST_SEEDS));
		assert_int_equal(table->count, by_points->count);
		assert_int_equal(table->order_conflicts, by_points->order_conflicts);
		assert_int_equal(table->unknown_frees, by_points->unknown_frees);
		assert_int_equal(table->processes[process].live_count, by_points->processes[process].live_count);
		assert_int_equal(table->processes[process].live_bytes, by_points->processes[process].live_bytes);
		assert_true(is_small || table->peak.bytes == by_points->peak.bytes);
		assert_true(is_small || table->peak.time_ns == by_points->peak.time_ns);
		assert_same_rows(table, by_points);
		assert_same_points(table, by_points);
		assert_true(table->instant_count > 0 && table->fault_count == table->unknown_frees);
		heap_table_free(by_points);
		heap_table_free(table);
		trace_close(trace);
		unlink(path);
		begin(state);
	}
	build();
}

/* The table of live blocks against an array, with addresses that collide. */
static void test_live(void **state)
{
	enum { ADDRESSES = 700, STEPS = 200000 };
	uint32_t expected[ADDRESSES], seed = 7, count = 0;
	struct live live = {0};
	(void)state;
	for (int i = 0; i < ADDRESSES; i++)
		expected[i] = UINT32_MAX;
	for (uint32_t i = 0; i < STEPS; i++) {
		seed = seed * 1664525 + 1013904223;
		uint32_t at = (seed >> 10) % ADDRESSES;
		uint64_t address = 0x7f0000000000 + ((uint64_t)at << (at % 3 * 8)) + 16;
		struct live_cell *cell = live_find(&live, address);
		if (expected[at] == UINT32_MAX) {
			assert_null(cell);
			live_add(&live, address)->current = expected[at] = i;
			count++;
		} else {
			assert_int_equal(cell->current, expected[at]);
			live_remove(&live, cell);
			expected[at] = UINT32_MAX;
			count--;
		}
		assert_int_equal(live.count, count);
		if (i % 256 == 0)
			assert_true(live_is_valid(&live));
	}
	live_fini(&live);
}

/* Pages of many blocks, against a list of all pages. */
static void test_extents(void **state)
{
	enum { SETS = 3, PAGES = 4096, BLOCKS = 200000 };
	(void)state;
	static bool has_page[SETS][PAGES];
	struct heap_extents extents = {0};
	uint64_t bytes[SETS] = {0}, random = 1;
	for (int i = 0; i < BLOCKS; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint32_t set = (uint32_t)(random >> 62) % SETS;
		struct heap_allocation allocation = {.size_bytes =
							     (random >> 33) % (i % 100 ? 300 : 3 * HEAP_PAGE_BYTES)};
		struct heap_details details = {.address = (random >> 20) % ((PAGES / 2 - 4) * HEAP_PAGE_BYTES),
					       .slack_bytes = 8};
		/* Some are seen again and again, some lie at the other's page of the memory of the last ones. */
		if (i % 3 == 0)
			details.address =
				details.address % (2 * HEAP_PAGE_BYTES) + (PAGES / 2 + i % 7) * HEAP_PAGE_BYTES;
		uint64_t last = details.address + allocation.size_bytes + details.slack_bytes - 1;
		for (uint64_t page = details.address / HEAP_PAGE_BYTES; page <= last / HEAP_PAGE_BYTES; page++)
			has_page[set][page] = true;
		heap_extents_add(&extents, set, &allocation, &details);
	}
	heap_extents_sum(&extents, bytes, SETS);
	for (int set = 0; set < SETS; set++) {
		uint64_t pages = 0;
		for (int page = 0; page < PAGES; page++)
			pages += has_page[set][page];
		assert_int_equal(bytes[set], pages * HEAP_PAGE_BYTES);
	}
	for (int i = 0; i < 3000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		int set = (int)(random >> 62) % SETS;
		uint64_t low = (random >> 20) % PAGES, high = low + (random >> 40) % (PAGES - low + 1), pages = 0;
		for (uint64_t page = low; page < high; page++)
			pages += has_page[set][page];
		assert_int_equal(
			heap_extents_within(&extents, (uint32_t)set, low * HEAP_PAGE_BYTES, high * HEAP_PAGE_BYTES),
			pages * HEAP_PAGE_BYTES);
	}
	heap_extents_fini(&extents);
}

/* Each block's class in the window from 20 to 40: by when it began, and when and how it ended. The last four are live
   when their processes end. */
static void test_classes(void **state)
{
	static const enum heap_class expected[] = {HEAP_CLASS_NONE, HEAP_AOFI, HEAP_AOFI, HEAP_AOFO, HEAP_AOFO,
						   HEAP_AIFI,       HEAP_AIFI, HEAP_AIFO, HEAP_AIFO, HEAP_CLASS_NONE,
						   HEAP_CLASS_NONE, HEAP_AOFO, HEAP_AOFO, HEAP_AIFO};
	static const int64_t births_ns[] = {10, 11, 12, 13, 14, 20, 21, 22, 40, 41, 10, 10, 10, 25},
			     ends_ns[] = {19, 20, 40, 42, 0, 36, 39, 43, 0, 0, 19, 20, 41, 30};
	enum { BLOCKS = sizeof(births_ns) / sizeof(*births_ns), FREED = 10 };
	(void)state;
	uint32_t threads[BLOCKS], processes[BLOCKS];
	for (uint32_t i = 0; i < BLOCKS; i++) {
		processes[i] = i < FREED ? process : scene_process(&scene, 200 + i, TRACE_NONE, 0);
		threads[i] = i < FREED ? thread : scene_thread(&scene, processes[i], 200 + i);
	}
	for (int64_t time_ns = 0; time_ns < 50; time_ns++)
		for (unsigned i = 0; i < BLOCKS; i++) {
			if (births_ns[i] == time_ns)
				scene_alloc(&scene, threads[i], time_ns, 0x1000 * (i + 1), (uint64_t)1 << i);
			if (ends_ns[i] == time_ns && time_ns && i < FREED)
				scene_free(&scene, thread, time_ns, 0x1000 * (i + 1));
			else if (ends_ns[i] == time_ns && time_ns)
				scene_end(&scene, processes[i], time_ns, i % 2 ? TRACE_END_EXEC : TRACE_END_EXIT, 0);
		}
	build();
	for (unsigned i = 0; i < BLOCKS; i++) {
		struct heap_allocation allocation = row(i);
		unsigned block = (unsigned)__builtin_ctzll(allocation.size_bytes);
		assert_int_equal(heap_class_of(&allocation, (struct heap_range){20, 40}), expected[block]);
	}
	struct heap_filter filter;
	heap_filter_init(&filter);
	heap_window_make(&window, table, &filter, (struct heap_range){20, 40}, HEAP_BY_CLASS);
	uint64_t bytes[HEAP_CLASS_NONE + 1] = {0};
	for (uint32_t i = 0; i < window.cell_count; i++)
		bytes[window.cells[i].by] += window.numbers[i].total_bytes;
	assert_int_equal(bytes[HEAP_AIFI], 1 << 5 | 1 << 6);
	assert_int_equal(bytes[HEAP_AIFO], 1 << 7 | 1 << 8 | 1 << 13);
	assert_int_equal(bytes[HEAP_AOFI], 1 << 1 | 1 << 2);
	assert_int_equal(bytes[HEAP_AOFO], 1 << 3 | 1 << 4 | 1 << 11 | 1 << 12);
	assert_int_equal(bytes[HEAP_CLASS_NONE], 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_totals),
		TEST(test_temporary),
		TEST(test_reallocs),
		TEST(test_range),
		TEST(test_peak_of_equal_times),
		TEST(test_stamps),
		TEST(test_conflicts),
		TEST(test_gap),
		TEST(test_failed_and_in_flight),
		TEST(test_fork),
		TEST(test_ends_of_processes),
		TEST(test_peak_over_processes),
		TEST(test_earlier),
		TEST(test_earlier_settled),
		TEST(test_earlier_reallocs),
		TEST(test_earlier_begun_by_nobody),
		TEST(test_earlier_given_back_again),
		TEST(test_earlier_begun_again_at_once),
		TEST(test_earlier_apart),
		TEST(test_earlier_inherited),
		TEST(test_destroy),
		TEST(test_stream_order),
		TEST(test_random),
		TEST(test_classes),
		TEST(test_stamps_apart),
		TEST(test_block_matches),
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_extents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
