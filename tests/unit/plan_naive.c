/* SPDX-License-Identifier: MIT */
/*
 * A plan interpreted row by row, as one would read dump: each row's values one at a time, expressions by recursion, all
 * results in memory. It shares no code with the run over columns but the reading of rows, so that either shows the
 * other's mistakes.
 */
#include "plan_naive.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/events.h"
#include "base/memory.h"
#include "match/point_stream.h"
#include "plan/run.h"
#include "query/scan.h"
#include "table/weight.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { SHOWN = 1024 };

/* A row: an allocation with `details`, or an event of `block`. */
struct naive_row {
	const struct plan *plan;
	const struct plan_target *target;
	uint64_t id;
	struct heap_allocation allocation;
	const struct heap_details *details;
	const struct trace_block *block;
	uint32_t at;
};

/* A row of the result, or a group: values, the row's number, and the sums of a group. */
struct naive_result {
	struct plan_value values[PLAN_OUTPUTS_MAX];
	uint64_t id;
	struct naive_sum {
		uint64_t count;
		__int128 sum;
		struct plan_value least, greatest;
	} * sums;
};

struct naive {
	struct naive_result **results;
	size_t count, capacity, next;
	uint64_t passed; /* rows that were grouped */
	bool is_collected;
	uint64_t *shown;
};

/* ---- columns ---- */

static struct plan_value number(uint64_t value)
{
	return (struct plan_value){.type = PLAN_NUMBER, .number = value};
}

static struct plan_value moment(int64_t time_ns)
{
	return (struct plan_value){.type = PLAN_TIME, .time_ns = time_ns};
}

static struct plan_value truth(bool is_true)
{
	return (struct plan_value){.type = PLAN_TRUTH, .number = is_true};
}

static struct plan_value absent(unsigned type)
{
	return (struct plan_value){.type = (enum plan_type)type, .is_absent = true};
}

static struct plan_value number_unless(bool is_absent, uint64_t value)
{
	return is_absent ? absent(PLAN_NUMBER) : number(value);
}

static struct plan_value stack_of_site(const struct naive_row *row, uint32_t site)
{
	uint32_t stack = site == HEAP_NONE ? 0 : row->target->table->sites[site].stack;
	return number_unless(!stack, stack);
}

static struct plan_value function_of_site(const struct naive_row *row, uint32_t site)
{
	uint32_t entry = site == HEAP_NONE ? HEAP_NONE : row->target->table->sites[site].entry;
	return number_unless(entry == HEAP_NONE || entry == HEAP_OVERHEAD, entry);
}

/* What is the thread's, of both sources. */
static struct plan_value thread_column(const struct naive_row *row, enum column_id column, uint32_t thread,
				       bool is_known)
{
	const struct trace_dictionary *dictionary = trace_dictionary(row->target->trace);
	const struct trace_thread *of = &dictionary->threads[thread];
	switch (column) {
	case COLUMN_PROCESS:
		return number(of->process);
	case COLUMN_PID:
		return number_unless(!dictionary->processes[of->process].pid, dictionary->processes[of->process].pid);
	case COLUMN_THREAD:
		return number_unless(!is_known, thread);
	default:
		return number_unless(!is_known, of->tid);
	}
}

static struct plan_value heap_column(const struct naive_row *row, enum column_id column, uint32_t heap)
{
	const struct trace_dictionary *dictionary = trace_dictionary(row->target->trace);
	if (heap >= dictionary->heap_count)
		return absent(PLAN_NUMBER);
	return number(column == COLUMN_HEAP ? dictionary->heaps[heap].handle : heap);
}

