/* SPDX-License-Identifier: MIT */
/*
 * Columns: the list is whole, a batch of rows has the values that its rows have one by one, and a value is absent only
 * where the list says so. The C interface has these values, too, in structs that keep their layout. What the values are
 * is tested by unit/plan and golden/dump.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/row_members.h"
#include "match/match.h"
#include "noticed.h"
#include "scene.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum { BLOCKS = 700 };

static const char path[] = "columns.xht";
static struct diag diag;
static struct trace *trace;
static struct heap_table *table;

/* Blocks that end by a free, a realloc and not at all, some from before the trace, and calls that fail or never
   return. */
static void events_make(struct scene *scene, const uint32_t threads[2], const uint32_t stacks[2])
{
	for (uint32_t i = 0; i < BLOCKS; i++) {
		uint32_t thread = threads[i / 5 % 2];
		uint64_t address = 0x10000 + 0x2000 * (uint64_t)i;
		int64_t time_ns = 100 * (int64_t)i + 10;
		scene->stack = i % 7 ? stacks[i % 2] : 0;
		scene_alloc(scene, thread, time_ns, address, i * 3);
		if (i % 3 == 0)
			scene_realloc(scene, thread, time_ns + 10, time_ns + 20, address, address + 0x1000, 30);
		if (i % 4 == 0)
			scene_free(scene, thread, time_ns + 30, address + (i % 3 ? 0 : 0x1000));
		scene->flags = i % 20 ? EVENT_FAILED : EVENT_FAILED | EVENT_NO_STACK | EVENT_NO_DURATION;
		scene_alloc(scene, thread, time_ns + 50, 0, 1);
	}
	scene->flags = EVENT_IN_FLIGHT;
	scene_alloc(scene, threads[0], 100 * BLOCKS + 50, 0, 1);
}

static int begin(void **state)
{
	struct scene scene;
	(void)state;
	scene_open(&scene, path);
	uint32_t processes[] = {scene_process(&scene, 100, TRACE_NONE, 0), scene_process(&scene, 0, TRACE_NONE, 0)};
	uint32_t threads[] = {scene_thread(&scene, processes[0], 100), scene_thread(&scene, processes[1], 200)};
	uint32_t stacks[] = {scene_stack(&scene, 0x1000, 0x2000, 0), scene_stack(&scene, 0x1000, 0x3000, 0)};
	uint32_t none = scene_thread(&scene, processes[0], TRACE_TID_NONE);
	for (uint64_t i = 0; i < 20; i++)
		scene_earlier(&scene, none, 5, 0x9000000 + 0x1000 * i, 100 + i);
	events_make(&scene, threads, stacks);
	scene_end(&scene, processes[0], 100 * BLOCKS + 100, TRACE_END_EXIT, 0);
	scene_close(&scene);
	assert_int_equal(trace_open(&trace, path, &diag), 0);
	assert_int_equal(heap_table_build(&table, trace, NULL, &diag), 0);
	assert_true(table->count > PACK_ROWS * 2);
	return 0;
}

static int end(void **state)
{
	(void)state;
	heap_table_free(table);
	trace_close(trace);
	unlink(path);
	return 0;
}

static void names_and_functions(void **state)
{
	(void)state;
	for (unsigned source = 0; source < COLUMN_SOURCES; source++)
		for (unsigned id = 0; id < COLUMN_COUNT; id++) {
			const struct column *column = column_find(source, id);
			if (!column)
				continue;
			assert_true(column_is_valid(column));
			for (unsigned other = 0; other < id; other++)
				assert_true(!column_find(source, other) ||
					    strcmp(column_find(source, other)->name, column->name) != 0);
		}
	for (unsigned id = 0; id < COLUMN_COUNT; id++)
		assert_true(column_find(COLUMNS_OF_ALLOCATIONS, id) || column_find(COLUMNS_OF_EVENTS, id));
}

/* Which columns had an absent value, and which had one. */
/* A row of a column with one part changed. */
static void wrong_columns_are_noticed(void **state)
{
	struct column action = column_of_events[COLUMN_ACTION], end = column_of_allocations[COLUMN_END];
	struct column text = column_of_events[COLUMN_ARGUMENTS], size = column_of_allocations[COLUMN_SIZE];
	(void)state;
	assert_noticed(action.help, "No sentence", column_is_valid(&action));
	assert_noticed(action.help, NULL, column_is_valid(&action));
	assert_noticed(action.words, NULL, column_is_valid(&action));
	assert_noticed(action.type, TYPE_NUMBER, column_is_valid(&action));
	assert_noticed(action.absent_word, "none", column_is_valid(&action));
	assert_noticed(end.fill, NULL, column_is_valid(&end));
	assert_noticed(end.text, text.text, column_is_valid(&end));
	assert_noticed(end.lies_in, 1 + PACK_END, column_is_valid(&end));
	assert_noticed(text.text, NULL, column_is_valid(&text));
	assert_noticed(size.lies_in, PACK_COLUMNS + 1, column_is_valid(&size));
	assert_noticed(size.strips, 0, column_is_valid(&size));
}

