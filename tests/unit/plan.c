/* SPDX-License-Identifier: MIT */
/*
 * Plans: some hundreds of generated ones, each run over columns and row by row (plan/plan.h), with the same rows; the
 * numbers of reports as plans; and what is said of limits, cancelling, overflow and full memory.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "match/match.h"
#include "match/moment.h"
#include "plan/run.h"
#include "plan_naive.h"
#include "query/window.h"
#include "rounds.h"
#include "scene.h"
#include "table/index_file.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"

enum { EVENTS = 9000, BLOCKS = 600, PLANS = 600, STACKS = 12, TIMES = 20 * EVENTS };

static const char path[] = "plan.xht", index_path[] = "plan.index";
static struct diag diag;
static struct plan_target target;
static struct trace *trace;
static struct heap_table *table, *indexed; /* in memory, and from an index */

/* ---- the trace ---- */

static uint64_t seed = 88172645463325252u;

static uint64_t random_below(uint64_t most)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % most;
}

static void events_make(struct scene *scene, const uint32_t threads[4], const uint32_t stacks[STACKS])
{
	bool is_live[BLOCKS] = {false};
	for (uint32_t i = 0; i < EVENTS; i++) {
		uint32_t at = (uint32_t)random_below(BLOCKS), thread = threads[at % 2 + (at % 7 ? 0 : 2)];
		uint64_t address = 0x10000 + 0x2000 * (uint64_t)at, size = random_below(i % 50 ? 512 : 1 << 20);
		int64_t time_ns = 20 * (int64_t)i + 10;
		scene->stack = random_below(9) ? stacks[random_below(STACKS)] : 0;
		if (is_live[at] && random_below(4) == 0) {
			scene_realloc(scene, thread, time_ns, time_ns + 5, address, address, size);
			continue;
		}
		scene->flags = !is_live[at] && random_below(40) == 0 ? EVENT_FAILED : 0;
		bool has_failed = scene->flags;
		if (is_live[at])
			scene_free(scene, thread, time_ns, address);
		else
			scene_alloc(scene, thread, time_ns, has_failed ? 0 : address, size);
		is_live[at] = !is_live[at] && !has_failed;
	}
}

static int begin(void **state)
{
	struct scene scene;
	uint32_t stacks[STACKS];
	(void)state;
	scene_open(&scene, path);
	uint32_t processes[] = {scene_process(&scene, 100, TRACE_NONE, 0), scene_process(&scene, 0, TRACE_NONE, 0)};
	uint32_t threads[] = {scene_thread(&scene, processes[0], 100), scene_thread(&scene, processes[0], 101),
			      scene_thread(&scene, processes[1], 200), scene_thread(&scene, processes[1], 201)};
	for (uint32_t i = 0; i < STACKS; i++)
		stacks[i] = scene_stack(&scene, 0x1000, 0x2000 + 0x10 * (i % 5), 0x3000 + 0x10 * i, 0);
	uint32_t none = scene_thread(&scene, processes[0], TRACE_TID_NONE);
	for (uint64_t i = 0; i < 20; i++)
		scene_earlier(&scene, none, 5, 0x9000000 + 0x1000 * i, 100 + i);
	events_make(&scene, threads, stacks);
	scene_end(&scene, processes[0], TIMES, TRACE_END_EXIT, 0);
	trace = scene_read(&scene, path);
	table = scene_match(trace);
	assert_true(table->count > PACK_ROWS * 8);
	struct heap_build how = {.fd = heap_index_begin(".", &diag), .reserved_bytes = HEAP_INDEX_HEAD_BYTES};
	const char *paths = index_path;
	assert_int_equal(heap_table_build(&indexed, trace, &how, &diag), 0);
	assert_int_equal(heap_index_write(indexed, path, index_path, &diag), 0);
	heap_table_free(indexed);
	assert_int_equal(heap_index_read(&indexed, trace, path, &paths, 1), 0);
	target = (struct plan_target){.trace = trace, .table = table};
	return 0;
}

