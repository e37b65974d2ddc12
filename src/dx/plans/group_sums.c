/* SPDX-License-Identifier: MIT */
#include "dx/plans/group_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "dx/plans/pipeline.h"
#include "dx/run/interpret.h"
#include "dx/run/keys.h"
#include "dx/run/operators.h"
#include "dx/run/sums.h"

enum { CALLS_MAX = 16 };

/* What a call wants of a group. */
enum group_call_kind { CALL_COUNT, CALL_SUM, CALL_AVERAGE, CALL_MIN, CALL_MAX, CALL_FIRST, CALL_ANY, CALL_KINDS };
static const char *const kind_names[CALL_KINDS] = {"Count", "Sum", "Average", "Min", "Max", "First", "Any"};

struct group_call {
	const struct dx_node *node;
	struct dx_closure closure; /* of its lambda; node NULL: it has none */
	enum group_call_kind kind;
};

/* What a group has of a call. */
struct group_cell {
	struct dx_sum sum; /* count: of Count and Any, too */
	struct dx_value value;
};

struct group_sums {
	struct dx_iterator *groups; /* of dx_group_operator, which has not begun */
	const struct dx_value *lambda;
	struct group_call calls[CALLS_MAX];
	uint32_t call_count, next;
	struct dx_arena arena; /* of keys and values */
	struct dx_keys keys;
	struct group_cell *cells; /* call_count for each group */
	size_t capacity;
	bool is_made;
};

struct group_place {
	const struct group_sums *sums;
	uint32_t group;
};

/* ---- the lambda ---- */

static bool mentions(const struct dx_node *node, const char *name)
{
	if (!node)
		return false;
	if (node->kind == DX_NODE_NAME)
		return !strcmp(node->name, name);
	if (node->kind == DX_NODE_LAMBDA)
		for (uint32_t i = 0; i < node->count; i++)
			if (!strcmp(node->names[i], name))
				return false;
	for (uint32_t i = 0; node->children && i < node->count; i++)
		if (mentions(node->children[i], name))
			return true;
	return mentions(node->first, name) || mentions(node->second, name) || mentions(node->third, name);
}

/* Keep a call on the group, such as g.Sum(x => x.Size). */
static bool call_take(struct group_sums *sums, const struct dx_node *node, const char *name)
{
	const struct dx_node *argument = node->count == 1 ? node->children[0] : NULL;
	unsigned kind = 0;
	while (kind < CALL_KINDS && strcasecmp(kind_names[kind], node->name) != 0)
		kind++;
	bool is_lambda = argument && argument->kind == DX_NODE_LAMBDA && argument->count == 1;
	if (kind == CALL_KINDS || sums->call_count == CALLS_MAX || node->count > 1 || (argument && !is_lambda) ||
	    mentions(argument, name))
		return false;
	sums->calls[sums->call_count++] =
		(struct group_call){node, {argument, sums->lambda->closure->scope}, (enum group_call_kind)kind};
	return true;
}

/* Find the calls on the group. False: something else is done with it, or a lambda that is called later uses it. */
static bool calls_find(struct group_sums *sums, const struct dx_node *node, const char *name)
{
	if (!node || !mentions(node, name))
		return true;
	if (node->kind == DX_NODE_NAME || node->kind == DX_NODE_LAMBDA)
		return false;
	if (node->kind == DX_NODE_CALL && node->first && node->first->kind == DX_NODE_NAME &&
	    !strcmp(node->first->name, name))
		return call_take(sums, node, name);
	for (uint32_t i = 0; node->children && i < node->count; i++)
		if (!calls_find(sums, node->children[i], name))
			return false;
	return calls_find(sums, node->first, name) && calls_find(sums, node->second, name) &&
	       calls_find(sums, node->third, name);
}

static void sums_end(void *context)
{
	struct group_sums *sums = context;
	sums->arena.budget->used_bytes -= sums->capacity * sizeof(*sums->cells);
	dx_keys_fini(&sums->keys);
	dx_arena_fini(&sums->arena);
	free(sums->cells);
	free(sums);
}

/* Begin to sum up the groups of `groups` for the lambda. NULL: it needs the elements. */
static struct group_sums *sums_new(struct dx_query *query, const struct dx_sequence *groups,
				   const struct dx_value *lambda)
{
	const struct dx_node *node = lambda->closure->node;
	struct group_sums *sums = memory_zeroed(1, sizeof(*sums));
	sums->lambda = lambda;
	if (node->count != 1 || !calls_find(sums, node->first, node->names[0])) {
		free(sums);
		return NULL;
	}
	dx_arena_init(&sums->arena, &query->budget);
	dx_keys_init(&sums->keys, query, &sums->arena, groups->argument_count > 1 ? &groups->arguments[1] : NULL);
	dx_on_release(query->arena, sums_end, sums);
	return sums;
}

