/* SPDX-License-Identifier: MIT */
/*
 * Rows through Arrow's C stream interface, as a reader that shares no code with it finds them: the values are those of
 * the other calls, the structs keep the rules of the interface, and whatever was handed out lives by itself.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/arrow_array.h"
#include "base/text.h"
#include "scene.h"
#include "trace/row_ids.h"

enum { BLOCKS = 700, BATCHES_MOST = 2000 };

static const char path[] = "arrow.xht";

/* Blocks that end by a free, a realloc and not at all, one from before the trace, and calls that fail. */
static int begin(void **state)
{
	struct scene scene;
	(void)state;
	scene_open(&scene, path);
	uint32_t processes[] = {scene_process(&scene, 100, TRACE_NONE, 0), scene_process(&scene, 0, TRACE_NONE, 0)};
	uint32_t threads[] = {scene_thread(&scene, processes[0], 100), scene_thread(&scene, processes[1], 200)};
	uint32_t stacks[] = {scene_stack(&scene, 0x1000, 0x2000, 0x3000, 0), scene_stack(&scene, 0x1000, 0x2100, 0)};
	uint32_t nobody = scene_thread(&scene, processes[0], TRACE_TID_NONE);
	scene_earlier(&scene, nobody, 1, 0x5000, 64);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		uint32_t thread = threads[i / 5 % 2];
		uint64_t address = 0x10000 + 0x2000 * (uint64_t)i;
		int64_t time_ns = 100 * (int64_t)i + 10;
		scene.stack = i % 7 ? stacks[i % 2] : 0;
		scene_alloc(&scene, thread, time_ns, address, i * 3);
		if (i % 3 == 0)
			scene_realloc(&scene, thread, time_ns + 10, time_ns + 20, address, address + 0x1000, 30);
		if (i % 4 == 0)
			scene_free(&scene, thread, time_ns + 30, address + (i % 3 ? 0 : 0x1000));
		scene.flags = i % 20 ? EVENT_FAILED : EVENT_FAILED | EVENT_NO_STACK | EVENT_NO_DURATION;
		scene_alloc(&scene, thread, time_ns + 50, 0, 1);
	}
	scene_close(&scene);
	return 0;
}

static int end(void **state)
{
	(void)state;
	return unlink(path);
}

/* ---- a reader ---- */

static xheap_trace *trace_open(void)
{
	xheap_trace *trace;
	assert_int_equal(xheap_trace_open(path, NULL, &trace, NULL), XHEAP_OK);
	return trace;
}

static struct ArrowArrayStream stream_open(xheap_trace *trace, const xheap_query *query)
{
	struct ArrowArrayStream stream;
	xheap_error error;
	if (xheap_query_arrow(trace, query, &stream, &error) != XHEAP_OK)
		fail_msg("%s", error.text);
	return stream;
}

static xheap_query query_of(uint32_t table, uint32_t batch_rows)
{
	xheap_query query;
	xheap_query_init(&query, sizeof(query));
	query.table = table;
	query.batch_rows = batch_rows;
	return query;
}

static bool is_absent(const struct ArrowArray *array, int64_t row)
{
	const uint8_t *validity = array->buffers[0];
	return validity && !(validity[row / 8] >> row % 8 & 1);
}

static int64_t number_of(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t row)
{
	const void *values = array->buffers[1];
	switch (*schema->format) {
	case 'C':
		return ((const uint8_t *)values)[row];
	case 'i':
		return ((const int32_t *)values)[row];
	case 'I':
		return ((const uint32_t *)values)[row];
	case 'b':
		return ((const uint8_t *)values)[row / 8] >> row % 8 & 1;
	default:
		return ((const int64_t *)values)[row];
	}
}

struct piece {
	const char *data;
	size_t size;
};

static struct piece text_of(const struct ArrowSchema *schema, const struct ArrowArray *array, int64_t row)
{
	if (schema->dictionary)
		return text_of(schema->dictionary, array->dictionary, number_of(schema, array, row));
	const int32_t *near = array->buffers[1];
	const int64_t *far = array->buffers[1];
	bool is_far = *schema->format == 'U';
	int64_t from = is_far ? far[row] : near[row], to = is_far ? far[row + 1] : near[row + 1];
	return (struct piece){(const char *)array->buffers[2] + from, (size_t)(to - from)};
}

static void check_text(struct piece text)
{
	for (size_t at = 0; at < text.size;) {
		unsigned length = text_utf8_length((const unsigned char *)text.data + at);
		assert_true(length && at + length <= text.size);
		at += length;
	}
}