static int end(void **state)
{
	(void)state;
	heap_table_free(indexed);
	scene_remove(path, trace, table);
	unlink(index_path);
	return 0;
}

/* ---- generated plans ---- */

/* The nodes of a plan by type, to build others from. */
struct stock {
	uint32_t nodes[3][64];
	unsigned counts[3];
};

static void stock_add(struct stock *stock, const struct plan *plan, uint32_t node)
{
	if (node == PLAN_NOTHING)
		return;
	unsigned type = plan->nodes[node].type;
	if (stock->counts[type] < 64)
		stock->nodes[type][stock->counts[type]++] = node;
}

static uint32_t any_of(const struct stock *stock, unsigned type)
{
	return stock->counts[type] ? stock->nodes[type][random_below(stock->counts[type])] : PLAN_NOTHING;
}

static uint32_t any(const struct stock *stock)
{
	uint32_t node = any_of(stock, (unsigned)random_below(3));
	return node == PLAN_NOTHING ? any_of(stock, PLAN_NUMBER) : node;
}

static uint64_t some_number(void)
{
	static const uint64_t numbers[] = {0, 1, 2, 3, 8, 63, 64, 100, 256, 4096, 100000, UINT64_MAX, INT64_MAX};
	return numbers[random_below(sizeof(numbers) / sizeof(*numbers))];
}

static struct plan_lookup *lookups_make(void)
{
	enum { COUNT = 20 };
	static uint64_t values[COUNT], truths[COUNT];
	static bool is_absent[COUNT];
	static struct plan_lookup lookups[3];
	for (unsigned i = 0; i < COUNT; i++) {
		values[i] = some_number() >> random_below(64);
		truths[i] = random_below(2);
		is_absent[i] = random_below(4) == 0;
	}
	lookups[0] = (struct plan_lookup){PLAN_NUMBER, values, is_absent, COUNT};
	lookups[1] = (struct plan_lookup){PLAN_TRUTH, truths, NULL, COUNT};
	lookups[2] = (struct plan_lookup){PLAN_TRUTH, truths, is_absent, COUNT / 2};
	return lookups;
}

static void stock_make(struct stock *stock, struct plan *plan)
{
	struct plan_lookup *lookups = lookups_make();
	*stock = (struct stock){.counts = {0}};
	for (unsigned i = 0; i < COLUMN_COUNT; i++)
		if (random_below(3) == 0)
			stock_add(stock, plan, plan_column(plan, (enum column_id)i));
	stock_add(stock, plan, plan_column(plan, COLUMN_SIZE));
	for (unsigned i = 0; i < 4; i++) {
		stock_add(stock, plan, plan_number(plan, some_number()));
		stock_add(stock, plan, plan_time(plan, (int64_t)random_below(TIMES)));
	}
	stock_add(stock, plan, plan_truth(plan, random_below(2)));
	stock_add(stock, plan, plan_absent(plan, (enum plan_type)random_below(3)));
	for (unsigned i = (unsigned)random_below(30); i > 0; i--) {
		enum plan_operator operation =
			(enum plan_operator)(PLAN_EQUAL + random_below(PLAN_OPERATOR_COUNT - PLAN_EQUAL));
		unsigned type = (unsigned)random_below(3);
		bool is_choice = operation == PLAN_CHOOSE;
		stock_add(stock, plan,
			  plan_apply(plan, operation, any_of(stock, is_choice ? PLAN_TRUTH : type), any_of(stock, type),
				     any_of(stock, type)));
		if (random_below(6) == 0)
			stock_add(stock, plan,
				  plan_lookup(plan, any_of(stock, PLAN_NUMBER), &lookups[random_below(3)]));
	}
}