static struct plan_value allocation_column(const struct naive_row *row, enum column_id column)
{
	const struct heap_allocation *of = &row->allocation;
	bool is_earlier = of->flags & HEAP_EARLIER, is_open = of->end == HEAP_END_OPEN;
	uint32_t freer = row->details->end_thread;
	switch (column) {
	case COLUMN_ID:
		return number(row->id);
	case COLUMN_PROCESS:
	case COLUMN_PID:
	case COLUMN_THREAD:
	case COLUMN_TID:
		return thread_column(row, column, of->thread, !is_earlier);
	case COLUMN_HEAP:
	case COLUMN_HEAP_ID:
		return heap_column(row, column, of->heap);
	case COLUMN_ADDRESS:
		return number(row->details->address);
	case COLUMN_SIZE:
		return number(of->size_bytes);
	case COLUMN_USABLE:
		return number_unless(row->details->slack_bytes == HEAP_SLACK_UNKNOWN,
				     of->size_bytes + (uint64_t)heap_slack(row->details));
	case COLUMN_STACK:
		return stack_of_site(row, of->site);
	case COLUMN_FUNCTION:
		return function_of_site(row, of->site);
	case COLUMN_BIRTH:
		return is_earlier ? absent(PLAN_TIME) : moment(of->birth_ns);
	case COLUMN_END:
		return is_open ? absent(PLAN_TIME) : moment(of->end_ns);
	case COLUMN_END_KIND:
		return number(of->end);
	case COLUMN_FLAGS:
		return number(of->flags);
	case COLUMN_LIFETIME:
		return is_earlier ? absent(PLAN_TIME) : moment(heap_lifetime_ns(of));
	case COLUMN_SITE:
		return number(of->site);
	case COLUMN_FREE_SITE:
		return number_unless(of->end_site == HEAP_NONE, of->end_site);
	case COLUMN_FREE_STACK:
		return stack_of_site(row, of->end_site);
	case COLUMN_FREE_FUNCTION:
		return function_of_site(row, of->end_site);
	case COLUMN_FREE_THREAD:
		return number_unless(freer == HEAP_NONE, freer);
	case COLUMN_FREE_TID:
		return freer == HEAP_NONE ? absent(PLAN_NUMBER)
					  : number(trace_dictionary(row->target->trace)->threads[freer].tid);
	case COLUMN_PREVIOUS:
		return number_unless(row->details->previous == HEAP_NONE, row->details->previous);
	case COLUMN_WEIGHT_COUNT:
		return number(heap_weigh(row->target->table, of).count);
	case COLUMN_WEIGHT_BYTES:
		return number(heap_weigh(row->target->table, of).bytes);
	default:
		assert(!"a column of allocations");
		return absent(PLAN_NUMBER);
	}
}

static struct plan_value event_column(const struct naive_row *row, enum column_id column)
{
	const struct trace_block *block = row->block;
	const struct trace_dictionary *dictionary = trace_dictionary(row->target->trace);
	uint32_t at = row->at;
	uint8_t flags = block->flags[at];
	switch (column) {
	case COLUMN_ID:
		return number(row->id);
	case COLUMN_PROCESS:
	case COLUMN_PID:
	case COLUMN_THREAD:
	case COLUMN_TID:
		return thread_column(row, column, block->thread,
				     dictionary->threads[block->thread].tid != TRACE_TID_NONE);
	case COLUMN_HEAP:
	case COLUMN_HEAP_ID:
		return heap_column(row, column, block->heap[at]);
	case COLUMN_ADDRESS:
		return number_unless(!block->address[at], block->address[at]);
	case COLUMN_SIZE:
		return number_unless(block->kind[at] == EVENT_FREE && !block->size[at], block->size[at]);
	case COLUMN_USABLE:
		return number_unless(!block->usable[at], block->usable[at]);
	case COLUMN_SITE:
		return number_unless(block->kind[at] == EVENT_EARLIER || block->entry[at] >= dictionary->entry_count,
				     (flags & EVENT_NO_STACK ? 0 : (uint64_t)block->stack[at]) *
						     dictionary->entry_count +
					     block->entry[at]);
	case COLUMN_STACK:
		return number_unless((flags & EVENT_NO_STACK) || !block->stack[at], block->stack[at]);
	case COLUMN_FUNCTION:
		return number_unless(block->kind[at] == EVENT_EARLIER || block->entry[at] >= dictionary->entry_count,
				     block->entry[at]);
	case COLUMN_FLAGS:
		return number(flags);
	case COLUMN_TIME:
		return moment(block->time_ns[at]);
	case COLUMN_DURATION:
		return flags & EVENT_NO_DURATION ? absent(PLAN_TIME) : moment(block->duration_ns[at]);
	case COLUMN_ACTION:
		return number(block->kind[at]);
	case COLUMN_PREVIOUS_ADDRESS:
		return number_unless(!block->previous[at], block->previous[at]);
	case COLUMN_ARGUMENT:
		return number(block->argument[at]);
	case COLUMN_ARGUMENT_2:
		return number(block->argument2[at]);
	case COLUMN_RESULT:
		return number_unless(flags & EVENT_IN_FLIGHT,
				     flags & EVENT_FAILED ? (uint64_t)(int64_t)block->result[at] : 0);
	default:
		assert(!"a column of events");
		return absent(PLAN_NUMBER);
	}
}