/* All that the interface demands of an array of this type. */
static void check_array(const struct ArrowSchema *schema, const struct ArrowArray *array)
{
	bool is_text = *schema->format == 'u' || *schema->format == 'U';
	int64_t absent = 0;
	assert_non_null(array->release);
	assert_int_equal(array->offset, 0);
	assert_int_equal(array->n_buffers, is_text ? 3 : 2);
	assert_int_equal(array->n_children, 0);
	assert_true(array->buffers[1] && (uintptr_t)array->buffers[1] % 64 == 0);
	assert_int_equal(!schema->dictionary, !array->dictionary);
	if (array->dictionary)
		check_array(schema->dictionary, array->dictionary);
	for (int64_t row = 0; row < array->length; row++) {
		absent += is_absent(array, row);
		if (schema->dictionary && !is_absent(array, row))
			assert_in_range(number_of(schema, array, row), 0, array->dictionary->length - 1);
		if (is_text)
			check_text(text_of(schema, array, row));
	}
	assert_int_equal(array->null_count, absent);
	assert_true(!absent || schema->flags & ARROW_FLAG_NULLABLE);
}

static void check_batch(const struct ArrowSchema *schema, const struct ArrowArray *batch)
{
	assert_string_equal(schema->format, "+s");
	assert_int_equal(batch->n_buffers, 1);
	assert_null(batch->buffers[0]);
	assert_int_equal(batch->null_count, 0);
	assert_int_equal(batch->n_children, schema->n_children);
	for (int64_t i = 0; i < batch->n_children; i++) {
		assert_int_equal(batch->children[i]->length, batch->length);
		check_array(schema->children[i], batch->children[i]);
	}
}

/* All rows of a stream. */
struct reading {
	struct ArrowSchema schema;
	struct ArrowArray batches[BATCHES_MOST];
	uint32_t batch_count;
	int64_t rows;
};

static struct reading *read_all(struct ArrowArrayStream *stream)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	assert_int_equal(stream->get_schema(stream, &reading->schema), 0);
	for (;;) {
		struct ArrowArray *batch = &reading->batches[reading->batch_count];
		assert_int_equal(stream->get_next(stream, batch), 0);
		if (!batch->release)
			break;
		check_batch(&reading->schema, batch);
		assert_true(batch->length > 0);
		reading->rows += batch->length;
		reading->batch_count++;
		assert_true(reading->batch_count < BATCHES_MOST);
	}
	return reading;
}

static void reading_free(struct reading *reading)
{
	for (uint32_t i = 0; i < reading->batch_count; i++)
		reading->batches[i].release(&reading->batches[i]);
	reading->schema.release(&reading->schema);
	free(reading);
}

static struct reading *read_table(xheap_trace *trace, const xheap_query *query)
{
	struct ArrowArrayStream stream = stream_open(trace, query);
	struct reading *reading = read_all(&stream);
	stream.release(&stream);
	assert_null(stream.release);
	return reading;
}

static int64_t column_at(const struct reading *reading, const char *name)
{
	for (int64_t i = 0; i < reading->schema.n_children; i++)
		if (!strcmp(reading->schema.children[i]->name, name))
			return i;
	fail_msg("no column %s", name);
	return 0;
}

/* The array with a row of all rows, and the row's place in it. */
static const struct ArrowArray *find(const struct reading *reading, const char *name, int64_t *row)
{
	uint32_t i = 0;
	for (; *row >= reading->batches[i].length; i++)
		*row -= reading->batches[i].length;
	return reading->batches[i].children[column_at(reading, name)];
}

static bool has(const struct reading *reading, const char *name, int64_t row)
{
	const struct ArrowArray *array = find(reading, name, &row);
	return !is_absent(array, row);
}

static int64_t number(const struct reading *reading, const char *name, int64_t row)
{
	const struct ArrowArray *array = find(reading, name, &row);
	assert_false(is_absent(array, row));
	return number_of(reading->schema.children[column_at(reading, name)], array, row);
}

static void expect_text(const struct reading *reading, const char *name, int64_t row, const char *wanted)
{
	const struct ArrowArray *array = find(reading, name, &row);
	assert_false(is_absent(array, row));
	struct piece text = text_of(reading->schema.children[column_at(reading, name)], array, row);
	assert_int_equal(text.size, strlen(wanted));
	assert_memory_equal(text.data, wanted, text.size);
}

static void expect_id(const struct reading *reading, const char *name, int64_t row, uint32_t id)
{
	assert_int_equal(has(reading, name, row), id != XHEAP_NONE);
	if (id != XHEAP_NONE)
		assert_int_equal(number(reading, name, row), id);
}

/* ---- the values of the other calls ---- */