/* A filter that passes neither all nor nothing, more often than not. */
static uint32_t filter_make(struct stock *stock, struct plan *plan)
{
	bool is_of_events = plan->source == COLUMNS_OF_EVENTS;
	uint32_t time = plan_column(plan, is_of_events ? COLUMN_TIME : COLUMN_BIRTH),
		 end = plan_column(plan, COLUMN_END), at = plan_time(plan, (int64_t)random_below(TIMES)),
		 until = plan_apply(plan, PLAN_AT_MOST, time, at, PLAN_NOTHING);
	switch (random_below(6)) {
	case 0:
		return PLAN_NOTHING;
	case 1:
		return plan_apply(plan, PLAN_LESS, plan_number(plan, random_below(600)), plan_column(plan, COLUMN_SIZE),
				  PLAN_NOTHING);
	case 2:
		return plan_apply(plan, PLAN_AND, until, any_of(stock, PLAN_TRUTH), PLAN_NOTHING);
	case 3:
		if (is_of_events)
			return until;
		return plan_apply(plan, PLAN_AND, until,
				  plan_apply(plan, PLAN_OR, plan_apply(plan, PLAN_IS_ABSENT, end, 0, 0),
					     plan_apply(plan, PLAN_GREATER, end, at, 0), 0),
				  PLAN_NOTHING);
	default:
		return any_of(stock, PLAN_TRUTH);
	}
}

/* Keys of few values, and some without one. */
static void keys_replace(void *context, uint64_t *keys, uint64_t *absent)
{
	const struct plan *plan = context;
	for (uint32_t i = 0; i < plan->key_count; i++) {
		uint64_t key = (keys[i] + (*absent >> i & 1)) % 6;
		*absent = key == 5 ? *absent | UINT64_C(1) << i : *absent & ~(UINT64_C(1) << i);
		keys[i] = key == 5 ? 0 : plan_output_type(plan, i) == PLAN_TRUTH ? key & 1 : key;
	}
}

static bool group_finish(void *context, const struct plan_rows *group, uint64_t *values, uint64_t *absent)
{
	const struct plan *plan = context;
	struct plan_value value = plan_cell(group, 0, plan_width(plan) - plan->finishing->count - 1);
	assert_int_equal(group->count, 1);
	values[0] = value.is_absent ? 3 : value.number % 10;
	*absent = values[0] == 4;
	values[0] = values[0] == 4 ? 0 : values[0];
	return value.number % 3 || value.is_absent;
}

/* What is done with groups. */
static void groups_make(struct plan *plan)
{
	static struct plan_key_function regrouping;
	static struct plan_group_function finishing;
	regrouping = (struct plan_key_function){keys_replace, plan};
	finishing = (struct plan_group_function){group_finish, plan, 1};
	plan->keeps_first_order = random_below(2);
	plan->regrouping = random_below(3) ? NULL : &regrouping;
	plan->finishing = random_below(3) ? NULL : &finishing;
}

static void plan_make(struct plan *plan)
{
	struct stock stock;
	plan_init(plan, random_below(3) ? COLUMNS_OF_ALLOCATIONS : COLUMNS_OF_EVENTS);
	stock_make(&stock, plan);
	plan->filter = filter_make(&stock, plan);
	bool is_grouped = random_below(2);
	for (unsigned i = (unsigned)random_below(is_grouped ? 3 : 5) + !is_grouped; i > 0; i--)
		assert_true(is_grouped ? plan_key(plan, any(&stock)) : plan_output(plan, any(&stock)));
	for (unsigned i = (unsigned)random_below(4) + 1; is_grouped && i > 0; i--)
		plan_aggregate(plan, (enum plan_aggregate_kind)random_below(5),
			       random_below(4) ? any(&stock) : PLAN_NOTHING);
	if (is_grouped && !plan_is_grouped(plan))
		plan_aggregate(plan, PLAN_COUNT, PLAN_NOTHING);
	if (is_grouped)
		groups_make(plan);
	for (unsigned i = (unsigned)random_below(3); i > 0; i--)
		plan_order(plan, (uint32_t)random_below(plan_width(plan)), random_below(2));
	plan->skip = random_below(3) ? 0 : random_below(100);
	plan->limit = random_below(2) ? UINT64_MAX : random_below(300);
}