/* ---- expressions ---- */

static int compare(struct plan_value a, struct plan_value b)
{
	if (a.is_absent || b.is_absent)
		return a.is_absent - b.is_absent;
	if (a.type == PLAN_TIME)
		return a.time_ns < b.time_ns ? -1 : a.time_ns > b.time_ns;
	if (a.type == PLAN_REAL)
		return a.real < b.real ? -1 : a.real > b.real;
	return a.number < b.number ? -1 : a.number > b.number;
}

static struct plan_value compared(enum plan_operator operation, int difference)
{
	switch (operation) {
	case PLAN_EQUAL:
		return truth(difference == 0);
	case PLAN_UNEQUAL:
		return truth(difference != 0);
	case PLAN_LESS:
		return truth(difference < 0);
	case PLAN_AT_MOST:
		return truth(difference <= 0);
	case PLAN_GREATER:
		return truth(difference > 0);
	default:
		return truth(difference >= 0);
	}
}

static struct plan_value calculated(const struct plan_node *node, uint64_t a, uint64_t b)
{
	struct plan_value value = {.type = (enum plan_type)node->type};
	bool divides = node->operation == PLAN_DIVIDE || node->operation == PLAN_REMAINDER;
	if (divides && !b)
		return absent(node->type);
	switch (node->operation) {
	case PLAN_ADD:
		value.number = a + b;
		break;
	case PLAN_SUBTRACT:
		value.number = a - b;
		break;
	case PLAN_MULTIPLY:
		value.number = a * b;
		break;
	case PLAN_DIVIDE:
		value.number = a / b;
		break;
	case PLAN_REMAINDER:
		value.number = a % b;
		break;
	case PLAN_BITS_AND:
		value.number = a & b;
		break;
	case PLAN_BITS_OR:
		value.number = a | b;
		break;
	case PLAN_BITS_XOR:
		value.number = a ^ b;
		break;
	case PLAN_SHIFT_LEFT:
		value.number = b >= 64 ? 0 : a << b;
		break;
	default:
		value.number = b >= 64 ? 0 : a >> b;
	}
	return value;
}

static struct plan_value evaluate(const struct naive_row *row, uint32_t i);

/* And (`decides` false), or (true): one operand that decides is enough. */
static struct plan_value connected(const struct naive_row *row, const struct plan_node *node, bool decides)
{
	struct plan_value a = evaluate(row, node->operands[0]), b = evaluate(row, node->operands[1]);
	if ((!a.is_absent && a.number == decides) || (!b.is_absent && b.number == decides))
		return truth(decides);
	return a.is_absent || b.is_absent ? absent(PLAN_TRUTH) : truth(!decides);
}

static struct plan_value converted(unsigned type, struct plan_value from)
{
	struct plan_value value = {.type = (enum plan_type)type, .number = from.number};
	return from.is_absent || value.time_ns < 0 ? absent(type) : value;
}

static struct plan_value looked_up(const struct plan_lookup *lookup, struct plan_value at)
{
	if (at.is_absent || at.number >= lookup->count || (lookup->is_absent && lookup->is_absent[at.number]))
		return absent(lookup->type);
	return (struct plan_value){.type = lookup->type, .number = lookup->values[at.number]};
}

/* The values of a row's nodes: expressions share them, and would evaluate one two to the power of its depth times. */
struct naive_memo {
	uint64_t rows[PLAN_NODES_MAX]; /* by node: the row that it was evaluated for */
	struct plan_value values[PLAN_NODES_MAX];
};
static struct naive_memo memo;
static uint64_t row_number;

static struct plan_value node_evaluate(const struct naive_row *row, uint32_t i);

static struct plan_value evaluate(const struct naive_row *row, uint32_t i)
{
	if (memo.rows[i] != row_number) {
		struct plan_value value = node_evaluate(row, i);
		memo.values[i] = value;
		memo.rows[i] = row_number;
	}
	return memo.values[i];
}