static void allocation_test(xheap_trace *trace, const struct reading *reading, const xheap_allocation *wanted,
			    int64_t row)
{
	static const char *const ends[] = {"free", "realloc", "destroy", "gap", "conflict", "exit", "open"};
	bool is_earlier = wanted->flags & XHEAP_ALLOCATION_EARLIER;
	assert_int_equal(number(reading, "id", row), wanted->number);
	assert_int_equal(number(reading, "size", row), wanted->size);
	assert_int_equal(number(reading, "address", row), wanted->address);
	assert_int_equal(number(reading, "flags", row), wanted->flags);
	expect_text(reading, "end_kind", row, ends[wanted->end]);
	assert_int_equal(has(reading, "birth_ns", row), !is_earlier);
	if (!is_earlier)
		assert_int_equal(number(reading, "birth_ns", row), wanted->birth_ns);
	assert_int_equal(has(reading, "end_ns", row), wanted->end != XHEAP_END_OPEN);
	if (wanted->end != XHEAP_END_OPEN)
		assert_int_equal(number(reading, "end_ns", row), wanted->end_ns);
	expect_id(reading, "stack_id", row, wanted->stack ? wanted->stack : XHEAP_NONE);
	expect_id(reading, "free_stack_id", row, wanted->end_stack ? wanted->end_stack : XHEAP_NONE);
	expect_id(reading, "thread_id", row, is_earlier ? XHEAP_NONE : wanted->thread);
	expect_id(reading, "free_thread_id", row, wanted->end_thread);
	expect_id(reading, "heap_id", row, wanted->heap);
	expect_id(reading, "previous_id", row, wanted->previous);
	expect_id(reading, "function_id", row, wanted->function);
	if (wanted->function != XHEAP_NONE)
		expect_text(reading, "function", row, xheap_trace_get_function(trace, wanted->function)->name);
}

static void test_allocations(void **state)
{
	xheap_trace *trace = trace_open();
	xheap_allocations *all;
	const xheap_allocation *wanted;
	(void)state;
	for (unsigned size = 1; size < 1 << 17; size = size * 8 - 1) {
		xheap_query query = query_of(XHEAP_TABLE_ALLOCATION, size);
		struct reading *reading = read_table(trace, &query);
		int64_t row = 0;
		assert_int_equal(xheap_allocations_open(trace, NULL, &all, NULL), XHEAP_OK);
		for (; xheap_allocations_next(all, &wanted, NULL) == XHEAP_OK; row++)
			allocation_test(trace, reading, wanted, row);
		xheap_allocations_close(all);
		assert_int_equal(reading->rows, row);
		assert_true(row > BLOCKS && reading->batch_count == (row + size - 1) / size);
		reading_free(reading);
	}
	xheap_trace_close(trace);
}

static void event_test(xheap_trace *trace, const struct reading *reading, const xheap_event *wanted, int64_t row)
{
	assert_int_equal(number(reading, "seq", row), wanted->number);
	assert_int_equal(number(reading, "time_ns", row), wanted->time_ns);
	assert_int_equal(number(reading, "process", row), wanted->process);
	assert_int_equal(number(reading, "flags", row), wanted->flags);
	expect_text(reading, "action", row, xheap_kind_name(wanted->kind));
	assert_int_equal(has(reading, "duration_ns", row), !(wanted->flags & XHEAP_EVENT_NO_DURATION));
	assert_int_equal(has(reading, "tid", row), wanted->tid != 0);
	if (wanted->tid)
		assert_int_equal(number(reading, "thread_id", row), wanted->thread);
	assert_int_equal(has(reading, "address", row), wanted->address != 0);
	bool has_stack = wanted->stack && !(wanted->flags & XHEAP_EVENT_NO_STACK);
	expect_id(reading, "stack_id", row, has_stack ? wanted->stack : XHEAP_NONE);
	if (!has(reading, "function_id", row))
		return;
	assert_int_equal(number(reading, "function_id", row), wanted->function);
	expect_text(reading, "function", row, xheap_trace_get_function(trace, wanted->function)->name);
}

static void test_events(void **state)
{
	xheap_trace *trace = trace_open();
	xheap_events_options options;
	xheap_filter filter;
	xheap_events *all;
	const xheap_event *wanted;
	(void)state;
	xheap_events_options_init(&options, sizeof(options));
	xheap_filter_init(&filter, sizeof(filter));
	for (unsigned i = 0; i < 2; i++) {
		xheap_query query = query_of(XHEAP_TABLE_EVENT, i ? 100 : 0);
		query.filter = &filter;
		struct reading *reading = read_table(trace, &query);
		int64_t row = 0;
		assert_int_equal(xheap_events_open(trace, &options, &all, NULL), XHEAP_OK);
		for (; xheap_events_next(all, &wanted, NULL) == XHEAP_OK; row++)
			event_test(trace, reading, wanted, row);
		xheap_events_close(all);
		assert_true(row > 100 && reading->rows == row);
		reading_free(reading);
		options.from_ns = filter.from_ns = 20000;
		options.to_ns = filter.to_ns = 30000;
	}
	xheap_trace_close(trace);
}

