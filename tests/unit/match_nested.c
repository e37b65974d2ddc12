/* SPDX-License-Identifier: MIT */
/* Heaps that lie in blocks of others, on traces whose every number is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "match/match.h"
#include "match/nest.h"
#include "query/window.h"
#include "scene.h"
#include "trace/code_rows.h"
#include "trace/row_ids.h"

static struct scene scene;
static struct trace *trace;
static struct heap_table *table;
static struct heap_window window;
static uint32_t process, thread, plain, pool, slab;

static const char path[] = "nested.xht";

static uint32_t heap_add(uint32_t of, uint64_t handle, const char *name)
{
	return writer_add_heap(scene.writer,
			       &(struct trace_heap){.process = of, .handle = handle, .name = (char *)name});
}

static int begin(void **state)
{
	(void)state;
	scene_open(&scene, path);
	process = scene_process(&scene, 100, TRACE_NONE, 0);
	thread = scene_thread(&scene, process, 100);
	plain = scene.heap = heap_add(process, 0x1000, "libc");
	pool = heap_add(process, 0x2000, "pool");
	slab = heap_add(process, 0x3000, "slab");
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
	assert_int_equal(table->unknown_frees, 0);
	assert_int_equal(table->order_conflicts, 0);
}

/* Events of an annotated heap. */
static void tell(uint32_t heap, uint32_t function)
{
	scene.heap = heap;
	scene.function = function;
}

static void tell_plain(void)
{
	tell(plain, FUNCTION_COUNT);
}

static void take(uint32_t heap, int64_t time_ns, uint64_t address, uint64_t size)
{
	tell(heap, FUNCTION_HEAP_ALLOC);
	scene_alloc(&scene, thread, time_ns, address, size);
	tell_plain();
}

static void give(uint32_t heap, int64_t time_ns, uint64_t address)
{
	tell(heap, FUNCTION_HEAP_FREE);
	scene_free(&scene, thread, time_ns, address);
	tell_plain();
}

static void destroy(uint32_t heap, int64_t time_ns)
{
	tell(heap, FUNCTION_HEAP_DESTROY);
	scene_event(&scene, thread, EVENT_DESTROY, time_ns);
	tell_plain();
}

static void look(enum heap_nesting nesting, const char *heap)
{
	struct heap_filter filter;
	struct diag diag = {""};
	heap_window_fini(&window);
	heap_filter_init(&filter);
	filter.nesting = nesting;
	if (heap) {
		filter.heaps = calloc(1, sizeof(*filter.heaps));
		filter.heaps[0] = (char *)heap;
		filter.heap_count = filter.heap_capacity = 1;
	}
	assert_int_equal(heap_filter_prepare(&filter, table, NULL, &diag), 0);
	heap_window_make(&window, table, &filter, (struct heap_range){0, table->duration_ns}, HEAP_BY_NONE);
	heap_filter_fini(&filter);
}

#define TOTALS(count, bytes) \
	(assert_int_equal(window.totals.total_count, count), assert_int_equal(window.totals.total_bytes, bytes))
#define OUTSTANDING(count, bytes) \
	(assert_int_equal(window.totals.outstanding_count, count), \
	 assert_int_equal(window.totals.outstanding_bytes, bytes))
#define PEAK(time, bytes) (assert_int_equal(window.peak_at_ns, time), assert_int_equal(window.totals.peak_bytes, bytes))

/* Of the row [pool overhead]. */
static const struct heap_numbers *remainder_of(void)
{
	assert_true(table->nested_count);
	for (uint32_t i = 0; i < window.cell_count; i++)
		if (window.cells[i].site == table->site_count - 1)
			return &window.numbers[i];
	fail();
	return NULL;
}

static const struct heap_allocation *row(uint32_t id)
{
	static struct heap_scan scan;
	static struct heap_allocation kept;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, table, &HEAP_SCAN_ALL, NULL);
	while ((rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++)
			if (rows->first + i == id)
				kept = heap_rows_get(rows, i);
	heap_scan_end(&scan);
	return &kept;
}

/* A block of 1000 bytes with three of a pool in it, one at its own address. */
static void test_pool(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x10000, 1000);
	take(pool, 20, 0x10000, 100);
	take(pool, 30, 0x10064, 200);
	give(pool, 40, 0x10000);
	take(pool, 50, 0x10000, 50);
	scene_alloc(&scene, thread, 60, 0x20000, 7);
	build();
	assert_int_equal(table->nested_count, 3);
	assert_int_equal(table->inside[pool], plain);
	assert_int_equal(table->inside[plain], TRACE_NONE);
	look(HEAP_NESTING_OUTERMOST, NULL);
	TOTALS(2, 1007);
	OUTSTANDING(2, 1007);
	PEAK(60, 1007);
	look(HEAP_NESTING_ALL, NULL);
	TOTALS(5, 1357);
	look(HEAP_NESTING_OUTERMOST, "pool");
	TOTALS(3, 350);
	OUTSTANDING(2, 250);
	PEAK(30, 300);
	look(HEAP_NESTING_INNERMOST, NULL);
	TOTALS(4, 357);
	OUTSTANDING(4, 1007);
	PEAK(60, 1007);
	assert_int_equal(remainder_of()->total_count, 0);
	assert_int_equal(remainder_of()->outstanding_count, 1);
	assert_int_equal(remainder_of()->outstanding_bytes, 750);
	assert_int_equal(remainder_of()->peak_bytes, 750);
	look(HEAP_NESTING_INNERMOST, "pool");
	TOTALS(3, 350);
}