/* ---- comparing ---- */

/* All rows of a result, or the error that ended it. */
struct answer {
	int status;
	uint64_t *cells;
	size_t count, capacity;
};

static void answer_make(struct answer *answer, const struct plan *plan, struct plan_run *run)
{
	struct plan_rows rows;
	*answer = (struct answer){.cells = NULL};
	diag = (struct diag){""};
	while ((answer->status = plan_next(run, &rows, &diag)) > 0) {
		assert_true(rows.count > 0);
		for (uint32_t i = 0; i < rows.count; i++) {
			for (uint32_t k = 0; k < plan_width(plan); k++) {
				struct plan_value value = plan_cell(&rows, i, k);
				memory_grow(answer->cells, answer->count, answer->capacity);
				answer->cells[answer->count++] = value.is_absent ? 77 : value.number;
				memory_grow(answer->cells, answer->count, answer->capacity);
				answer->cells[answer->count++] = value.is_absent;
			}
		}
	}
	assert_int_equal(plan_next(run, &rows, &diag), answer->status);
	plan_close(run);
}

static void assert_both_same(const struct plan *plan, unsigned number)
{
	struct answer columns, naive;
	answer_make(&columns, plan, plan_open(plan, &target));
	answer_make(&naive, plan, plan_open_naive(plan, &target));
	if (columns.status != naive.status || columns.count != naive.count ||
	    (columns.count && memcmp(columns.cells, naive.cells, columns.count * sizeof(*columns.cells)) != 0))
		fail_msg("plan %u: %d, %zu cells over columns, %d, %zu row by row: %s", number, columns.status,
			 columns.count, naive.status, naive.count, diag.text);
	free(columns.cells);
	free(naive.cells);
}

static void moment_make(struct heap_filter *filter)
{
	filter->moment.is_asked = true;
	filter->moment.at = (struct position){(int64_t)random_below(TIMES), random_below(2) ? POSITION_LAST : 1};
	heap_moment_find(&filter->moment, target.table);
	assert_int_equal(heap_filter_prepare(filter, target.table, NULL, &diag), 0);
}

static void test_generated(void **state)
{
	(void)state;
	for (unsigned i = 0; i < rounds(PLANS); i++) {
		struct plan plan;
		struct heap_filter filter;
		plan_make(&plan);
		heap_filter_init(&filter);
		target.table = i % 2 ? table : indexed;
		if (i % 5 == 0 && plan.source == COLUMNS_OF_ALLOCATIONS) {
			moment_make(&filter);
			plan.allocations = &filter;
		}
		/* With a small memory, orders and groups use the file. */
		target.memory_bytes = i % 3 ? 0 : 1 << 18;
		assert_both_same(&plan, i);
		plan_fini(&plan);
		heap_filter_fini(&filter);
	}
	target.memory_bytes = 0;
	target.table = table;
}

/* The greatest and the smallest: groups whose sizes come too late are not read. */
static void test_top(void **state)
{
	(void)state;
	target.table = indexed;
	for (unsigned i = 0; i < 8; i++) {
		struct plan plan;
		plan_init(&plan, COLUMNS_OF_ALLOCATIONS);
		plan_output(&plan, plan_column(&plan, COLUMN_ID));
		plan_output(&plan, plan_column(&plan, i & 4 ? COLUMN_BIRTH : COLUMN_SIZE));
		plan_order(&plan, 1, i & 1);
		plan.limit = i & 2 ? 10 : 200;
		assert_both_same(&plan, i);
		plan_fini(&plan);
	}
	target.table = table;
}

/* ---- reports ---- */