/* Rows that the filter lets pass are those of the iterator. */
static void test_filters(void **state)
{
	xheap_trace *trace = trace_open();
	xheap_filter filter;
	uint32_t tid = 200;
	const char *frame = "app+0x3000";
	(void)state;
	for (unsigned i = 0; i < 7; i++) {
		xheap_filter_init(&filter, sizeof(filter));
		filter.from_ns = i == 1 || i == 3 ? 10000 : INT64_MIN;
		filter.to_ns = i == 2 || i == 3 ? 50000 : INT64_MAX;
		filter.size_from = i == 4 ? UINT64_MAX : 0;
		filter.tids = i == 5 ? &tid : NULL;
		filter.tid_count = i == 5;
		filter.require_frames = i == 6 ? &frame : NULL;
		filter.require_frame_count = i == 6;
		xheap_query query = query_of(XHEAP_TABLE_ALLOCATION, 0);
		query.filter = &filter;
		struct reading *reading = read_table(trace, &query);
		xheap_allocations *all;
		const xheap_allocation *wanted;
		int64_t row = 0;
		assert_int_equal(xheap_allocations_open(trace, &filter, &all, NULL), XHEAP_OK);
		for (; xheap_allocations_next(all, &wanted, NULL) == XHEAP_OK; row++)
			allocation_test(trace, reading, wanted, row);
		xheap_allocations_close(all);
		assert_int_equal(reading->rows, row);
		assert_int_equal(row == 0, i == 4);
		reading_free(reading);
	}
	xheap_trace_close(trace);
}

/* ---- stacks, and the other lists ---- */

static void stack_text(const struct reading *stacks, const struct reading *frames, uint32_t stack, char *to,
		       size_t size)
{
	const char *separator = "";
	*to = 0;
	for (int64_t row = stack - 1;; row = number(stacks, "parent", row) - 1, separator = ";") {
		int64_t frame = number(stacks, "frame", row);
		assert_int_equal(number(stacks, "id", row), row + 1);
		assert_int_equal(number(frames, "id", frame), frame);
		const struct ArrowArray *names = find(frames, "name", &frame);
		struct piece text = text_of(frames->schema.children[column_at(frames, "name")], names, frame);
		size_t used = strlen(to);
		snprintf(to + used, size - used, "%s%.*s", separator, (int)text.size, text.data);
		if (!has(stacks, "parent", row))
			return;
	}
}

static void test_stacks(void **state)
{
	xheap_trace *trace = trace_open();
	xheap_query of_stacks = query_of(XHEAP_TABLE_STACK, 2), of_frames = query_of(XHEAP_TABLE_FRAME, 3);
	const char *columns[] = {"stack", "frame", "id", "parent"},
		   *texts[] = {"stack", "free_stack", "stack_id", "caller"};
	(void)state;
	of_stacks.columns = columns;
	of_stacks.column_count = 4;
	struct reading *stacks = read_table(trace, &of_stacks), *frames = read_table(trace, &of_frames);
	assert_int_equal(stacks->rows, xheap_trace_get_info(trace)->stack_count - 1);
	assert_int_equal(stacks->schema.n_children, 4);
	char text[1000];
	for (uint32_t stack = 1; stack <= stacks->rows; stack++) {
		stack_text(stacks, frames, stack, text, sizeof(text));
		expect_text(stacks, "stack", stack - 1, text);
	}
	xheap_query of_blocks = query_of(XHEAP_TABLE_ALLOCATION, 0);
	of_blocks.columns = texts;
	of_blocks.column_count = 4;
	struct reading *blocks = read_table(trace, &of_blocks);
	for (int64_t row = 0; row < blocks->rows; row++) {
		assert_int_equal(has(blocks, "stack", row), has(blocks, "stack_id", row));
		if (!has(blocks, "stack_id", row))
			continue;
		stack_text(stacks, frames, (uint32_t)number(blocks, "stack_id", row), text, sizeof(text));
		expect_text(blocks, "stack", row, text);
		/* The program has no code of libraries: the innermost frame is its own. */
		text[strcspn(text, ";")] = 0;
		expect_text(blocks, "caller", row, text);
	}
	reading_free(blocks);
	reading_free(stacks);
	reading_free(frames);
	xheap_trace_close(trace);
}

static void test_lists(void **state)
{
	xheap_trace *trace = trace_open();
	const xheap_trace_info *info = xheap_trace_get_info(trace);
	const uint32_t counts[] = {[XHEAP_TABLE_FUNCTION] = info->function_count,
				   [XHEAP_TABLE_THREAD] = info->thread_count,
				   [XHEAP_TABLE_PROCESS] = info->process_count,
				   [XHEAP_TABLE_HEAP] = info->heap_count,
				   [XHEAP_TABLE_IMAGE] = info->image_count};
	(void)state;
	for (uint32_t table = XHEAP_TABLE_FUNCTION; table < XHEAP_TABLE_COUNT; table++) {
		xheap_query query = query_of(table, 1);
		struct reading *reading = read_table(trace, &query);
		assert_int_equal(reading->rows, counts[table]);
		for (uint32_t i = 0; i < counts[table]; i++)
			assert_int_equal(number(reading, "id", i), i);
		if (table == XHEAP_TABLE_THREAD) {
			expect_text(reading, "thread", 0, "pid 100 thread 100 worker");
			assert_int_equal(number(reading, "tid", 1), 200);
			assert_true(!has(reading, "pid", 1) && !has(reading, "tid", 2));
		}
		if (table == XHEAP_TABLE_FUNCTION)
			expect_text(reading, "name", 0, xheap_trace_get_function(trace, 0)->name);
		reading_free(reading);
	}
	xheap_trace_close(trace);
}