/* A slab in a block of a pool in a block of malloc's: what the pool has not handed out, and what the slab has not. */
static void test_two_levels(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x10000, 1000);
	take(pool, 20, 0x10000, 600);
	take(slab, 30, 0x10000, 100);
	take(slab, 40, 0x10064, 100);
	take(pool, 50, 0x10258, 300);
	take(slab, 60, 0x10258 - 1, 1);
	build();
	assert_int_equal(table->inside[pool], plain);
	assert_int_equal(table->inside[slab], pool);
	look(HEAP_NESTING_OUTERMOST, NULL);
	TOTALS(1, 1000);
	look(HEAP_NESTING_INNERMOST, NULL);
	TOTALS(4, 501);
	OUTSTANDING(6, 1000);
	assert_int_equal(remainder_of()->outstanding_count, 2);
	assert_int_equal(remainder_of()->outstanding_bytes, 1000 - 501);
}

/* A block ends with the one around it; not with one that grows where it is. */
static void test_end_of_the_outer_block(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x10000, 1000);
	take(pool, 20, 0x10010, 100);
	scene_realloc(&scene, thread, 30, 31, 0x10000, 0x10000, 2000);
	take(pool, 40, 0x10500, 100);
	scene_realloc(&scene, thread, 50, 51, 0x10000, 0x20000, 3000);
	take(pool, 60, 0x20010, 100);
	scene_free(&scene, thread, 70, 0x20000);
	scene_alloc(&scene, thread, 80, 0x10000, 4000);
	build();
	assert_int_equal(row(1)->end, HEAP_END_DESTROY);
	assert_int_equal(row(1)->end_ns, 50);
	assert_int_equal(row(3)->end_ns, 50);
	assert_int_equal(row(5)->end_ns, 70);
	assert_true(row(2)->flags & HEAP_HAS_NESTED);
	assert_false(row(6)->flags & HEAP_HAS_NESTED);
	look(HEAP_NESTING_OUTERMOST, "pool");
	OUTSTANDING(0, 0);
	PEAK(40, 200);
}

/* An allocator whose own blocks are annotated tells of them before its own call returns. */
static void test_told_before(void **state)
{
	(void)state;
	take(pool, 19, 0x10000, 112);
	scene_alloc(&scene, thread, 20, 0x10000, 100);
	give(pool, 30, 0x10000);
	scene_free(&scene, thread, 31, 0x10000);
	take(pool, 40, 0x11000, 5);
	build();
	assert_int_equal(table->nested_count, 1);
	look(HEAP_NESTING_OUTERMOST, NULL);
	TOTALS(2, 105);
	PEAK(20, 100);
	assert_int_equal(table->processes[process].live_count, 1);
	assert_int_equal(table->processes[process].live_bytes, 5);
}

/* Within the allocator's free it tells of its own, when the block around has ended already. */
static void test_told_after(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		take(pool, 100 * i + 19, 0x10000, 112);
		scene_alloc(&scene, thread, 100 * i + 20, 0x10000, 100);
		scene_free(&scene, thread, 100 * i + 30, 0x10000);
		give(pool, 100 * i + 31, 0x10000);
	}
	build();
	assert_int_equal(table->nested_count, 3);
	look(HEAP_NESTING_ALL, NULL);
	TOTALS(6, 3 * 212);
	OUTSTANDING(0, 0);
}

/* What is told of a pool does not come between malloc and free, and a lock not between a pool's. */
static void test_temporary(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x10000, 100);
	take(pool, 11, 0x10000, 8);
	tell(pool, FUNCTION_HEAP_UNLOCK);
	scene_event(&scene, thread, EVENT_UNLOCK, 12);
	give(pool, 13, 0x10000);
	scene_free(&scene, thread, 14, 0x10000);
	build();
	look(HEAP_NESTING_ALL, NULL);
	assert_int_equal(window.totals.temporary_count, 2);
}

static void test_destroy(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		take(pool, 10 + i, 0x10000 + 16 * (uint64_t)i, 16);
		take(slab, 10 + i, 0x10000 + 16 * (uint64_t)i, 8);
	}
	destroy(pool, 2000);
	take(pool, 2001, 0x10000, 1);
	build();
	look(HEAP_NESTING_OUTERMOST, "pool");
	OUTSTANDING(1, 1);
	/* It lies in the pool's blocks. */
	look(HEAP_NESTING_OUTERMOST, "slab");
	OUTSTANDING(0, 0);
	assert_int_equal(table->inside[slab], pool);
}