/* ---- the elements ---- */

static void cells_grow(struct group_sums *sums)
{
	size_t needed = (size_t)sums->keys.count * sums->call_count;
	struct dx_budget *budget = sums->arena.budget;
	if (needed <= sums->capacity)
		return;
	size_t capacity = memory_capacity(sums->capacity, needed);
	sums->cells = memory_resize(sums->cells, capacity, sizeof(*sums->cells));
	memset(sums->cells + sums->capacity, 0, (capacity - sums->capacity) * sizeof(*sums->cells));
	budget->used_bytes += (capacity - sums->capacity) * sizeof(*sums->cells);
	budget->is_exceeded |= budget->used_bytes > budget->limit_bytes;
	sums->capacity = capacity;
}

/* The same as find_extreme() of the collection's methods. */
static void extreme_add(struct dx_query *query, struct group_sums *sums, const struct group_call *call,
			struct group_cell *cell, struct dx_value *value)
{
	int order, direction = call->kind == CALL_MAX ? 1 : -1;
	if (value->kind == DX_ABSENT || cell->value.kind == DX_ERROR)
		return;
	bool is_first = cell->value.kind == DX_ABSENT || value->kind == DX_ERROR;
	if (!is_first && !dx_compare(value, &cell->value, &order))
		*value = dx_error(query, "%s: %s and %s have no order", kind_names[call->kind],
				  dx_kind_name(cell->value.kind), dx_kind_name(value->kind));
	else if (!is_first && order * direction <= 0)
		return;
	cell->value = dx_value_copy(&sums->arena, value);
}

static void cell_add(struct dx_query *query, struct group_sums *sums, const struct group_call *call,
		     struct group_cell *cell, const struct dx_value *element)
{
	const struct dx_value lambda = {.kind = DX_LAMBDA, .closure = &call->closure};
	bool has_lambda = call->closure.node != NULL;
	if ((call->kind == CALL_FIRST || call->kind == CALL_ANY) && cell->sum.count)
		return;
	struct dx_value value = *element;
	if (has_lambda && value.kind != DX_ERROR)
		value = dx_call(query, &lambda, element);
	bool passes = !has_lambda || dx_is_true(&value);
	bool is_condition = call->kind == CALL_COUNT || call->kind == CALL_ANY || call->kind == CALL_FIRST;
	if (is_condition && cell->sum.error.kind == DX_ERROR)
		return;
	if (is_condition && value.kind == DX_ERROR && element->kind != DX_ERROR) {
		cell->sum.error = dx_value_copy(&sums->arena, &value);
		return;
	}
	switch (call->kind) {
	case CALL_COUNT:
	case CALL_ANY:
		cell->sum.count += passes;
		break;
	case CALL_FIRST:
		cell->sum.count += passes;
		if (passes)
			cell->value = dx_value_copy(&sums->arena, element);
		break;
	case CALL_SUM:
	case CALL_AVERAGE:
		if (cell->sum.error.kind != DX_ERROR && !dx_sum_add(query, &cell->sum, &value))
			cell->sum.error = dx_value_copy(&sums->arena, &cell->sum.error);
		break;
	default:
		extreme_add(query, sums, call, cell, &value);
	}
}

/* ---- by a plan ---- */

/* A group's row of a plan has its key, its first element, and what the calls want: up to two outputs each. */
enum { OUTPUT_KEY, OUTPUT_FIRST };

struct planned_call {
	struct dx_plan_member member;
	uint32_t output;
};

static bool needs_order(enum group_call_kind kind)
{
	return kind == CALL_MIN || kind == CALL_MAX;
}

/* The condition of a count, as 1 and 0. */
static bool condition_add(const struct dx_plan_making *making, const struct dx_value *lambda)
{
	uint32_t condition = dx_plan_condition(making, lambda);
	return condition != PLAN_NOTHING &&
	       plan_aggregate(making->plan, PLAN_SUM,
			      plan_apply(making->plan, PLAN_AS_NUMBER, condition, PLAN_NOTHING, PLAN_NOTHING));
}

