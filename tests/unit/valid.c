/* SPDX-License-Identifier: MIT */
/*
 * The walkers X_is_valid() (src/base/check.h): they hold after each step, and fail when one field is wrong. The parts
 * whose structures are nobody else's are included as they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "match/match.c"
#include "match/match_valid.h"
#include "match/point_stream.c"
#include "match/survivors.c"
#include "noticed.h"
#include "scene.h"
#include "table/table_valid.h"
#include "trace/row_ids.h"

static struct scene scene;
static struct trace *trace;
static struct diag diag;
static uint32_t process, thread, other;
static uint64_t random_state = 1;

static const char path[] = "valid.xht";

static uint32_t any(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % below;
}

static int begin(void **state)
{
	(void)state;
	scene_open(&scene, path);
	process = scene_process(&scene, 100, TRACE_NONE, 0);
	thread = scene_thread(&scene, process, 100);
	other = scene_thread(&scene, process, 101);
	scene.stack = scene_stack(&scene, 0x1000, 0x2000, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	scene_remove(path, trace, NULL);
	return 0;
}

/* Blocks that come and go in two threads, in many event blocks; some are resized. */
static void scene_churn(int steps)
{
	enum { BLOCKS = 3000 };
	static bool is_live[BLOCKS];
	memset(is_live, 0, sizeof(is_live));
	for (int i = 0; i < steps; i++) {
		uint32_t at = any(BLOCKS), who = any(2) ? thread : other;
		uint64_t address = 0x10000 + 64 * (uint64_t)at;
		if (!is_live[at])
			scene_alloc(&scene, who, 10 * i, address, 1 + any(60));
		else if (any(8))
			scene_free(&scene, who, 10 * i, address);
		else
			scene_realloc(&scene, who, 10 * i, 10 * i + 2, address, address, 1 + any(60));
		is_live[at] = !is_live[at] || (scene.events[who].kind[scene.events[who].count - 1] == EVENT_REALLOC);
		if (!any(700))
			scene_block(&scene, who);
	}
}

/* Everything up to the end, as the last look leaves it. */
static struct matching *matched(void)
{
	const struct heap_build how = {.fd = -1};
	struct matching *matching = matching_new(&how);
	trace = scene_read(&scene, path);
	assert_int_equal(matching_go_on(matching, trace, INT64_MAX, false, &diag), 0);
	assert_true(matching_is_valid(matching));
	return matching;
}

/* ---- live sets and nests ---- */

static void live_sets_hold_after_each_step(void **state)
{
	enum { ADDRESSES = 90, STEPS = 3000 };
	struct live live = {0};
	(void)state;
	assert_true(live_is_valid(&live));
	for (int i = 0; i < STEPS; i++) {
		uint64_t address = 16 + 16 * (uint64_t)any(ADDRESSES);
		struct live_cell *cell = live_find(&live, address);
		if (cell)
			live_remove(&live, cell);
		else
			live_add(&live, address);
		assert_true(live_is_valid(&live));
	}
	struct live_cell *cell = live_add(&live, 16);
	assert_noticed(live.count, live.count + 1, live_is_valid(&live));
	assert_noticed(cell->address, 0, live_is_valid(&live));
	assert_noticed(cell->address, (cell->address + 1) << 20, live_is_valid(&live));
	live_fini(&live);
}

static bool even(void *context, uint32_t row)
{
	(void)context;
	return row % 2 == 0;
}