static bool was_absent[COLUMN_SOURCES][COLUMN_COUNT], was_present[COLUMN_SOURCES][COLUMN_COUNT];

/* Row i of the batch is `row`. */
static void check_row(enum column_source source, const struct column_rows *rows, uint32_t i,
		      const struct column_row *row)
{
	for (unsigned id = 0; id < COLUMN_COUNT; id++) {
		const struct column *column = column_find(source, id);
		uint64_t values[PACK_ROWS], value;
		uint8_t absent[PACK_ROWS];
		if (!column || !column->get)
			continue;
		bool is_present = column->get(row, &value);
		column->fill(rows, values, absent);
		assert_int_equal(absent[i], !is_present);
		if (values[i] != value)
			fail_msg("%s of row %u: %lu in the batch, %lu alone", column->name, i, values[i], value);
		assert_true(!column->lies_in || value == rows->packed->numbers[column->lies_in - 1][i]);
		(is_present ? was_present : was_absent)[source][id] = true;
	}
}

static void check_absences(enum column_source source)
{
	for (unsigned id = 0; id < COLUMN_COUNT; id++) {
		const struct column *column = column_find(source, id);
		if (column && was_absent[source][id] && !column->absent)
			fail_msg("%s is absent, and the list has no reason", column->name);
	}
	assert_true(was_absent[source][COLUMN_TID] && was_present[source][COLUMN_TID]);
	assert_true(was_absent[source][COLUMN_STACK] && was_present[source][COLUMN_STACK]);
}

static void allocations(void **state)
{
	struct heap_scan scan;
	const struct heap_scan_plan plan = {INT64_MIN, INT64_MAX, INT64_MIN, PACK_EVERYTHING, NULL, NULL};
	const struct heap_rows *rows;
	(void)state;
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan))) {
		const struct column_rows batch = column_rows_of(table, rows);
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct column_row row = column_row_of(table, rows, i);
			check_row(COLUMNS_OF_ALLOCATIONS, &batch, i, &row);
		}
	}
	heap_scan_end(&scan);
	check_absences(COLUMNS_OF_ALLOCATIONS);
}

static void check_event(struct column_rows batch, uint32_t i, uint32_t at)
{
	const struct column_row row = {
		.dictionary = batch.dictionary, .id = batch.first_id + i, .event = column_event_at(batch.block, at)};
	check_row(COLUMNS_OF_EVENTS, &batch, i, &row);
}

static void events(void **state)
{
	struct heap_stream *stream = heap_stream_new(trace, HEAP_ORDER_EVENTS, INT64_MIN, INT64_MAX);
	struct heap_run run;
	uint64_t number = 0;
	(void)state;
	while (heap_stream_run(stream, &run, &diag) > 0) {
		uint32_t count = run.count < PACK_ROWS ? run.count : PACK_ROWS;
		struct column_rows placed = {.dictionary = trace_dictionary(trace),
					     .first_id = number,
					     .count = count,
					     .block = run.block,
					     .places = run.places},
				   consecutive = placed;
		consecutive.places = NULL;
		consecutive.first = run.places[0].row;
		check_event(placed, count - 1, run.places[count - 1].row);
		check_event(placed, 0, run.places[0].row);
		check_event(consecutive, 0, consecutive.first);
		number += run.count;
	}
	assert_int_equal(number, trace_dictionary(trace)->event_count);
	heap_stream_free(stream);
	check_absences(COLUMNS_OF_EVENTS);
}

/* ---- the C interface ---- */

/* Programs are compiled with these offsets: of each member of the list in a batch and in a row; and with the sizes. */
static void layouts(void **state)
{
#define X(member, ...) offsetof(xheap_allocation_batch, member), offsetof(xheap_allocation, member),
	const size_t allocation[] = {ALLOCATION_MEMBERS(X) sizeof(xheap_allocation)};
#undef X
#define X(member, ...) offsetof(xheap_event_batch, member), offsetof(xheap_event, member),
	const size_t event[] = {EVENT_MEMBERS(X) sizeof(xheap_event)};
#undef X
	static const size_t allocation_places[] = {8,   0,  16,  4,  24,  8,  32, 16,  40, 24,  48, 32,  56,
						   40,  64, 48,  88, 56,  96, 60, 104, 64, 112, 68, 120, 72,
						   128, 76, 136, 80, 144, 84, 72, 88,  80, 96,  104};
	static const size_t event_places[] = {24, 8,  32, 16, 40, 24, 48,  28, 56,  44, 64,  40, 72, 56,
					      80, 60, 88, 64, 96, 72, 104, 80, 112, 88, 120, 96, 104};
	(void)state;
	assert_int_equal(sizeof(allocation), sizeof(allocation_places));
	assert_memory_equal(allocation, allocation_places, sizeof(allocation));
	assert_int_equal(sizeof(event), sizeof(event_places));
	assert_memory_equal(event, event_places, sizeof(event));
}