/* ---- plans ---- */

static struct reading *run_plan(xheap_trace *trace, const xheap_plan *plan)
{
	xheap_query query = query_of(XHEAP_TABLE_COUNT - 1, 0);
	query.plan = plan;
	query.table = XHEAP_TABLE_ALLOCATION;
	return read_table(trace, &query);
}

/* Bytes of freed blocks by thread, most first, with a factor for each thread. */
static void test_plan_groups(void **state)
{
	xheap_trace *trace = trace_open();
	xheap_plan *plan;
	const uint64_t factors[] = {10, 20};
	uint64_t sums[2] = {0}, counts[2] = {0};
	xheap_allocations *all;
	const xheap_allocation *wanted;
	(void)state;
	assert_int_equal(xheap_plan_new(XHEAP_TABLE_ALLOCATION, &plan, NULL), XHEAP_OK);
	uint32_t end_kind = xheap_plan_column(plan, "end_kind"), thread = xheap_plan_column(plan, "thread"),
		 size = xheap_plan_column(plan, "size");
	xheap_plan_filter(plan,
			  xheap_plan_apply(plan, "==", end_kind, xheap_plan_word(plan, end_kind, "free"), XHEAP_NONE));
	uint32_t bytes = xheap_plan_aggregate(plan, "sum", size, NULL);
	xheap_plan_key(plan, thread, NULL);
	uint32_t factor = xheap_plan_lookup(plan, xheap_plan_column(plan, "thread_id"), factors, 2);
	xheap_plan_aggregate(plan, "sum", xheap_plan_apply(plan, "*", size, factor, XHEAP_NONE), "weighed");
	xheap_plan_aggregate(plan, "count", XHEAP_NONE, NULL);
	xheap_plan_aggregate(plan, "average", size, NULL);
	xheap_plan_key(plan, xheap_plan_column(plan, "thread_id"), NULL);
	xheap_plan_order(plan, bytes, 1);
	struct reading *reading = run_plan(trace, plan);
	xheap_plan_free(plan);
	assert_int_equal(xheap_allocations_open(trace, NULL, &all, NULL), XHEAP_OK);
	while (xheap_allocations_next(all, &wanted, NULL) == XHEAP_OK)
		if (wanted->end == XHEAP_END_FREE) {
			sums[wanted->thread] += wanted->size;
			counts[wanted->thread]++;
		}
	xheap_allocations_close(all);
	assert_int_equal(reading->rows, 2);
	for (int64_t row = 0; row < 2; row++) {
		uint32_t id = (uint32_t)number(reading, "thread_id", row);
		expect_text(reading, "thread", row, id ? "pid - thread 200 worker" : "pid 100 thread 100 worker");
		assert_int_equal(number(reading, "sum_size", row), sums[id]);
		assert_int_equal(number(reading, "weighed", row), sums[id] * factors[id]);
		assert_int_equal(number(reading, "count", row), counts[id]);
		assert_string_equal(reading->schema.children[column_at(reading, "average_size")]->format, "g");
	}
	assert_true(number(reading, "sum_size", 0) >= number(reading, "sum_size", 1));
	assert_string_equal(reading->schema.children[0]->name, "sum_size");
	reading_free(reading);
	xheap_trace_close(trace);
}

static void test_plan_rows(void **state)
{
	xheap_trace *trace = trace_open();
	xheap_plan *plan;
	(void)state;
	assert_int_equal(xheap_plan_new(XHEAP_TABLE_ALLOCATION, &plan, NULL), XHEAP_OK);
	uint32_t size = xheap_plan_column(plan, "size"), end = xheap_plan_column(plan, "end_ns"),
		 is_open = xheap_plan_apply(plan, "is absent", end, XHEAP_NONE, XHEAP_NONE);
	xheap_plan_output(plan, xheap_plan_column(plan, "id"), "a");
	xheap_plan_order(plan, xheap_plan_output(plan, size, "b"), 1);
	xheap_plan_output(plan, is_open, NULL);
	xheap_plan_output(plan, xheap_plan_apply(plan, "/", size, xheap_plan_number(plan, 0), XHEAP_NONE), "d");
	xheap_plan_output(plan, size, "b again");
	xheap_plan_limit(plan, 1, 3);
	struct reading *reading = run_plan(trace, plan);
	assert_int_equal(reading->rows, 3);
	for (int64_t row = 0; row < 3; row++) {
		assert_int_equal(number(reading, "b", row), 3 * (BLOCKS - 2 - row));
		assert_int_equal(number(reading, "b again", row), number(reading, "b", row));
		assert_true(number(reading, "column_3", row) <= 1);
		assert_false(has(reading, "d", row));
	}
	reading_free(reading);
	/* One row, and none. */
	xheap_plan_limit(plan, 0, 1);
	reading = run_plan(trace, plan);
	assert_int_equal(reading->rows, 1);
	reading_free(reading);
	xheap_plan_limit(plan, 0, 0);
	reading = run_plan(trace, plan);
	assert_int_equal(reading->rows, 0);
	assert_int_equal(reading->schema.n_children, 5);
	reading_free(reading);
	xheap_plan_free(plan);
	xheap_trace_close(trace);
}