static bool call_add(const struct dx_plan_making *making, const struct group_call *call, struct planned_call *planned)
{
	const struct dx_value lambda = {.kind = DX_LAMBDA, .closure = &call->closure};
	struct plan *plan = making->plan;
	planned->output = plan->key_count + plan->aggregate_count;
	if (call->kind == CALL_FIRST || call->kind == CALL_ANY)
		return !call->closure.node && plan_aggregate(plan, PLAN_COUNT, PLAN_NOTHING);
	if (call->kind == CALL_COUNT)
		return call->closure.node ? condition_add(making, &lambda)
					  : plan_aggregate(plan, PLAN_COUNT, PLAN_NOTHING);
	if (!call->closure.node)
		return false;
	planned->member = dx_plan_lambda_member(making, &lambda);
	enum dx_plan_shape shape = planned->member.shape;
	if (planned->member.node == PLAN_NOTHING || !dx_plan_has_order(shape))
		return false;
	if (needs_order(call->kind))
		return plan_aggregate(plan, call->kind == CALL_MIN ? PLAN_LEAST : PLAN_GREATEST, planned->member.node);
	return (shape == DX_PLAN_NUMBER || shape == DX_PLAN_ADDRESS) &&
	       plan_aggregate(plan, PLAN_SUM, planned->member.node) &&
	       plan_aggregate(plan, PLAN_COUNT, planned->member.node);
}

static bool groups_plan(const struct dx_plan_making *making, const struct group_sums *sums,
			struct dx_pipeline *pipeline, struct planned_call *calls, struct dx_plan_member *key)
{
	const struct dx_sequence *groups = sums->groups->sequence;
	struct plan *plan = making->plan;
	if (groups->argument_count != 1 || !dx_pipeline_make(pipeline, making, groups->source) || pipeline->selection ||
	    pipeline->order_count || plan->skip || plan->limit != UINT64_MAX)
		return false;
	*key = dx_plan_lambda_member(making, &groups->arguments[0]);
	if (key->node == PLAN_NOTHING || !plan_key(plan, key->node) ||
	    !plan_aggregate(plan, PLAN_LEAST, plan_column(plan, COLUMN_ID)))
		return false;
	for (uint32_t i = 0; i < sums->call_count; i++)
		if (!call_add(making, &sums->calls[i], &calls[i]))
			return false;
	return plan_order(plan, OUTPUT_FIRST, false);
}

static void cell_set(const struct dx_query *query, const struct group_call *call, const struct planned_call *planned,
		     const struct plan_rows *rows, uint32_t row, struct group_cell *cell)
{
	struct plan_value value = plan_cell(rows, row, planned->output);
	if (needs_order(call->kind)) {
		cell->value = dx_plan_value(query, &planned->member, &value);
		return;
	}
	cell->sum.count = value.number;
	if (call->kind != CALL_SUM && call->kind != CALL_AVERAGE)
		return;
	cell->sum.number = (__int128)value.number;
	cell->sum.count = plan_cell(rows, row, planned->output + 1).number;
}

/* Make the group of a row; its first element is read if a call wants it. */
static void group_set(struct dx_query *query, struct group_sums *sums, const struct planned_call *calls,
		      const struct dx_plan_member *key_of, const struct plan_rows *rows, uint32_t row,
		      struct dx_object_reader *reader)
{
	struct dx_mark mark = dx_mark(query->arena);
	struct plan_value key = plan_cell(rows, row, OUTPUT_KEY);
	struct dx_value key_value = dx_plan_value(query, key_of, &key);
	struct dx_element first = {.value = {.kind = DX_ABSENT}};
	uint32_t group = dx_keys_add(&sums->keys, &key_value);
	cells_grow(sums);
	for (uint32_t i = 0; i < sums->call_count; i++) {
		struct group_cell *cell = &sums->cells[(size_t)group * sums->call_count + i];
		cell_set(query, &sums->calls[i], &calls[i], rows, row, cell);
		if (sums->calls[i].kind != CALL_FIRST)
			continue;
		if (first.value.kind == DX_ABSENT)
			dx_object_read(query, reader, plan_cell(rows, row, OUTPUT_FIRST).number, &first);
		cell->value = dx_value_copy(&sums->arena, &first.value);
	}
	dx_release(query->arena, mark);
	dx_step_kept(query, sums->groups);
}

/* Add up all groups by a plan. False: the interpreter has to, and nothing is added yet. Sums of more than 64 bits are
   errors of single groups, and the memory of groups is the interpreter's to complain of. */