/* The numbers that reports have of each site are those of a plan. */
static void test_reports(void **state)
{
	struct heap_filter filter;
	struct heap_window window;
	struct plan plan;
	struct plan_rows rows;
	(void)state;
	const struct heap_range range = {TIMES / 4, TIMES / 2};
	heap_filter_init_for(&filter, table);
	heap_window_make(&window, table, &filter, range, HEAP_BY_NONE);
	plan_init(&plan, COLUMNS_OF_ALLOCATIONS);
	plan.allocations = &filter;
	uint32_t birth = plan_column(&plan, COLUMN_BIRTH), size = plan_column(&plan, COLUMN_SIZE),
		 end = plan_column(&plan, COLUMN_END), kind = plan_column(&plan, COLUMN_END_KIND);
	plan.filter =
		plan_apply(&plan, PLAN_AND, plan_apply(&plan, PLAN_AT_LEAST, birth, plan_time(&plan, range.from_ns), 0),
			   plan_apply(&plan, PLAN_AT_MOST, birth, plan_time(&plan, range.to_ns), 0), 0);
	uint32_t is_left = plan_apply(&plan, PLAN_OR,
				      plan_apply(&plan, PLAN_GREATER, kind, plan_number(&plan, HEAP_END_CONFLICT), 0),
				      plan_apply(&plan, PLAN_GREATER, end, plan_time(&plan, range.to_ns), 0), 0);
	uint32_t left = plan_apply(&plan, PLAN_CHOOSE, is_left, size, plan_absent(&plan, PLAN_NUMBER));
	assert_true(plan_key(&plan, plan_column(&plan, COLUMN_SITE)));
	assert_true(plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING) && plan_aggregate(&plan, PLAN_SUM, size));
	assert_true(plan_aggregate(&plan, PLAN_COUNT, left) && plan_aggregate(&plan, PLAN_SUM, left));
	struct plan_run *run = plan_open(&plan, &target);
	uint64_t count = 0;
	while (plan_next(run, &rows, &diag) > 0) {
		for (uint32_t i = 0; i < rows.count; i++) {
			const struct heap_numbers *of = &window.numbers[plan_cell(&rows, i, 0).number];
			assert_int_equal(plan_cell(&rows, i, 1).number, of->total_count);
			assert_int_equal(plan_cell(&rows, i, 2).number, of->total_bytes);
			assert_int_equal(plan_cell(&rows, i, 3).number, of->outstanding_count);
			assert_int_equal(plan_cell(&rows, i, 4).number, of->outstanding_bytes);
			count += of->total_count;
		}
	}
	assert_true(count > 0);
	assert_int_equal(count, window.totals.total_count);
	plan_close(run);
	plan_fini(&plan);
	heap_window_fini(&window);
	heap_filter_fini(&filter);
}

/* ---- limits ---- */

static void test_types(void **state)
{
	struct plan plan;
	(void)state;
	plan_init(&plan, COLUMNS_OF_EVENTS);
	uint32_t number = plan_number(&plan, 1), time = plan_time(&plan, 1), is_true = plan_truth(&plan, true);
	assert_int_equal(plan_column(&plan, COLUMN_BIRTH), PLAN_NOTHING);
	assert_int_equal(plan_apply(&plan, PLAN_LESS, number, time, 0), PLAN_NOTHING);
	assert_int_equal(plan_apply(&plan, PLAN_MULTIPLY, time, time, 0), PLAN_NOTHING);
	assert_int_equal(plan_apply(&plan, PLAN_AND, is_true, number, 0), PLAN_NOTHING);
	assert_int_equal(plan_apply(&plan, PLAN_CHOOSE, number, time, time), PLAN_NOTHING);
	assert_int_equal(plan_apply(&plan, PLAN_NOT, PLAN_NOTHING, 0, 0), PLAN_NOTHING);
	assert_int_equal(plan_absent(&plan, PLAN_REAL), PLAN_NOTHING);
	assert_false(plan_aggregate(&plan, PLAN_SUM, is_true));
	assert_false(plan_output(&plan, PLAN_NOTHING));
	assert_false(plan_order(&plan, 0, false));
	assert_int_equal(plan_number(&plan, 1), number); /* one node for what is the same */
	for (uint64_t i = 2; plan_number(&plan, i) != PLAN_NOTHING; i++)
		assert_true(plan.node_count <= PLAN_NODES_MAX);
	plan_fini(&plan);
}

