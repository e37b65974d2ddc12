/* SPDX-License-Identifier: MIT */
/*
 * Plans (src/plan/plan.h), as a query makes them: the input is a program for the functions that build one, four bytes a
 * step. Whatever it builds is run over columns, with little memory, and row by row; both have one result, or an error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/plan_naive.c"
#include "../unit/scene.c"
#include "match/match.h"
#include "plan/plan.h"
#include "replay.h"
#include "trace/reader.h"
#include "trace/row_ids.h"

enum { INPUT_MAX = 4096, STEP_BYTES = 4, EVENTS = 700, ADDRESSES = 40, ROWS_MAX = 2000, TABLE = 16 };

#define expect(is_so) ((is_so) ? (void)0 : (fprintf(stderr, "plan_fuzz:%d: %s\n", __LINE__, #is_so), abort()))

static char trace_path[64];
static struct plan_target target;
static struct trace *trace;
static struct heap_table *table;

static void begin(void)
{
	struct scene scene;
	bool is_live[ADDRESSES] = {false};
	snprintf(trace_path, sizeof(trace_path), "/dev/shm/xheap-fuzz-plan-%d.xht", (int)getpid());
	scene_open(&scene, trace_path);
	uint32_t process = scene_process(&scene, 100, TRACE_NONE, 0), random = 1;
	uint32_t threads[] = {scene_thread(&scene, process, 100), scene_thread(&scene, process, 101)};
	for (int64_t i = 0; i < EVENTS; i++) {
		random = random * 1664525 + 1013904223;
		uint32_t at = (random >> 8) % ADDRESSES;
		uint64_t address = 0x7f0000000000 + at * 64;
		scene.stack = at % 5 ? scene_stack(&scene, 0x1000 + (int)(at % 7), 0x2000, 0) : 0;
		if (is_live[at])
			scene_free(&scene, threads[at % 2], i * 10, address);
		else
			scene_alloc(&scene, threads[at % 2], i * 10, address, random >> 20);
		is_live[at] = !is_live[at];
	}
	scene_close(&scene);
	expect(trace_open(&trace, trace_path, &diag) == 0 && heap_table_build(&table, trace, NULL, &diag) == 0);
	target = (struct plan_target){.trace = trace, .table = table, .memory_bytes = 1 << 16};
}

/* ---- building ---- */

static uint64_t table_values[TABLE];
static bool table_absent[TABLE];
static const struct plan_lookup lookups[] = {{PLAN_NUMBER, table_values, table_absent, TABLE},
					     {PLAN_TIME, table_values, NULL, TABLE / 2}};

/* A step: what it does, and two nodes or numbers. Nodes that do not exist are among them. */
static void step_take(struct plan *plan, const uint8_t step[STEP_BYTES])
{
	uint32_t a = step[1], b = step[2], c = step[3];
	switch (step[0] % 12) {
	case 0:
		plan_column(plan, (enum column_id)(a % (COLUMN_COUNT + 1)));
		break;
	case 1:
		plan_number(plan, (uint64_t)a << b % 64);
		break;
	case 2:
		plan_time(plan, (int64_t)((uint64_t)a << b % 64) * (c % 2 ? -1 : 1));
		break;
	case 3:
		plan_absent(plan, (enum plan_type)(a % 4));
		break;
	case 4:
		plan_lookup(plan, a, &lookups[b % 2]);
		break;
	case 5:
		if (a < plan->node_count && plan->nodes[a].type == PLAN_TRUTH)
			plan->filter = a;
		break;
	case 6:
		plan_output(plan, a);
		break;
	case 7:
		if (!plan->order_count)
			plan_key(plan, a);
		break;
	case 8:
		if (!plan->order_count)
			plan_aggregate(plan, (enum plan_aggregate_kind)(a % 5), b > 250 ? PLAN_NOTHING : b);
		break;
	case 9:
		if (plan_is_grouped(plan) || plan->output_count)
			plan_order(plan, a % PLAN_OUTPUTS_MAX, b % 2);
		break;
	case 10:
		plan->skip = a % 8 ? 0 : b;
		plan->limit = c % 4 ? UINT64_MAX : b;
		break;
	default:
		plan_apply(plan, (enum plan_operator)(a % PLAN_OPERATOR_COUNT), b, c, step[0] >> 4);
	}
}

/* Keys, the first of them halved; odd ones become absent. */
static void keys_halve(void *context, uint64_t *keys, uint64_t *absent)
{
	(void)context;
	*absent |= keys[0] & 1;
	keys[0] = keys[0] & 1 ? 0 : keys[0] / 2;
}

/* What is done with groups. */
static void groups_make(struct plan *plan, uint8_t how)
{
	static const struct plan_key_function regrouping = {.replace = keys_halve};
	plan->keeps_first_order = plan_is_grouped(plan) && how & 64;
	plan->regrouping = plan->key_count && how & 32 ? &regrouping : NULL;
}

/* ---- running ---- */

struct answer {
	int status;
	uint32_t count;
	uint64_t cells[ROWS_MAX][2]; /* of each row: a hash of its values, and which are absent */
};

static void answer_make(struct answer *answer, const struct plan *plan, struct plan_run *run)
{
	struct plan_rows rows;
	struct diag ignored = {""};
	answer->count = 0;
	while ((answer->status = plan_next(run, &rows, &ignored)) > 0)
		for (uint32_t i = 0; i < rows.count; i++) {
			expect(answer->count < ROWS_MAX);
			uint64_t *cells = answer->cells[answer->count++];
			cells[0] = cells[1] = 0;
			for (uint32_t k = 0; k < plan_width(plan); k++) {
				const struct plan_value value = plan_cell(&rows, i, k);
				cells[0] = cells[0] * 31 + (value.is_absent ? 0 : value.number);
				cells[1] |= (uint64_t)value.is_absent << k;
			}
		}
	plan_close(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct answer columns, naive;
	struct plan plan;
	if (size > INPUT_MAX || !size)
		return 0;
	if (!trace)
		begin();
	for (unsigned i = 0; i < TABLE; i++) {
		table_values[i] = (uint64_t)data[i % size] << i;
		table_absent[i] = data[size - 1 - i % size] % 4 == 0;
	}
	plan_init(&plan, data[0] & 128 ? COLUMNS_OF_EVENTS : COLUMNS_OF_ALLOCATIONS);
	for (size_t at = 1; at + STEP_BYTES <= size; at += STEP_BYTES)
		step_take(&plan, data + at);
	groups_make(&plan, data[0]);
	/* Expressions share nodes, so that the number of evaluations row by row may be two to the power of their depth. */
	if (plan.node_count <= 24) {
		answer_make(&columns, &plan, plan_open(&plan, &target));
		answer_make(&naive, &plan, plan_open_naive(&plan, &target));
		expect(columns.status == -ENOMEM || columns.status == naive.status);
		expect(columns.status || (columns.count == naive.count &&
					  !memcmp(columns.cells, naive.cells, columns.count * sizeof(*columns.cells))));
	}
	plan_fini(&plan);
	return 0;
}

static void end(void)
{
	heap_table_free(table);
	trace_close(trace);
	unlink(trace_path);
}

const struct replay replay = {.bytes_max = INPUT_MAX, .cuts = 40, .flip_rounds = 400, .end = end};