static void nests_hold_after_each_step(void **state)
{
	struct nest nest = {.free = 0};
	uint64_t address;
	(void)state;
	assert_true(nest_is_valid(&nest));
	for (uint32_t i = 0; i < 400; i++) {
		address = 4096 + 64 * (uint64_t)any(50);
		nest_add(&nest, &(struct nest_span){.address = address, .bytes = 64, .row = i},
			 nest_enclosing(&nest, address, even, NULL));
		assert_true(nest_is_valid(&nest));
		/* Spans with odd rows go when they are met. */
		nest_at(&nest, 4096 + 64 * (uint64_t)any(50), even, NULL);
		nest_starts_add(&nest.plain, address << any(30));
		nest_starts_remove(&nest.plain, address << any(30));
		assert_true(nest_is_valid(&nest));
	}
	nest_add(&nest, &(struct nest_span){.address = 64, .bytes = 64, .row = 2}, NULL);
	nest_add(&nest, &(struct nest_span){.address = 64, .bytes = 64, .row = 4}, NULL);
	for (uint32_t i = 0; i < 4; i++)
		nest_add(&nest, &(struct nest_span){.address = 1 << 20, .bytes = 64, .row = 1}, NULL);
	assert_null(nest_at(&nest, 1 << 20, even, NULL));
	struct live_cell *cell = live_find(&nest.at, 64);
	struct nest_span *span = &nest.spans[cell->current];
	assert_noticed(span->below, cell->current, nest_is_valid(&nest));
	assert_noticed(span->below, NEST_NONE, nest_is_valid(&nest));
	assert_noticed(span->address, 128, nest_is_valid(&nest));
	assert_noticed(nest.free, 0, nest_is_valid(&nest));
	/* The node of the address in the level of granules (match/nest.c). */
	struct live_cell *node = live_find(&nest.annotated.nodes, (64 >> 10) << 4 | 2);
	assert_non_null(node);
	assert_noticed(node->current, 0, nest_is_valid(&nest));
	assert_noticed(node->current, node->current | 2, nest_is_valid(&nest));
	nest_fini(&nest);
}

/* ---- survivors ---- */

static void survivors_hold_after_each_step(void **state)
{
	const struct heap_allocation row = {.end = HEAP_END_OPEN};
	struct heap_groups groups;
	(void)state;
	groups_begin(&groups, -1, 0);
	struct survivors *survivors = survivors_new(&groups);
	survivors_reserve(survivors, 2 * PACK_ROWS);
	for (uint32_t id = 3; id < 2 * PACK_ROWS; id += 1 + any(9)) {
		survivors_add(survivors, id, &row, HEAP_NONE);
		assert_true(survivors_is_valid(survivors));
	}
	for (uint32_t id = 0; id < PACK_ROWS / 2; id++) {
		struct survivor *survivor = survivors_find(survivors, id);
		if (!survivor)
			continue;
		survivor->allocation.end = HEAP_END_FREE;
		survivors_end(survivors, id);
		assert_true(survivors_is_valid(survivors));
	}
	struct own *own = own_of(survivors, 0);
	assert_noticed(own->live, own->live + 1, survivors_is_valid(survivors));
	assert_noticed(own->count, own->count - 1, survivors_is_valid(survivors));
	assert_noticed(own->before[2], own->before[2] + 1, survivors_is_valid(survivors));
	assert_noticed(own->is_one[1], own->is_one[1] ^ 2, survivors_is_valid(survivors));
	assert_noticed(survivors->spans[0]->count, 1, survivors_is_valid(survivors));
	survivors_finish(survivors, 0);
	survivors_free(survivors);
	groups_finish(&groups);
	groups_fini(&groups);
}

/* ---- the stream ---- */

static void streams_hold_after_each_step(void **state)
{
	struct heap_run run;
	uint32_t runs = 0;
	(void)state;
	scene_churn(9000);
	trace = scene_read(&scene, path);
	struct heap_stream *stream = heap_stream_new(trace, HEAP_ORDER_MATCHED, INT64_MIN, INT64_MAX);
	assert_true(heap_stream_is_valid(stream));
	while (heap_stream_run(stream, &run, &diag) > 0) {
		assert_true(heap_stream_is_valid(stream));
		if (++runs != 1000)
			continue;
		struct lane *top = stream->heap[0];
		assert_int_equal(stream->heap_count, 2);
		assert_noticed(stream->heap[0], stream->heap[1], heap_stream_is_valid(stream));
		assert_noticed(stream->heap_count, 3, heap_stream_is_valid(stream));
		assert_noticed(stream->ahead_count, stream->ahead_count + 1, heap_stream_is_valid(stream));
		assert_noticed(stream->pending, top->count + 1, heap_stream_is_valid(stream));
		assert_noticed(top->next, top->count + 1, heap_stream_is_valid(stream));
		assert_noticed(top->time_ns, INT64_MAX, heap_stream_is_valid(stream));
		assert_noticed(top->reader->places[top->count - 1].time_ns, INT64_MIN, heap_stream_is_valid(stream));
	}
	assert_true(runs > 1000);
	assert_true(heap_stream_is_valid(stream));
	heap_stream_free(stream);
}