static void test_cancelled(void **state)
{
	bool is_cancelled = true;
	struct plan plan;
	struct plan_rows rows;
	(void)state;
	target.is_cancelled = &is_cancelled;
	for (unsigned source = COLUMNS_OF_ALLOCATIONS; source <= COLUMNS_OF_EVENTS; source++) {
		plan_init(&plan, source);
		plan_output(&plan, plan_column(&plan, COLUMN_ID));
		struct plan_run *run = plan_open(&plan, &target);
		assert_int_equal(plan_next(run, &rows, &diag), -ECANCELED);
		assert_int_equal(plan_next(run, &rows, &diag), -ECANCELED);
		plan_close(run);
		plan_fini(&plan);
	}
	target.is_cancelled = NULL;
}

/* Set while the rows are read: the run ends in whatever it does then, and says so. */
static void *cancel_soon(void *is_cancelled)
{
	usleep((useconds_t)random_below(3000));
	__atomic_store_n((bool *)is_cancelled, true, __ATOMIC_RELAXED);
	return NULL;
}

static void test_cancelled_anywhere(void **state)
{
	(void)state;
	for (unsigned i = 0; i < rounds(60); i++) {
		bool is_cancelled = false;
		struct plan plan;
		struct plan_rows rows;
		pthread_t thread;
		int status;
		plan_make(&plan);
		target.is_cancelled = &is_cancelled;
		assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &is_cancelled), 0);
		struct plan_run *run = plan_open(&plan, &target);
		while ((status = plan_next(run, &rows, &diag)) > 0)
			assert_true(rows.count > 0);
		assert_true(status == 0 || status == -ECANCELED || status == -EOVERFLOW);
		pthread_join(thread, NULL);
		plan_close(run);
		plan_fini(&plan);
	}
	target.is_cancelled = NULL;
}

static void keys_halve(void *context, uint64_t *keys, uint64_t *absent)
{
	(void)context, (void)absent;
	keys[0] /= 2;
}

/* All that can be added up of events by the rest of their numbers, which come again and again. */
static void events_by_rest(struct plan *plan, unsigned number)
{
	static struct plan_key_function regrouping = {.replace = keys_halve};
	plan_init(plan, COLUMNS_OF_EVENTS);
	uint32_t size = plan_column(plan, COLUMN_SIZE), most = plan_number(plan, EVENTS / 2);
	plan_key(plan, plan_apply(plan, PLAN_REMAINDER, plan_column(plan, COLUMN_ID), most, PLAN_NOTHING));
	for (unsigned kind = PLAN_COUNT; kind <= PLAN_AVERAGE && number % 2; kind++)
		plan_aggregate(plan, (enum plan_aggregate_kind)kind, size);
	plan->keeps_first_order = number / 2 % 2;
	plan->regrouping = number / 4 % 2 ? &regrouping : NULL;
}

/* Groups that have no room in memory go to the file, which cannot be written here. */
static void test_memory(void **state)
{
	struct plan_rows rows;
	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct plan plan;
		events_by_rest(&plan, i);
		target.memory_bytes = 1 << 18;
		assert_both_same(&plan, i);
		target.directory = "/nowhere";
		struct plan_run *run = plan_open(&plan, &target);
		assert_int_equal(plan_next(run, &rows, &diag), -ENOENT);
		assert_non_null(strstr(diag.text, "group: "));
		plan_close(run);
		plan_fini(&plan);
		target.directory = NULL;
	}
	target.memory_bytes = 0;
}

