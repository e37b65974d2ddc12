/* SPDX-License-Identifier: MIT */
/*
 * Questions of bench/queries as plans (src/plan/plan.h) over a trace with an index. Prints rows as CSV; an absent value
 * is an empty field.
 *
 *     plan_bench TRACE QUERY [NUMBER [NUMBER]]    one of the queries below, with its numbers
 *     plan_bench TRACE rows                       all allocations, for other databases
 *     plan_bench TRACE values                     a late time and a busy address, for the queries that need one
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "match/moment.h"
#include "plan/plan.h"
#include "table/index_cache.h"
#include "trace/reader.h"

static struct diag diag;
static struct plan plan;
static struct heap_filter filter;
static uint64_t numbers[2];
static const struct heap_table *table;

static void fail(const char *what)
{
	fprintf(stderr, "plan_bench: %s: %s\n", what, diag.text);
	exit(2);
}

static void check(bool is_good)
{
	if (!is_good)
		fail("a plan that cannot be");
}

static uint32_t compare(enum plan_operator operation, enum column_id column, uint32_t constant)
{
	return plan_apply(&plan, operation, plan_column(&plan, column), constant, PLAN_NOTHING);
}

static void make_count(void)
{
	plan.filter = plan_apply(&plan, PLAN_AND, compare(PLAN_AT_LEAST, COLUMN_SIZE, plan_number(&plan, 64)),
				 compare(PLAN_LESS, COLUMN_SIZE, plan_number(&plan, 256)), PLAN_NOTHING);
	check(plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING));
}

static void make_group(void)
{
	check(plan_key(&plan, plan_column(&plan, COLUMN_STACK)));
	check(plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING));
	check(plan_aggregate(&plan, PLAN_SUM, plan_column(&plan, COLUMN_SIZE)));
}

static void make_top(void)
{
	check(plan_output(&plan, plan_column(&plan, COLUMN_ID)));
	check(plan_output(&plan, plan_column(&plan, COLUMN_SIZE)));
	check(plan_order(&plan, 1, true));
	plan.limit = 10;
}

/* Blocks that were freed, by both stacks, and how long they lived together. */
static void make_frees(void)
{
	plan.filter = compare(PLAN_AT_MOST, COLUMN_END_KIND, plan_number(&plan, HEAP_END_DESTROY));
	check(plan_key(&plan, plan_column(&plan, COLUMN_STACK)));
	check(plan_key(&plan, plan_column(&plan, COLUMN_FREE_STACK)));
	check(plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING));
	check(plan_aggregate(&plan, PLAN_SUM,
			     plan_apply(&plan, PLAN_SUBTRACT, plan_column(&plan, COLUMN_END),
					plan_column(&plan, COLUMN_BIRTH), PLAN_NOTHING)));
}

static void make_history(void)
{
	plan.filter = compare(PLAN_EQUAL, COLUMN_ADDRESS, plan_number(&plan, numbers[0]));
	check(plan_output(&plan, plan_column(&plan, COLUMN_ID)));
	check(plan_output(&plan, plan_column(&plan, COLUMN_BIRTH)));
	check(plan_output(&plan, plan_column(&plan, COLUMN_END)));
	check(plan_output(&plan, plan_column(&plan, COLUMN_SIZE)));
}

static void make_live(void)
{
	filter.moment = (struct heap_moment){.is_asked = true, .at = {(int64_t)numbers[0], POSITION_LAST}};
	heap_moment_find(&filter.moment, table);
	if (heap_filter_prepare(&filter, table, NULL, &diag))
		fail("a position");
	plan.allocations = &filter;
	check(plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING));
	check(plan_aggregate(&plan, PLAN_SUM, plan_column(&plan, COLUMN_SIZE)));
}

static void make_rows(void)
{
	static const enum column_id columns[] = {COLUMN_ID,       COLUMN_TID,      COLUMN_SIZE,  COLUMN_BIRTH,
						 COLUMN_END,      COLUMN_END_KIND, COLUMN_STACK, COLUMN_FREE_STACK,
						 COLUMN_FREE_TID, COLUMN_ADDRESS};
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		check(plan_output(&plan, plan_column(&plan, columns[i])));
}

/* The most frequent address, and a time behind nine tenths of the trace. */
static void make_values(void)
{
	check(plan_key(&plan, plan_column(&plan, COLUMN_ADDRESS)));
	check(plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING));
	check(plan_order(&plan, 1, true));
	plan.limit = 1;
}

static const struct {
	const char *name;
	void (*make)(void);
} queries[] = {{"count", make_count},     {"group", make_group}, {"top", make_top},   {"frees", make_frees},
	       {"history", make_history}, {"live", make_live},   {"rows", make_rows}, {"values", make_values}};

static void print_rows(const struct plan_rows *rows)
{
	for (uint32_t i = 0; i < rows->count; i++)
		for (uint32_t k = 0; k < plan_width(&plan); k++) {
			struct plan_value value = plan_cell(rows, i, k);
			if (k)
				putchar(',');
			if (!value.is_absent && value.type == PLAN_TIME)
				printf("%" PRId64, value.time_ns);
			else if (!value.is_absent)
				printf("%" PRIu64, value.number);
			if (k + 1 == plan_width(&plan))
				putchar('\n');
		}
}

int main(int count, char **arguments)
{
	struct trace *trace;
	struct heap_table *found;
	struct plan_rows rows;
	char *path;
	size_t query = 0;
	int status;
	for (int i = 3; i < count && i < 5; i++)
		numbers[i - 3] = strtoull(arguments[i], NULL, 0);
	if (count < 3 || trace_open(&trace, arguments[1], &diag))
		fail("usage: plan_bench TRACE QUERY");
	while (query < sizeof(queries) / sizeof(*queries) && strcmp(arguments[2], queries[query].name) != 0)
		query++;
	if (query == sizeof(queries) / sizeof(*queries))
		fail(arguments[2]);
	if (index_cache_read(&found, trace, arguments[1], &path))
		fail("the trace has no index");
	table = found;
	heap_filter_init(&filter);
	heap_filter_prepare(&filter, table, NULL, &diag);
	plan_init(&plan, COLUMNS_OF_ALLOCATIONS);
	queries[query].make();
	const struct plan_target target = {.trace = trace, .table = table, .memory_bytes = UINT64_C(1) << 30};
	struct plan_run *run = plan_open(&plan, &target);
	while ((status = plan_next(run, &rows, &diag)) > 0)
		print_rows(&rows);
	if (status)
		fail(arguments[2]);
	if (queries[query].make == make_values)
		printf("%" PRId64 "\n", table->duration_ns / 10 * 9);
	plan_close(run);
	plan_fini(&plan);
	heap_filter_fini(&filter);
	heap_table_free(found);
	free(path);
	trace_close(trace);
	return 0;
}