/* ---- matching ---- */

static void matching_holds_after_each_look(void **state)
{
	enum { STEPS = 40000 };
	const struct heap_build how = {.fd = -1};
	struct heap_table *table;
	(void)state;
	scene_churn(STEPS);
	trace = scene_read(&scene, path);
	struct matching *matching = matching_new(&how);
	for (int64_t until_ns = 0; until_ns < 10 * STEPS; until_ns += 1 + any(30000)) {
		assert_int_equal(matching_increment(matching, trace, until_ns, &diag), 0);
		assert_true(matching_is_valid(matching));
	}
	struct matching_process *first = &matching->processes[0];
	assert_noticed(matching->written, matching->table->count + 1, matching_is_valid(matching));
	assert_noticed(matching->pending_first, matching->pending_count + 1, matching_is_valid(matching));
	assert_noticed(matching->last_alloc[1][0], matching->table->count, matching_is_valid(matching));
	assert_noticed(matching->last_realloc_from[0], COPY_BIT, matching_is_valid(matching));
	assert_noticed(matching->level.live_bytes, matching->level.live_bytes + 1, matching_is_valid(matching));
	assert_noticed(matching->next_end, matching->end_count + 1, matching_is_valid(matching));
	assert_noticed(matching->table->site_count, 1, matching_is_valid(matching));
	assert_noticed(first->live.count, first->live.count - 1, matching_is_valid(matching));
	assert_noticed(first->measured_count, 7, matching_is_valid(matching));
	assert_int_equal(matching_end(matching, trace, &table, &diag), 0);
	assert_true(heap_table_is_valid(table));
	heap_table_free(table);
	matching_free(matching);
}

/* A child frees blocks of its parent, and both go on. */
static void matching_holds_over_forks(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 300; i++)
		scene_alloc(&scene, thread, 10 + i, 0x10000 + 64 * (uint64_t)any(100), 10);
	for (uint32_t i = 0; i < 50; i++)
		scene_free(&scene, thread, 400 + i, 0x10000 + 64 * (uint64_t)i);
	uint32_t child = scene_process(&scene, 200, process, 500), of_child = scene_thread(&scene, child, 200);
	for (uint32_t i = 0; i < 100; i++)
		scene_free(&scene, of_child, 600 + i, 0x10000 + 64 * (uint64_t)i);
	for (uint32_t i = 0; i < 60; i++)
		scene_alloc(&scene, of_child, 800 + i, 0x10000 + 64 * (uint64_t)i, 20);
	struct matching *matching = matched();
	assert_true(matching->copy_count > 10);
	assert_noticed(matching->copies[3].before, matching->table->count, matching_is_valid(matching));
	struct live_cell *cell = live_find(&matching->processes[process].live, 0x10000 + 64 * 99);
	assert_non_null(cell);
	assert_noticed(matching->history[cell->current].before, cell->current, matching_is_valid(matching));
	assert_noticed(cell->current, matching->table->count, matching_is_valid(matching));
	assert_noticed(cell->other, COPY_BIT | (uint32_t)matching->copy_count, matching_is_valid(matching));
	matching_free(matching);
}

/* Frees whose blocks nobody saw begin: those that wait, and those that may be of earlier blocks. */
static void matching_holds_with_late_frees(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		scene_free(&scene, thread, 100 + 10000 * (int64_t)i, 0x10000 + 64 * (uint64_t)(i / 2));
		scene_measure(&scene, thread, 32);
		scene_lasted(&scene, thread, 5);
	}
	scene_free(&scene, thread, 300000, 0x20000);
	scene_free(&scene, thread, 300001, 0x20040);
	struct matching *matching = matched();
	assert_int_equal(matching->late_free_count, 10);
	assert_int_equal(matching->pending_count - matching->pending_first, 2);
	struct pending_free *pending = &matching->pending[matching->pending_first];
	assert_noticed(matching->late_frees[4].before_ns, INT64_MIN, matching_is_valid(matching));
	assert_noticed(matching->late_frees[4].earlier_bytes, 0, matching_is_valid(matching));
	assert_noticed(pending[1].end.time_ns, pending[0].end.time_ns - 1, matching_is_valid(matching));
	assert_noticed(pending[0].end.thread, 2, matching_is_valid(matching));
	matching_free(matching);
}