/* Runs of which each has too little memory to be read with. */
static void test_little_memory(void **state)
{
	struct plan plan;
	struct plan_rows rows;
	(void)state;
	events_by_rest(&plan, 1);
	target.memory_bytes = 1 << 13;
	struct plan_run *run = plan_open(&plan, &target);
	assert_int_equal(plan_next(run, &rows, &diag), -ENOMEM);
	assert_non_null(strstr(diag.text, "group: "));
	plan_close(run);
	plan_fini(&plan);
	target.memory_bytes = 0;
}

/* Sorting whose file cannot be written says so. */
static void test_no_directory(void **state)
{
	struct plan plan;
	struct plan_rows rows;
	(void)state;
	diag = (struct diag){""};
	plan_init(&plan, COLUMNS_OF_EVENTS);
	plan_output(&plan, plan_column(&plan, COLUMN_ID));
	plan_order(&plan, 0, true);
	target.memory_bytes = 1 << 16;
	target.directory = "/nowhere";
	struct plan_run *run = plan_open(&plan, &target);
	assert_int_equal(plan_next(run, &rows, &diag), -ENOENT);
	assert_non_null(strstr(diag.text, "order: "));
	plan_close(run);
	plan_fini(&plan);
	target.memory_bytes = 0;
	target.directory = NULL;
}

/* Of all rows, and of groups with a count, which are added in whole batches. */
static void test_overflow(void **state)
{
	struct plan plan;
	struct plan_rows rows;
	(void)state;
	for (int is_grouped = 0; is_grouped < 2; is_grouped++) {
		plan_init(&plan, COLUMNS_OF_ALLOCATIONS);
		if (is_grouped) {
			plan_key(&plan, plan_column(&plan, COLUMN_SITE));
			plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING);
		}
		plan_aggregate(&plan, PLAN_SUM, plan_number(&plan, UINT64_MAX));
		struct plan_run *run = plan_open(&plan, &target);
		assert_int_equal(plan_next(run, &rows, &diag), -EOVERFLOW);
		plan_close(run);
		plan_fini(&plan);
	}
}

/* Groups of other times are not read. */
static void test_left_out(void **state)
{
	struct plan plan;
	struct plan_rows rows;
	(void)state;
	plan_init(&plan, COLUMNS_OF_ALLOCATIONS);
	plan.filter = plan_apply(&plan, PLAN_GREATER, plan_column(&plan, COLUMN_BIRTH),
				 plan_time(&plan, TIMES - TIMES / 10), 0);
	plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING);
	struct plan_run *run = plan_open(&plan, &target);
	assert_int_equal(plan_next(run, &rows, &diag), 1);
	assert_true(plan_cell(&rows, 0, 0).number > 0);
	assert_int_equal(run->read + run->left_out, table->groups.count);
	assert_true(run->read < table->groups.count / 5 + 2);
	plan_close(run);
	plan_fini(&plan);
	/* Nor those behind a moment. */
	struct heap_filter filter;
	heap_filter_init(&filter);
	filter.moment = (struct heap_moment){.is_asked = true, .at = {TIMES / 10, POSITION_LAST}};
	assert_int_equal(heap_filter_prepare(&filter, table, NULL, &diag), 0);
	plan_init(&plan, COLUMNS_OF_ALLOCATIONS);
	plan.allocations = &filter;
	plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING);
	run = plan_open(&plan, &target);
	assert_int_equal(plan_next(run, &rows, &diag), 1);
	assert_true(plan_cell(&rows, 0, 0).number > 0);
	assert_true(run->read < table->groups.count / 5 + 2);
	plan_close(run);
	plan_fini(&plan);
	heap_filter_fini(&filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_generated),    cmocka_unit_test(test_top),
		cmocka_unit_test(test_reports),      cmocka_unit_test(test_types),
		cmocka_unit_test(test_cancelled),    cmocka_unit_test(test_cancelled_anywhere),
		cmocka_unit_test(test_memory),       cmocka_unit_test(test_little_memory),
		cmocka_unit_test(test_no_directory), cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_left_out),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