static bool sums_plan(struct dx_query *query, struct group_sums *sums)
{
	struct plan plan = {.filter = PLAN_NOTHING};
	const struct dx_plan_making making = {query, &plan, &sums->arena};
	struct dx_pipeline pipeline;
	struct planned_call calls[CALLS_MAX];
	struct dx_plan_member key;
	struct plan_target target;
	struct plan_rows rows;
	struct diag diag = {""};
	int status = -ENOMEM;
	if (groups_plan(&making, sums, &pipeline, calls, &key) && dx_pipeline_target(query, &plan, &target)) {
		struct dx_object_reader reader = {.source = pipeline.source};
		struct plan_run *run = plan_open(&plan, &target);
		while ((status = plan_next(run, &rows, &diag)) > 0 && !query->is_stopped)
			for (uint32_t i = 0; i < rows.count && !query->is_stopped; i++)
				group_set(query, sums, calls, &key, &rows, i, &reader);
		plan_close(run);
		dx_object_reader_end(&reader);
	}
	if (status < 0 && status != -EOVERFLOW && status != -ENOMEM)
		dx_pipeline_failed(query, sums->groups->sequence, status, diag.text);
	plan_fini(&plan);
	return status >= 0 || query->is_stopped;
}

static void sums_make(struct dx_query *query, struct group_sums *sums)
{
	if (sums_plan(query, sums)) {
		sums->is_made = true;
		return;
	}
	const struct dx_value *key_of = &sums->groups->sequence->arguments[0];
	struct dx_element element;
	sums->is_made = true;
	dx_each_kept (query, sums->groups->source, &element, sums->groups) {
		struct dx_value key =
			element.value.kind == DX_ERROR ? element.value : dx_call(query, key_of, &element.value);
		uint32_t group = dx_keys_add(&sums->keys, &key);
		cells_grow(sums);
		for (uint32_t i = 0; i < sums->call_count; i++)
			cell_add(query, sums, &sums->calls[i], &sums->cells[(size_t)group * sums->call_count + i],
				 &element.value);
	}
}

/* ---- the results ---- */

static struct dx_value group_answer(struct dx_query *query, const struct dx_value *group, const struct dx_node *call)
{
	const struct group_place *at = group->data;
	const struct group_sums *sums = at->sums;
	uint32_t i = 0;
	while (i < sums->call_count && sums->calls[i].node != call)
		i++;
	if (i == sums->call_count)
		return dx_error(query, "the group has no such result");
	const struct group_cell *cell = &sums->cells[(size_t)at->group * sums->call_count + i];
	if (cell->sum.error.kind == DX_ERROR)
		return cell->sum.error;
	switch (sums->calls[i].kind) {
	case CALL_COUNT:
		return dx_number(cell->sum.count);
	case CALL_ANY:
		return dx_bool(cell->sum.count > 0);
	case CALL_SUM:
		return dx_sum_result(query, &cell->sum);
	case CALL_AVERAGE:
		return dx_sum_average(query, &cell->sum);
	case CALL_FIRST:
		return cell->sum.count ? cell->value : dx_error(query, "First: there is no such element");
	default:
		return cell->value.kind == DX_ABSENT
			       ? dx_error(query, "%s: there are no elements", kind_names[sums->calls[i].kind])
			       : cell->value;
	}
}

/* A group during the evaluation of the lambda. */
static const struct dx_class group_class = {.name = "group", .help = "a group of elements", .call = group_answer};

/* ---- the sequence ---- */

static struct group_sums *sums_of(const struct dx_iterator *iterator)
{
	return (struct group_sums *)iterator->sequence->arguments[0].data;
}

static void sums_open(struct dx_query *query, struct dx_iterator *iterator)
{
	(void)query;
	sums_of(iterator)->groups = iterator->source;
}

static bool sums_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct group_sums *sums = sums_of(iterator);
	if (!sums->is_made)
		sums_make(query, sums);
	if (query->is_stopped || sums->next == sums->keys.count)
		return false;
	struct group_place *at = dx_new(query->arena, struct group_place, 1);
	*at = (struct group_place){sums, sums->next};
	const struct dx_value group = dx_object(&group_class, at);
	element->index = sums->keys.keys[sums->next++];
	element->value = dx_call(query, sums->lambda, &group);
	return true;
}

static const struct dx_operator sums_operator = {.name = "Select", .open = sums_open, .next = sums_next};

const struct dx_sequence *dx_group_sums_sequence(struct dx_query *query, const struct dx_sequence *sequence)
{
	if (query->is_stopped || sequence->operation != &dx_select_operator ||
	    sequence->source->operation != &dx_group_operator)
		return NULL;
	struct group_sums *sums = sums_new(query, sequence->source, &sequence->arguments[0]);
	if (!sums)
		return NULL;
	struct dx_sequence *made = dx_sequence_new(query, &sums_operator, sequence->source, sequence->column);
	made->argument_count = 1;
	made->arguments[0] = (struct dx_value){.kind = DX_ABSENT, .data = sums};
	return made;
}