/* The value as its column gives it, cut to the member's width. */
#define IS_OF_COLUMN(source, row, member, column) \
	do { \
		uint64_t value_; \
		column_find(source, column)->get(row, &value_); \
		if ((member) != (__typeof__(member))value_) \
			fail_msg("%s is %ld, of its column %ld", #member, (long)(member), (long)value_); \
	} while (0)

static void check_allocation(const struct column_row *row, const xheap_allocation_batch *batch, uint32_t i)
{
#define X(member, column) IS_OF_COLUMN(COLUMNS_OF_ALLOCATIONS, row, batch->member[i], column);
	ALLOCATION_MEMBERS(X)
#undef X
}

static void allocations_of_programs(void **state)
{
	xheap_trace *opened;
	xheap_allocations *all;
	const xheap_allocation_batch *batch;
	struct heap_scan scan;
	const struct heap_scan_plan plan = {INT64_MIN, INT64_MAX, INT64_MIN, PACK_EVERYTHING, NULL, NULL};
	const struct heap_rows *rows;
	(void)state;
	assert_int_equal(xheap_trace_open(path, NULL, &opened, NULL), XHEAP_OK);
	assert_int_equal(xheap_allocations_open(opened, NULL, &all, NULL), XHEAP_OK);
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan))) {
		assert_int_equal(xheap_allocations_next_batch(all, &batch, NULL), XHEAP_OK);
		assert_int_equal(batch->count, rows->count);
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct column_row row = column_row_of(table, rows, i);
			check_allocation(&row, batch, i);
		}
	}
	assert_int_equal(xheap_allocations_next_batch(all, &batch, NULL), XHEAP_END);
	heap_scan_end(&scan);
	xheap_allocations_close(all);
	xheap_trace_close(opened);
}

static void check_event_of_programs(const struct column_row *row, const xheap_event *event)
{
#define X(member, from_member, column) IS_OF_COLUMN(COLUMNS_OF_EVENTS, row, event->member, column);
	EVENT_MEMBERS(X)
#undef X
	IS_OF_COLUMN(COLUMNS_OF_EVENTS, row, event->number, COLUMN_ID);
	IS_OF_COLUMN(COLUMNS_OF_EVENTS, row, event->process, COLUMN_PROCESS);
	IS_OF_COLUMN(COLUMNS_OF_EVENTS, row, event->thread, COLUMN_THREAD);
	IS_OF_COLUMN(COLUMNS_OF_EVENTS, row, event->pid, COLUMN_PID);
	IS_OF_COLUMN(COLUMNS_OF_EVENTS, row, event->tid, COLUMN_TID);
}

static void events_of_programs(void **state)
{
	xheap_trace *opened;
	xheap_events *all;
	const xheap_event *event;
	struct heap_stream *stream = heap_stream_new(trace, HEAP_ORDER_EVENTS, INT64_MIN, INT64_MAX);
	struct heap_point point;
	struct column_row row = {.dictionary = trace_dictionary(trace)};
	(void)state;
	assert_int_equal(xheap_trace_open(path, NULL, &opened, NULL), XHEAP_OK);
	assert_int_equal(xheap_events_open(opened, NULL, &all, NULL), XHEAP_OK);
	for (; heap_stream_next(stream, &point, &diag) > 0; row.id++) {
		assert_int_equal(xheap_events_next(all, &event, NULL), XHEAP_OK);
		row.event = column_event_at(point.block, point.row);
		check_event_of_programs(&row, event);
	}
	assert_int_equal(xheap_events_next(all, &event, NULL), XHEAP_END);
	heap_stream_free(stream);
	xheap_events_close(all);
	xheap_trace_close(opened);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_functions),
		cmocka_unit_test(wrong_columns_are_noticed),
		cmocka_unit_test(allocations),
		cmocka_unit_test(events),
		cmocka_unit_test(layouts),
		cmocka_unit_test(allocations_of_programs),
		cmocka_unit_test(events_of_programs),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