static struct plan_value node_evaluate(const struct naive_row *row, uint32_t i)
{
	const struct plan_node *node = &row->plan->nodes[i];
	struct plan_value a, b;
	switch ((enum plan_operator)node->operation) {
	case PLAN_COLUMN:
		return row->details ? allocation_column(row, (enum column_id)node->number)
				    : event_column(row, (enum column_id)node->number);
	case PLAN_CONSTANT:
		return (struct plan_value){(enum plan_type)node->type, node->is_absent, {node->number}};
	case PLAN_LOOKUP:
		return looked_up(node->lookup, evaluate(row, node->operands[0]));
	case PLAN_AND:
		return connected(row, node, false);
	case PLAN_OR:
		return connected(row, node, true);
	case PLAN_NOT:
		a = evaluate(row, node->operands[0]);
		return a.is_absent ? a : truth(!a.number);
	case PLAN_IS_ABSENT:
		return truth(evaluate(row, node->operands[0]).is_absent);
	case PLAN_IF_ABSENT:
		a = evaluate(row, node->operands[0]);
		return a.is_absent ? evaluate(row, node->operands[1]) : a;
	case PLAN_CHOOSE:
		a = evaluate(row, node->operands[0]);
		return a.is_absent ? absent(node->type) : evaluate(row, node->operands[a.number ? 1 : 2]);
	case PLAN_AS_NUMBER:
	case PLAN_AS_TIME:
		return converted(node->type, evaluate(row, node->operands[0]));
	default:
		a = evaluate(row, node->operands[0]);
		b = evaluate(row, node->operands[1]);
		if (a.is_absent || b.is_absent)
			return absent(node->type);
		return node->operation <= PLAN_AT_LEAST ? compared((enum plan_operator)node->operation, compare(a, b))
							: calculated(node, a.number, b.number);
	}
}

/* ---- results ---- */

static int keys_compare(const struct plan *plan, const struct naive_result *a, const struct naive_result *b)
{
	int difference = 0;
	for (uint32_t i = 0; i < plan->key_count && !difference; i++)
		difference = compare(a->values[i], b->values[i]);
	return difference;
}