/* A plan that is changed, and freed, while a stream of it is open. */
static void test_plan_outlived(void **state)
{
	xheap_trace *trace = trace_open();
	xheap_plan *plan;
	const uint64_t values[] = {7, 8, 9};
	(void)state;
	assert_int_equal(xheap_plan_new(XHEAP_TABLE_EVENT, &plan, NULL), XHEAP_OK);
	uint32_t thread = xheap_plan_column(plan, "thread_id");
	xheap_plan_output(plan, xheap_plan_lookup(plan, thread, values, 3), "value");
	xheap_query query = query_of(0, 50);
	query.plan = plan;
	struct ArrowArrayStream stream = stream_open(trace, &query);
	xheap_plan_output(plan, thread, NULL);
	xheap_plan_limit(plan, 0, 1);
	xheap_plan_free(plan);
	struct reading *reading = read_all(&stream);
	assert_true(reading->rows > BLOCKS && reading->schema.n_children == 1);
	assert_in_range(number(reading, "value", 5), 7, 8);
	stream.release(&stream);
	reading_free(reading);
	xheap_trace_close(trace);
}

/* ---- mistakes ---- */

static void expect_refused(xheap_trace *trace, const xheap_query *query, const char *reason)
{
	struct ArrowArrayStream stream;
	xheap_error error;
	memset(&stream, 0xff, sizeof(stream));
	assert_int_equal(xheap_query_arrow(trace, query, &stream, &error), XHEAP_INVALID);
	assert_null(stream.release);
	if (!strstr(error.text, reason))
		fail_msg("'%s' does not say '%s'", error.text, reason);
}

static void test_refused_queries(void **state)
{
	xheap_trace *trace = trace_open();
	xheap_filter filter;
	const char *wrong[] = {"size", "sighs"}, *twice[] = {"size", "size"}, *none[] = {NULL};
	(void)state;
	xheap_filter_init(&filter, sizeof(filter));
	xheap_query query = query_of(XHEAP_TABLE_COUNT, 0);
	expect_refused(trace, &query, "no table");
	query = query_of(XHEAP_TABLE_EVENT, (1 << 24) + 1);
	expect_refused(trace, &query, "batch_rows");
	for (uint32_t table = 0; table < XHEAP_TABLE_COUNT; table++) {
		query = query_of(table, 0);
		query.columns = wrong;
		query.column_count = 2;
		expect_refused(trace, &query, table <= XHEAP_TABLE_EVENT ? "no column 'sighs'" : "no column 'size'");
		query.columns = none;
		query.column_count = 1;
		expect_refused(trace, &query, "column 0 is NULL");
		query.columns = NULL;
		expect_refused(trace, &query, "no names");
	}
	query = query_of(XHEAP_TABLE_ALLOCATION, 0);
	query.columns = twice;
	query.column_count = 2;
	expect_refused(trace, &query, "two columns");
	query = query_of(XHEAP_TABLE_STACK, 0);
	query.filter = &filter;
	expect_refused(trace, &query, "only allocations and events");
	query = query_of(XHEAP_TABLE_EVENT, 0);
	query.filter = &filter;
	filter.size_from = 1;
	expect_refused(trace, &query, "from_ns and to_ns only");
	query.table = XHEAP_TABLE_ALLOCATION;
	filter.size_to = 0;
	expect_refused(trace, &query, "ends before it begins");
	query.size = 1;
	expect_refused(trace, &query, "_init");
	xheap_trace_close(trace);
}