/* The outer block is old when something is put into it: its group has been written. */
static void test_old_outer_block(void **state)
{
	enum { MORE = 40000 };
	(void)state;
	scene_alloc(&scene, thread, 10, 0x10000, 4096);
	for (int i = 0; i < MORE; i++)
		scene_alloc(&scene, thread, 20 + i, 0x1000000 + 32 * (uint64_t)i, 1);
	take(pool, MORE + 30, 0x10100, 96);
	build();
	assert_true(row(0)->flags & HEAP_HAS_NESTED);
	assert_int_equal(row(0)->end, HEAP_END_OPEN);
	look(HEAP_NESTING_INNERMOST, NULL);
	TOTALS(MORE + 1, MORE + 96);
	assert_int_equal(remainder_of()->outstanding_bytes, 4000);
}

/* A forked child gives back what its parent took from a pool, and takes of its own. */
static void test_fork(void **state)
{
	(void)state;
	take(pool, 10, 0x10000, 100);
	take(pool, 20, 0x10100, 100);
	uint32_t child = scene_process(&scene, 200, process, 100), child_thread = scene_thread(&scene, child, 200);
	uint32_t child_pool = heap_add(child, 0x2000, "pool");
	tell(child_pool, FUNCTION_HEAP_FREE);
	scene_free(&scene, child_thread, 110, 0x10000);
	tell(child_pool, FUNCTION_HEAP_ALLOC);
	scene_alloc(&scene, child_thread, 120, 0x10000, 30);
	build();
	assert_int_equal(table->processes[child].inherited_freed, 1);
	assert_int_equal(table->processes[child].inherited_count, 2);
	look(HEAP_NESTING_OUTERMOST, NULL);
	TOTALS(3, 230);
	OUTSTANDING(3, 230);
}

static bool is_one(void *context, uint32_t id)
{
	(void)context;
	return id != NEST_NONE;
}

static void test_starts(void **state)
{
	enum { COUNT = 500, ROUNDS = 60000 };
	static uint64_t addresses[COUNT];
	static bool is_there[COUNT];
	struct nest_starts starts = {.granule_count = 0};
	unsigned seed = 7;
	(void)state;
	for (int i = 0; i < COUNT; i++) {
		uint64_t random = (uint64_t)(seed = seed * 1664525 + 1013904223) << 32;
		random |= seed = seed * 1664525 + 1013904223;
		addresses[i] = i % 3 ? 0x7f0000000000 + random % (i % 2 ? 4096 : 1 << 28) : random;
	}
	addresses[0] = 0;
	addresses[1] = UINT64_MAX;
	for (int i = 0; i < ROUNDS; i++) {
		seed = seed * 1664525 + 1013904223;
		int at = (seed >> 8) % COUNT;
		if (seed >> 31)
			nest_starts_add(&starts, addresses[at]);
		else
			nest_starts_remove(&starts, addresses[at]);
		for (int j = 0; j < COUNT; j++)
			if (addresses[j] == addresses[at])
				is_there[j] = seed >> 31;
		if (i % 16)
			continue;
		if (i % 256 == 0)
			assert_true(nest_starts_is_valid(&starts));
		uint64_t wanted = addresses[(seed >> 16) % COUNT] + (seed >> 20) % 3 - 1, found = 0, best = 0;
		bool any = false;
		for (int j = 0; j < COUNT; j++)
			if (is_there[j] && addresses[j] <= wanted && (!any || addresses[j] > best)) {
				best = addresses[j];
				any = true;
			}
		assert_int_equal(nest_starts_last(&starts, wanted, &found), any);
		if (any)
			assert_int_equal(found, best);
	}
	live_fini(&starts.nodes);
}

static void test_spans(void **state)
{
	struct nest nest = {.free = 0};
	(void)state;
	nest_add(&nest, &(struct nest_span){.address = 100, .bytes = 100, .row = 0}, NULL);
	nest_add(&nest, &(struct nest_span){.address = 100, .bytes = 10, .row = 1},
		 nest_enclosing(&nest, 100, is_one, NULL));
	nest_add(&nest, &(struct nest_span){.address = 120, .bytes = 10, .row = 2},
		 nest_enclosing(&nest, 120, is_one, NULL));
	assert_int_equal(nest_enclosing(&nest, 105, is_one, NULL)->row, 1);
	assert_int_equal(nest_enclosing(&nest, 110, is_one, NULL)->row, 0);
	assert_int_equal(nest_enclosing(&nest, 199, is_one, NULL)->row, 0);
	assert_int_equal(nest_enclosing(&nest, 129, is_one, NULL)->row, 2);
	assert_null(nest_enclosing(&nest, 200, is_one, NULL));
	assert_null(nest_enclosing(&nest, 99, is_one, NULL));
	assert_int_equal(nest_last_within(&nest, 101, 150, is_one, NULL)->row, 2);
	assert_null(nest_last_within(&nest, 121, 150, is_one, NULL));
	assert_true(nest_is_valid(&nest));
	nest_fini(&nest);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_pool),
		TEST(test_two_levels),
		TEST(test_end_of_the_outer_block),
		TEST(test_told_before),
		TEST(test_told_after),
		TEST(test_temporary),
		TEST(test_destroy),
		TEST(test_old_outer_block),
		TEST(test_fork),
		cmocka_unit_test(test_starts),
		cmocka_unit_test(test_spans),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