/* The place of the group with these keys, or where it belongs. */
static size_t group_place(const struct naive *naive, const struct plan *plan, const struct naive_result *like)
{
	size_t from = 0, to = naive->count;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (keys_compare(plan, naive->results[middle], like) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct naive_result *result_insert(struct naive *naive, size_t at)
{
	memory_grow(naive->results, naive->count, naive->capacity);
	memmove(naive->results + at + 1, naive->results + at, (naive->count++ - at) * sizeof(*naive->results));
	return naive->results[at] = memory_zeroed(1, sizeof(struct naive_result));
}

static struct naive_result *group_of(struct naive *naive, const struct plan *plan, const struct naive_result *like)
{
	size_t at = group_place(naive, plan, like);
	if (at < naive->count && !keys_compare(plan, naive->results[at], like))
		return naive->results[at];
	struct naive_result *group = result_insert(naive, at);
	memcpy(group->values, like->values, sizeof(group->values));
	group->id = naive->passed;
	group->sums = memory_zeroed((size_t)plan->aggregate_count + 1, sizeof(*group->sums));
	return group;
}

static void sum_add(struct naive_sum *sum, struct plan_value value)
{
	if (value.is_absent)
		return;
	if (!sum->count++)
		sum->least = sum->greatest = value;
	sum->least = compare(value, sum->least) < 0 ? value : sum->least;
	sum->greatest = compare(value, sum->greatest) > 0 ? value : sum->greatest;
	sum->sum += value.type == PLAN_TIME ? (__int128)value.time_ns : (__int128)value.number;
}

static void keys_replace(const struct plan *plan, struct plan_value *values)
{
	uint64_t keys[PLAN_OUTPUTS_MAX + 1] = {0}, none = 0;
	for (uint32_t i = 0; i < plan->key_count; i++) {
		keys[i] = values[i].is_absent ? 0 : values[i].number;
		none |= (uint64_t)values[i].is_absent << i;
	}
	plan->regrouping->replace(plan->regrouping->context, keys, &none);
	for (uint32_t i = 0; i < plan->key_count; i++)
		values[i] = (struct plan_value){.type = values[i].type, .is_absent = none >> i & 1, .number = keys[i]};
}

static void row_group(struct naive *naive, const struct naive_row *row)
{
	const struct plan *plan = row->plan;
	struct naive_result like = {.id = 0};
	for (uint32_t i = 0; i < plan->key_count; i++)
		like.values[i] = evaluate(row, plan->keys[i]);
	if (plan->regrouping)
		keys_replace(plan, like.values);
	struct naive_result *group = group_of(naive, plan, &like);
	for (uint32_t i = 0; i < plan->aggregate_count; i++) {
		uint32_t node = plan->aggregates[i].node;
		sum_add(&group->sums[i], node == PLAN_NOTHING ? truth(true) : evaluate(row, node));
	}
	naive->passed++;
}

static void row_take(struct naive *naive, const struct naive_row *row)
{
	const struct plan *plan = row->plan;
	row_number++;
	struct plan_value passes = plan->filter == PLAN_NOTHING ? truth(true) : evaluate(row, plan->filter);
	if (passes.is_absent || !passes.number)
		return;
	if (plan_is_grouped(plan)) {
		row_group(naive, row);
		return;
	}
	struct naive_result *result = result_insert(naive, naive->count);
	result->id = row->id;
	for (uint32_t i = 0; i < plan->output_count; i++)
		result->values[i] = evaluate(row, plan->outputs[i]);
}

static int sum_finish(struct plan_value *to, const struct naive_sum *sum, enum plan_aggregate_kind kind,
		      enum plan_type type, struct diag *diag)
{
	switch (kind) {
	case PLAN_COUNT:
		*to = number(sum->count);
		return 0;
	case PLAN_SUM:
		*to = (struct plan_value){.type = type, .number = (uint64_t)sum->sum};
		if (type == PLAN_TIME ? sum->sum != (__int128)to->time_ns : sum->sum != (__int128)to->number)
			return diag_fail(diag, EOVERFLOW, "sum: it has no room in 64 bits");
		return 0;
	case PLAN_LEAST:
	case PLAN_GREATEST:
		*to = !sum->count ? absent(type) : kind == PLAN_LEAST ? sum->least : sum->greatest;
		return 0;
	case PLAN_AVERAGE:
		*to = (struct plan_value){.type = PLAN_REAL, .is_absent = !sum->count};
		if (sum->count)
			to->real = (double)sum->sum / (double)sum->count;
		return 0;
	}
	return 0;
}

static void cells_set(const struct plan *plan, const struct naive_result *result, uint64_t *to)
{
	uint32_t width = plan_width(plan);
	to[width] = 0;
	for (uint32_t i = 0; i < width; i++) {
		to[i] = result->values[i].is_absent ? 0 : result->values[i].number;
		to[width] |= (uint64_t)result->values[i].is_absent << i;
	}
}

/* Compute the values of groups, and leave out those that are not wanted. */
static void computed_set(struct naive *naive, const struct plan *plan)
{
	const struct plan_value no_number = absent(PLAN_NUMBER);
	size_t kept = 0;
	for (size_t g = 0; g < naive->count; g++) {
		uint64_t cells[PLAN_OUTPUTS_MAX + 1], values[PLAN_OUTPUTS_MAX] = {0}, none = 0;
		const struct plan_rows row = {plan, 1, cells, plan_width(plan) + 1};
		struct naive_result *group = naive->results[g];
		cells_set(plan, group, cells);
		if (!plan->finishing->finish(plan->finishing->context, &row, values, &none)) {
			free(group->sums);
			free(group);
			continue;
		}
		for (uint32_t i = 0; i < plan->finishing->count; i++)
			group->values[plan->key_count + plan->aggregate_count + i] =
				none >> i & 1 ? no_number : number(values[i]);
		naive->results[kept++] = group;
	}
	naive->count = kept;
}

static int sums_finish(struct naive *naive, const struct plan *plan, struct diag *diag)
{
	struct naive_result none = {.id = 0};
	if (!plan->key_count)
		group_of(naive, plan, &none);
	for (size_t g = 0; g < naive->count; g++) {
		struct naive_result *group = naive->results[g];
		group->id = plan->keeps_first_order ? group->id : g;
		for (uint32_t i = 0; i < plan->aggregate_count; i++) {
			uint32_t node = plan->aggregates[i].node;
			int error = sum_finish(&group->values[plan->key_count + i], &group->sums[i],
					       plan->aggregates[i].kind,
					       node == PLAN_NOTHING ? PLAN_NUMBER : plan->nodes[node].type, diag);
			if (error)
				return error;
		}
	}
	if (plan->finishing)
		computed_set(naive, plan);
	return 0;
}

static int ordered_compare(const void *a, const void *b, void *context)
{
	const struct plan *plan = context;
	const struct naive_result *left = *(struct naive_result *const *)a, *right = *(struct naive_result *const *)b;
	for (uint32_t i = 0; i < plan->order_count; i++) {
		uint32_t output = plan->orders[i].output;
		bool is_absent = left->values[output].is_absent;
		int difference = compare(left->values[output], right->values[output]);
		/* Absent values come last both ways. */
		if (is_absent != right->values[output].is_absent)
			return difference;
		if (difference)
			return plan->orders[i].is_descending ? -difference : difference;
	}
	return left->id < right->id ? -1 : left->id > right->id;
}

/* ---- rows ---- */

static int allocations_read(struct plan_run *run, struct naive *naive, struct diag *diag)
{
	struct heap_scan_plan every = HEAP_SCAN_ALL;
	struct heap_scan scan;
	const struct heap_rows *rows;
	int error = 0;
	every.columns = PACK_EVERYTHING;
	every.filter = run->plan->allocations;
	heap_scan_begin(&scan, run->target.table, &every, NULL);
	while (!error && (rows = heap_scan_next(&scan))) {
		run->read++;
		heap_rows_each (rows, i) {
			const struct naive_row row = {.plan = run->plan,
						      .target = &run->target,
						      .id = rows->first + i,
						      .allocation = heap_rows_get(rows, i),
						      .details = &rows->details[i]};
			row_take(naive, &row);
		}
		error = plan_run_check(run, diag);
	}
	heap_scan_end(&scan);
	return error ? error : plan_run_check(run, diag);
}

static int events_read(struct plan_run *run, struct naive *naive, struct diag *diag)
{
	struct heap_stream *stream = heap_stream_new(run->target.trace, HEAP_ORDER_EVENTS, INT64_MIN, INT64_MAX);
	struct naive_row row = {.plan = run->plan, .target = &run->target};
	struct heap_point point;
	int status;
	while ((status = heap_stream_next(stream, &point, diag)) > 0) {
		row.block = point.block;
		row.at = point.row;
		row_take(naive, &row);
		row.id++;
		if (row.id % SHOWN == 0 && (status = plan_run_check(run, diag)))
			break;
	}
	heap_stream_free(stream);
	return status;
}

static int collect(struct plan_run *run, struct naive *naive, struct diag *diag)
{
	const struct plan *plan = run->plan;
	int error =
		plan->source == COLUMNS_OF_EVENTS ? events_read(run, naive, diag) : allocations_read(run, naive, diag);
	if (!error && plan_is_grouped(plan))
		error = sums_finish(naive, plan, diag);
	if (!error && (plan->order_count || plan->keeps_first_order) && naive->count)
		qsort_r(naive->results, naive->count, sizeof(*naive->results), ordered_compare, (void *)plan);
	naive->is_collected = true;
	return error;
}

static int naive_next(struct plan_run *run, struct plan_rows *rows, struct diag *diag)
{
	struct naive *naive = run->state;
	uint32_t width = plan_width(run->plan);
	int error = naive->is_collected ? 0 : collect(run, naive, diag);
	if (error)
		return error;
	rows->stride = width + 1;
	if (!naive->shown)
		naive->shown = memory_zeroed((size_t)SHOWN * rows->stride, sizeof(*naive->shown));
	rows->cells = naive->shown;
	for (; rows->count < SHOWN && naive->next < naive->count; rows->count++) {
		const struct naive_result *result = naive->results[naive->next++];
		cells_set(run->plan, result, naive->shown + (size_t)rows->count * rows->stride);
	}
	return rows->count > 0;
}

static void naive_end(struct plan_run *run)
{
	struct naive *naive = run->state;
	for (size_t i = 0; i < naive->count; i++) {
		free(naive->results[i]->sums);
		free(naive->results[i]);
	}
	free(naive->results);
	free(naive->shown);
	free(naive);
}

static void run_naive(struct plan_run *run)
{
	run->state = memory_zeroed(1, sizeof(struct naive));
	run->next = naive_next;
	run->end = naive_end;
}

struct plan_run *plan_open_naive(const struct plan *plan, const struct plan_target *target)
{
	return plan_open_as(plan, target, run_naive);
}