/* The first reason is kept, whatever follows. */
static void test_refused_plans(void **state)
{
	xheap_trace *trace = trace_open();
	xheap_plan *plan;
	xheap_error error;
	const char *columns[] = {"size"};
	(void)state;
	assert_int_equal(xheap_plan_new(XHEAP_TABLE_STACK, &plan, &error), XHEAP_INVALID);
	assert_null(plan);
	static const struct {
		const char *reason, *column, *operation, *word, *kind;
	} cases[] = {
		{"no column 'sighs'", "sighs", "+", "free", "sum"},
		{"no column '(NULL)'", NULL, "+", "free", "sum"},
		{"no operation 'plus'", "size", "plus", "free", "sum"},
		{"'&&' does not take", "size", "&&", "free", "sum"},
		{"'gone' is no word of end_kind", "size", "+", "gone", "sum"},
		{"no kind 'summe'", "size", "+", "free", "summe"},
	};
	xheap_query query = query_of(0, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(xheap_plan_new(XHEAP_TABLE_ALLOCATION, &plan, NULL), XHEAP_OK);
		query.plan = plan;
		expect_refused(trace, &query, "neither outputs nor keys");
		uint32_t column = xheap_plan_column(plan, cases[i].column);
		uint32_t sum = xheap_plan_apply(plan, cases[i].operation, column, column, XHEAP_NONE);
		xheap_plan_word(plan, xheap_plan_column(plan, "end_kind"), cases[i].word);
		xheap_plan_key(plan, column, NULL);
		xheap_plan_aggregate(plan, cases[i].kind, sum, NULL);
		expect_refused(trace, &query, cases[i].reason);
		xheap_plan_free(plan);
	}
	assert_int_equal(xheap_plan_new(XHEAP_TABLE_ALLOCATION, &plan, NULL), XHEAP_OK);
	query.plan = plan;
	xheap_plan_output(plan, xheap_plan_column(plan, "size"), NULL);
	query.columns = columns;
	query.column_count = 1;
	expect_refused(trace, &query, "name none");
	query.columns = NULL;
	query.column_count = 0;
	xheap_plan_order(plan, 1, 0);
	expect_refused(trace, &query, "no column 1");
	xheap_plan_free(plan);
	xheap_plan_free(NULL);
	assert_int_equal(xheap_plan_column(NULL, "size"), XHEAP_NONE);
	xheap_trace_close(trace);
}

static void test_read_twice(void **state)
{
	xheap_trace *trace = trace_open();
	struct ArrowArrayStream stream = stream_open(trace, NULL);
	struct ArrowArray batch;
	(void)state;
	assert_null(stream.get_last_error(&stream));
	reading_free(read_all(&stream));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(stream.get_next(&stream, &batch), EINVAL);
		assert_null(batch.release);
		assert_non_null(strstr(stream.get_last_error(&stream), "can be read once"));
	}
	struct ArrowSchema schema;
	assert_int_equal(stream.get_schema(&stream, &schema), 0);
	schema.release(&schema);
	stream.release(&stream);
	xheap_trace_close(trace);
}

/* ---- lives ---- */

static void *release_all(void *context)
{
	struct ArrowArray *arrays = context;
	for (unsigned i = 0; i < 3; i++) {
		for (int64_t row = 0; row < arrays[i].length; row++)
			is_absent(&arrays[i], row);
		arrays[i].release(&arrays[i]);
		assert_null(arrays[i].release);
	}
	return NULL;
}

/* Everything is released in the wrong order, elsewhere, and in another thread; parts go their own ways. */
static void test_lives(void **state)
{
	xheap_trace *trace = trace_open();
	xheap_query query = query_of(XHEAP_TABLE_ALLOCATION, 100);
	struct ArrowArrayStream first = stream_open(trace, &query), moved = first;
	struct ArrowSchema schema, child_schema;
	struct ArrowArray batch, children[3];
	pthread_t thread;
	(void)state;
	xheap_trace_close(trace);
	memset(&first, 0xff, sizeof(first));
	assert_int_equal(moved.get_schema(&moved, &schema), 0);
	assert_int_equal(moved.get_next(&moved, &batch), 0);
	int64_t functions = -1;
	for (int64_t i = 0; i < schema.n_children; i++)
		functions = strcmp(schema.children[i]->name, "function") ? functions : i;
	/* A child with a list of texts, that list, and a child without one. */
	children[0] = *batch.children[functions];
	batch.children[functions]->release = NULL;
	children[1] = *children[0].dictionary;
	children[0].dictionary->release = NULL;
	children[2] = *batch.children[0];
	batch.children[0]->release = NULL;
	child_schema = *schema.children[functions];
	schema.children[functions]->release = NULL;
	schema.release(&schema);
	struct ArrowArray elsewhere = batch;
	elsewhere.release(&elsewhere);
	moved.release(&moved);
	check_text(text_of(child_schema.dictionary, &children[1], 0));
	assert_string_equal(child_schema.name, "function");
	child_schema.release(&child_schema);
	assert_int_equal(pthread_create(&thread, NULL, release_all, children), 0);
	pthread_join(thread, NULL);
}

static void *read_in_thread(void *context)
{
	struct ArrowArrayStream *stream = context;
	struct reading *reading = read_all(stream);
	int64_t rows = reading->rows;
	reading_free(reading);
	stream->release(stream);
	return (void *)(intptr_t)rows;
}