/* A pool of the program's own in a block of malloc's. */
static void matching_holds_with_nests(void **state)
{
	(void)state;
	scene_alloc(&scene, thread, 10, 0x10000, 4096);
	scene.function = FUNCTION_FIRST_ANNOTATION;
	for (uint32_t i = 0; i < 20; i++)
		scene_alloc(&scene, thread, 20 + i, 0x10000 + 64 * (uint64_t)i, 64);
	scene.function = FUNCTION_COUNT;
	struct matching *matching = matched();
	struct nest *nest = &matching->processes[process].nest;
	assert_int_equal(nest->span_count, 20);
	assert_int_equal(matching->table->nested_count, 20);
	assert_noticed(nest->spans[3].address, 0x10000, matching_is_valid(matching));
	matching_free(matching);
}

/* ---- tables ---- */

static void tables_hold(void **state)
{
	struct heap_table *table;
	(void)state;
	scene_churn(20000);
	/* Instants of two points, and frees of unknown blocks. */
	scene_alloc(&scene, thread, 300000, 0x900000, 11);
	scene_free(&scene, thread, 300000, 0x910000);
	scene_alloc(&scene, thread, 310000, 0x920000, 11);
	scene_free(&scene, thread, 310000, 0x930000);
	scene.stack = scene_stack(&scene, 0x1000, 0x3000, 0);
	scene_alloc(&scene, thread, 320000, 0x940000, 11);
	trace = scene_read(&scene, path);
	table = scene_match(trace);
	assert_true(table->site_count > 2 && table->sums.use_count > 2 && table->groups.count > 20);
	struct heap_group *group = &table->groups.items[5];
	assert_noticed(table->nested_count, 1, heap_table_is_valid(table));
	assert_noticed(table->count, table->count + PACK_ROWS, heap_table_is_valid(table));
	assert_noticed(table->site_count, table->site_count - 1, heap_table_is_valid(table));
	assert_noticed(table->sites[1], table->sites[0], heap_table_is_valid(table));
	assert_noticed(table->sites[1].entry, 100000, heap_table_is_valid(table));
	assert_noticed(table->inside[0], 0, heap_table_is_valid(table));
	assert_noticed(table->sums.numbers[0].total_count, 0, heap_table_is_valid(table));
	assert_noticed(table->sums.numbers[0].outstanding_bytes, 1, heap_table_is_valid(table));
	assert_noticed(table->sums.uses[1].cell, 0xffff, heap_table_is_valid(table));
	assert_noticed(table->point_count, 1000, heap_table_is_valid(table));
	assert_noticed(table->instants[0].point_count, 1, heap_table_is_valid(table));
	assert_noticed(table->instants[1].first_point, 0, heap_table_is_valid(table));
	assert_noticed(table->faults[0].point, table->point_count, heap_table_is_valid(table));
	assert_noticed(table->fault_count, table->fault_count + 1, heap_table_is_valid(table));
	assert_noticed(group->open_count, group->open_count + 1, heap_table_is_valid(table));
	assert_noticed(group->first_ns, group->last_ns, heap_table_is_valid(table));
	assert_noticed(group->end_ns, INT64_MAX, heap_table_is_valid(table));
	assert_noticed(table->groups.strips[0].of[PACK_SIZE].offset, table->groups.end,
		       groups_is_valid(&table->groups));
	assert_noticed(group->row_count, PACK_ROWS + 1, groups_is_valid(&table->groups));
	assert_noticed(group->end_count, PACK_ROWS + 1, groups_is_valid(&table->groups));
	assert_noticed(table->groups.count, table->groups.capacity + 1, groups_is_valid(&table->groups));
	heap_table_free(table);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_sets_hold_after_each_step),
		cmocka_unit_test(nests_hold_after_each_step),
		cmocka_unit_test(survivors_hold_after_each_step),
		TEST(streams_hold_after_each_step),
		TEST(matching_holds_after_each_look),
		TEST(matching_holds_over_forks),
		TEST(matching_holds_with_late_frees),
		TEST(matching_holds_with_nests),
		TEST(tables_hold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