/* Several streams of one trace at once, opened here and read there. */
static void test_threads(void **state)
{
	enum { THREADS = 12, KINDS = 3 };
	static const uint32_t tables[KINDS] = {XHEAP_TABLE_ALLOCATION, XHEAP_TABLE_FRAME, XHEAP_TABLE_EVENT};
	xheap_trace *trace = trace_open();
	struct ArrowArrayStream streams[THREADS];
	pthread_t threads[THREADS];
	void *rows[THREADS];
	const char *texts[] = {"stack", "thread", "size"};
	(void)state;
	for (unsigned i = 0; i < THREADS; i++) {
		xheap_query query = query_of(tables[i % KINDS], 64);
		query.columns = texts;
		query.column_count = query.table == XHEAP_TABLE_FRAME ? 0 : 3;
		streams[i] = stream_open(trace, &query);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_in_thread, &streams[i]), 0);
	xheap_trace_close(trace);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], &rows[i]);
	for (unsigned i = KINDS; i < THREADS; i++)
		assert_ptr_equal(rows[i], rows[i - KINDS]);
}

/* A stream that was opened and never read. */
static void test_unread(void **state)
{
	xheap_trace *trace = trace_open();
	(void)state;
	for (uint32_t table = 0; table < XHEAP_TABLE_COUNT; table++) {
		xheap_query query = query_of(table, 0);
		struct ArrowArrayStream stream = stream_open(trace, &query);
		stream.release(&stream);
	}
	xheap_trace_close(trace);
}

/* ---- texts ---- */

static void test_texts(void **state)
{
	static const char *const given[] = {
		"plain", "", "\xc3\xa4", "\xff", "a\xc3", "\xed\xa0\x80", "0123456789abcdef\xff.123456789", NULL};
	static const char *const wanted[] = {"plain",
					     "",
					     "\xc3\xa4",
					     "\xef\xbf\xbd",
					     "a\xef\xbf\xbd",
					     "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
					     "0123456789abcdef\xef\xbf\xbd.123456789"};
	struct arrow_field fields[] = {{.name = (char *)"near", .kind = ARROW_TEXT, .is_nullable = true},
				       {.name = (char *)"far", .kind = ARROW_LONG_TEXT, .is_nullable = true}};
	struct arrow_column columns[2];
	struct ArrowSchema schema;
	struct ArrowArray batch;
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		arrow_column_begin(&columns[k], &fields[k], 8);
		for (unsigned i = 0; i < 8; i++)
			arrow_put_text(&columns[k], given[i]);
	}
	arrow_array_make(&batch, columns, 2);
	arrow_schema_make(&schema, fields, 2, NULL, 0);
	check_batch(&schema, &batch);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < 7; i++) {
			struct piece text = text_of(schema.children[k], batch.children[k], i);
			assert_int_equal(text.size, strlen(wanted[i]));
			assert_memory_equal(text.data, wanted[i], text.size);
		}
	assert_true(is_absent(batch.children[0], 7) && batch.children[1]->null_count == 1);
	batch.release(&batch);
	schema.release(&schema);
}

/* Texts of a list that read alike are one of it. */
static void test_words(void **state)
{
	static const char *const given[] = {"a\xff", "b", "a\xfe", NULL, "b"};
	static const int32_t wanted[] = {0, 1, 0, -1, 1, -1};
	struct arrow_field field = {.name = (char *)"word", .kind = ARROW_WORD, .is_nullable = true};
	struct arrow_column column;
	struct ArrowSchema schema;
	struct ArrowArray batch;
	(void)state;
	field.words = arrow_words_new(5);
	for (uint32_t i = 0; i < 5; i++)
		arrow_words_set(field.words, i, given[i]);
	arrow_column_begin(&column, &field, 6);
	for (uint32_t i = 0; i < 6; i++)
		arrow_put(&column, i);
	arrow_array_make(&batch, &column, 1);
	arrow_schema_make(&schema, &field, 1, NULL, 0);
	arrow_words_release(field.words);
	check_batch(&schema, &batch);
	const struct ArrowArray *words = batch.children[0];
	assert_int_equal(words->dictionary->length, 2);
	for (int64_t i = 0; i < 6; i++)
		if (wanted[i] < 0)
			assert_true(is_absent(words, i));
		else
			assert_int_equal(number_of(schema.children[0], words, i), wanted[i]);
	batch.release(&batch);
	schema.release(&schema);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allocations),     cmocka_unit_test(test_events),
		cmocka_unit_test(test_filters),         cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_lists),           cmocka_unit_test(test_plan_groups),
		cmocka_unit_test(test_plan_rows),       cmocka_unit_test(test_plan_outlived),
		cmocka_unit_test(test_refused_queries), cmocka_unit_test(test_refused_plans),
		cmocka_unit_test(test_read_twice),      cmocka_unit_test(test_lives),
		cmocka_unit_test(test_threads),         cmocka_unit_test(test_unread),
		cmocka_unit_test(test_texts),           cmocka_unit_test(test_words),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
