/* SPDX-License-Identifier: MIT */
/*
 * Keys and sums are the plan's. What lambdas make of them is the interpreter's, by group_calls.h: for orders and
 * conditions once for each group, unless a sum itself is the order; for the Select only of groups that are shown.
 *
 * A run may come to what only the interpreter can do: a sum of more than 64 bits is an error of one group, and so are
 * values of several kinds in one order. It comes to that before the first group is shown; then the sequence is
 * interpreted.
 */
#include "dx/plans/group_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "dx/plans/explain.h"
#include "dx/plans/group_calls.h"
#include "dx/plans/group_sums.h"
#include "dx/plans/pipeline.h"
#include "dx/plans/plan_closures.h"
#include "dx/plans/plan_ids.h"
#include "dx/plans/plan_keys.h"
#include "dx/run/interpret.h"
#include "dx/run/operators.h"

enum { STEPS_MAX = 8 };

/* What a call has in the plan. */
struct planned_call {
	struct dx_plan_member member;
	uint32_t output, count; /* count: of the values of an average */
};

/* A lambda over groups: of a condition or of an order whose values are computed. */
struct group_function {
	const struct dx_closure *closure;
	uint32_t value; /* of an order: its computed value; PLAN_NOTHING: it is a condition */
	uint8_t kind;   /* of an order: that of all its values; DX_ABSENT: there was none */
};

struct group_plan {
	struct dx_query *query;
	const struct dx_sequence *sequence, *groups;
	struct plan plan;
	struct plan_target target;
	struct dx_pipeline pipeline;
	struct dx_plan_keys *keys;
	struct dx_group_calls calls;
	struct planned_call planned[DX_GROUP_CALLS_MAX];
	const struct dx_closure *select;
	struct group_function lambdas[2 * STEPS_MAX];
	uint32_t lambda_count;
	uint32_t absence; /* the computed value that says if the key is absent; PLAN_NOTHING: it never is */
	struct plan_group_function finishing;
	const char *error;       /* that groups have in place of a value of an order; NULL: none has */
	uint32_t id;             /* the output with the number of the first row; PLAN_NOTHING: nobody asks for it */
	bool is_wrong, is_count; /* is_count: no element is made, and a Select may be missing */
	/* The run. */
	struct plan_run *run;
	struct plan_rows rows;
	uint32_t next;
	struct dx_object_reader reader;
	struct dx_iterator *interpreted; /* in place of it */
};

static void group_plan_end(void *context)
{
	struct group_plan *planned = context;
	plan_close(planned->run);
	dx_object_reader_end(&planned->reader);
	dx_plan_keys_free(planned->keys);
	plan_fini(&planned->plan);
	free(planned);
}

/* ---- lambdas behind the Select ---- */

struct member_values {
	struct dx_arena *arena;
	const char *parameter;        /* of the lambda behind */
	const struct dx_node *select; /* the copied lambda of the Select */
};

/* Return what the Select makes of the member; NULL: nothing, or two members have the name. */
static struct dx_node *record_member(const struct dx_node *record, const char *name)
{
	struct dx_node *found = NULL;
	for (uint32_t i = 0; i < record->count; i++) {
		if (strcmp(record->names[i], name) != 0)
			continue;
		if (found)
			return NULL;
		found = record->children[i];
	}
	return found;
}

/* Put what the Select makes in place of the parameter, or of its members. */
static bool substitute(const struct member_values *with, struct dx_node **place)
{
	struct dx_node *node = *place, *made = with->select->first;
	if (!node || !dx_node_mentions(node, with->parameter))
		return true;
	bool is_record = made->kind == DX_NODE_RECORD;
	bool is_member = node->kind == DX_NODE_MEMBER && node->first->kind == DX_NODE_NAME;
	if (node->kind == DX_NODE_NAME || (is_record && is_member)) {
		*place = node->kind == DX_NODE_MEMBER ? record_member(made, node->name) : is_record ? NULL : made;
		return *place;
	}
	if (node->kind == DX_NODE_LAMBDA)
		return false;
	*place = node = dx_node_copy_flat(with->arena, node);
	for (uint32_t i = 0; node->children && i < node->count; i++)
		if (!substitute(with, &node->children[i]))
			return false;
	return substitute(with, &node->first) && substitute(with, &node->second) && substitute(with, &node->third);
}

/* Return a lambda over what the Select makes as one over groups; NULL: there is none. */
static const struct dx_closure *lambda_behind(const struct group_plan *planned, const struct dx_closure *lambda)
{
	struct dx_arena *arena = planned->query->arena;
	const struct dx_node *select = planned->select->node, *node = lambda->node;
	if (node->count != 1 || lambda->scope != planned->select->scope ||
	    (strcmp(node->names[0], select->names[0]) != 0 && dx_node_mentions(node->first, select->names[0])))
		return NULL;
	const struct member_values with = {arena, node->names[0], select};
	struct dx_node *made = dx_node_copy_flat(arena, select);
	struct dx_closure *closure = dx_new(arena, struct dx_closure, 1);
	*closure = (struct dx_closure){made, lambda->scope};
	made->first = node->first;
	return substitute(&with, &made->first) ? closure : NULL;
}

/* ---- calls ---- */

static bool needs_order(enum dx_group_call_kind kind)
{
	return kind == DX_GROUP_MIN || kind == DX_GROUP_MAX;
}

/* Set *output to the aggregate, which another call may have. */
static bool aggregate_set(struct plan *plan, enum plan_aggregate_kind kind, uint32_t node, uint32_t *output)
{
	uint32_t i = 0;
	while (i < plan->aggregate_count && (plan->aggregates[i].kind != kind || plan->aggregates[i].node != node))
		i++;
	*output = plan->key_count + i;
	return i < plan->aggregate_count || plan_aggregate(plan, kind, node);
}

/* The condition of a count, as 1 and 0. */
static bool condition_add(const struct dx_plan_making *making, const struct dx_value *lambda, uint32_t *output)
{
	uint32_t condition = dx_plan_condition(making, lambda);
	return condition != PLAN_NOTHING &&
	       aggregate_set(making->plan, PLAN_SUM,
			     plan_apply(making->plan, PLAN_AS_NUMBER, condition, PLAN_NOTHING, PLAN_NOTHING), output);
}

static bool first_add(struct group_plan *planned)
{
	return aggregate_set(&planned->plan, PLAN_LEAST, plan_column(&planned->plan, COLUMN_ID), &planned->id);
}

static bool call_add(const struct dx_plan_making *making, struct group_plan *planned, uint32_t number)
{
	const struct dx_group_call *call = &planned->calls.items[number];
	const struct dx_value lambda = {.kind = DX_LAMBDA, .closure = &call->closure};
	struct planned_call *of = &planned->planned[number];
	struct plan *plan = making->plan;
	bool has_lambda = call->closure.node;
	if (call->kind == DX_GROUP_KEY)
		return true;
	if (call->kind == DX_GROUP_FIRST)
		return !has_lambda && (planned->id != PLAN_NOTHING || first_add(planned));
	if (call->kind == DX_GROUP_COUNT && has_lambda)
		return condition_add(making, &lambda, &of->output);
	if (call->kind == DX_GROUP_ANY || call->kind == DX_GROUP_COUNT)
		return !has_lambda && aggregate_set(plan, PLAN_COUNT, PLAN_NOTHING, &of->output);
	if (!has_lambda)
		return false;
	of->member = dx_plan_lambda_member(making, &lambda);
	if (of->member.node == PLAN_NOTHING || !dx_plan_has_order(of->member.shape))
		return false;
	if (needs_order(call->kind))
		return aggregate_set(plan, call->kind == DX_GROUP_MIN ? PLAN_LEAST : PLAN_GREATEST, of->member.node,
				     &of->output);
	return aggregate_set(plan, PLAN_SUM, of->member.node, &of->output) &&
	       (call->kind == DX_GROUP_SUM || aggregate_set(plan, PLAN_COUNT, of->member.node, &of->count));
}

/* A group while lambdas are evaluated. */
struct group_row {
	struct dx_group group;
	struct group_plan *planned;
	const struct plan_rows *rows;
	uint32_t row;
};

static struct dx_value first_read(struct dx_query *query, const struct group_row *at)
{
	struct dx_element first = {.value = {.kind = DX_ABSENT}};
	struct group_plan *planned = at->planned;
	dx_object_read(query, &planned->reader, plan_cell(at->rows, at->row, planned->id).number, &first);
	return first.value;
}

static struct dx_value row_answer(struct dx_query *query, const struct dx_group *group, uint32_t number)
{
	const struct group_row *at = (const struct group_row *)group;
	const struct group_plan *planned = at->planned;
	const struct dx_group_call *call = &planned->calls.items[number];
	const struct planned_call *of = &planned->planned[number];
	struct dx_group_cell cell = {.value = {.kind = DX_ABSENT}};
	if (call->kind == DX_GROUP_KEY) {
		struct dx_value key = dx_plan_keys_value(planned->keys, at->rows, at->row);
		return dx_group_key_part(&planned->calls, &key, call->part);
	}
	if (call->kind == DX_GROUP_FIRST)
		return first_read(query, at);
	struct plan_value value = plan_cell(at->rows, at->row, of->output);
	if (needs_order(call->kind)) {
		cell.value = dx_plan_value(query, &of->member, &value);
	} else {
		cell.sum.number = value.type == PLAN_TIME ? (__int128)value.time_ns : (__int128)value.number;
		cell.sum.count = value.number;
		if (call->kind == DX_GROUP_AVERAGE)
			cell.sum.count = plan_cell(at->rows, at->row, of->count).number;
	}
	return dx_group_call_answer(query, call, &cell);
}

static struct dx_value row_call(struct group_plan *planned, const struct dx_closure *closure,
				const struct plan_rows *rows, uint32_t row)
{
	struct group_row *at = dx_new(planned->query->arena, struct group_row, 1);
	*at = (struct group_row){{&planned->calls, row_answer}, planned, rows, row};
	const struct dx_value group = dx_object(&dx_group_class, at), lambda = {.kind = DX_LAMBDA, .closure = closure};
	return dx_call(planned->query, &lambda, &group);
}

/* ---- orders and conditions ---- */

static uint64_t real_order(double real)
{
	uint64_t bits;
	real = real == 0 ? 0 : real; /* -0 */
	memcpy(&bits, &real, sizeof(bits));
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* Set *number, which has the order of the language among values of an order. Errors come last.
   False: the value is something else, or of another kind than the values before. */
static bool order_number(struct group_plan *planned, struct group_function *lambda, const struct dx_value *value,
			 uint64_t *number)
{
	if (value->kind == DX_ERROR) {
		if (!planned->error)
			planned->error = dx_copy_text(&planned->query->whole, value->text, strlen(value->text));
		*number = UINT64_MAX;
		return !strcmp(planned->error, value->text);
	}
	lambda->kind = lambda->kind == DX_ABSENT ? value->kind : lambda->kind;
	*number = value->kind == DX_REAL ? real_order(value->real) : value->number ^ UINT64_C(1) << 63;
	return value->kind == lambda->kind && (value->kind == DX_REAL || value->kind == DX_NUMBER) &&
	       (value->kind == DX_REAL || value->is_signed || value->number <= INT64_MAX) && *number != UINT64_MAX;
}

/* The plan's finishing. */
static bool group_finish(void *context, const struct plan_rows *group, uint64_t *values, uint64_t *absent)
{
	struct group_plan *planned = context;
	struct dx_query *query = planned->query;
	bool is_wanted = true;
	planned->is_wrong |= dx_plan_keys_are_wrong(planned->keys);
	for (uint32_t i = 0; i < planned->lambda_count && is_wanted && !planned->is_wrong && !query->is_stopped; i++) {
		struct group_function *lambda = &planned->lambdas[i];
		struct dx_mark mark = dx_mark(query->arena);
		struct dx_value value = row_call(planned, lambda->closure, group, 0);
		if (lambda->value == PLAN_NOTHING) {
			is_wanted = dx_is_true(&value);
			planned->is_wrong |= value.kind == DX_ERROR;
		} else if (value.kind == DX_ABSENT) {
			*absent |= UINT64_C(1) << lambda->value;
		} else {
			planned->is_wrong |= !order_number(planned, lambda, &value, &values[lambda->value]);
		}
		dx_release(query->arena, mark);
		dx_step(query, planned->sequence->operation->name, planned->sequence->column);
	}
	if (planned->absence != PLAN_NOTHING)
		values[planned->absence] = dx_plan_keys_are_absent(planned->keys, group, 0);
	return is_wanted && !planned->is_wrong && !query->is_stopped;
}

/* The output that is the order itself; PLAN_NOTHING: it is to be computed. */
static uint32_t order_output(const struct group_plan *planned, const struct dx_closure *lambda)
{
	uint32_t call = dx_group_calls_find(&planned->calls, lambda->node->first);
	if (call == planned->calls.count)
		return PLAN_NOTHING;
	switch (planned->calls.items[call].kind) {
	case DX_GROUP_COUNT:
	case DX_GROUP_SUM:
		return planned->planned[call].output;
	case DX_GROUP_KEY:
		return dx_plan_keys_order(planned->keys, planned->calls.items[call].part);
	default:
		return PLAN_NOTHING;
	}
}

/* ---- the chain ---- */

/* The methods behind GroupBy(), the last one first. */
struct group_chain {
	const struct dx_sequence *steps[STEPS_MAX];
	const struct dx_closure *lambdas[STEPS_MAX]; /* over groups */
	uint32_t count, select;                      /* select: the place of it */
};

/* Set the methods up to GroupBy(), without Skip and Take at the end. False: it is another chain. */
static bool chain_read(struct group_plan *planned, struct group_chain *chain)
{
	const struct dx_sequence *at = planned->sequence;
	*chain = (struct group_chain){.select = STEPS_MAX};
	while (at->source && (at->operation == &dx_skip_operator || at->operation == &dx_take_operator))
		at = at->source;
	for (; at->source && at->operation != &dx_group_operator; at = at->source) {
		bool is_select = at->operation == &dx_select_operator;
		if (chain->count == STEPS_MAX || (is_select && chain->select < STEPS_MAX) ||
		    (!is_select && at->operation != &dx_where_operator && !dx_operator_is_order(at->operation)) ||
		    (dx_operator_is_order(at->operation) && at->argument_count != 1) ||
		    (dx_operator_is_then(at->operation) && !dx_operator_is_order(at->source->operation)))
			return false;
		if (is_select)
			chain->select = chain->count;
		chain->steps[chain->count++] = at;
	}
	planned->groups = at;
	return at->operation == &dx_group_operator && at->argument_count == 1 &&
	       (chain->select < STEPS_MAX || planned->is_count);
}

/* Set the lambdas, those before the Select first. */
static bool lambdas_take(struct group_plan *planned, struct group_chain *chain)
{
	for (uint32_t i = chain->count; i-- > 0;) {
		const struct dx_closure *lambda = chain->steps[i]->arguments[0].closure;
		bool is_behind = chain->select < STEPS_MAX && i < chain->select;
		chain->lambdas[i] =
			!is_behind ? dx_group_calls_take(&planned->calls, lambda) : lambda_behind(planned, lambda);
		if (!chain->lambdas[i])
			return false;
		if (i == chain->select)
			planned->select = chain->lambdas[i];
	}
	return true;
}

/* Conditions, and orders that are no output, are computed for each group. */
static void lambda_add(struct group_plan *planned, const struct dx_closure *closure, bool is_order)
{
	struct group_function *lambda = &planned->lambdas[planned->lambda_count++];
	*lambda = (struct group_function){closure, is_order ? planned->finishing.count++ : PLAN_NOTHING, DX_ABSENT};
}

/* Orders go from the last OrderBy to the first one, each before its ThenBy (pipeline.c). */
static bool orders_make(struct group_plan *planned, const struct group_chain *chain)
{
	uint32_t outputs[STEPS_MAX], base;
	for (uint32_t i = 0; i < chain->count; i++) {
		bool is_order = dx_operator_is_order(chain->steps[i]->operation);
		outputs[i] = is_order ? order_output(planned, chain->lambdas[i]) : PLAN_NOTHING;
		if (i == chain->select || (is_order && outputs[i] != PLAN_NOTHING))
			continue;
		lambda_add(planned, chain->lambdas[i], is_order);
	}
	planned->absence = dx_plan_keys_may_be_absent(planned->keys) ? planned->finishing.count++ : PLAN_NOTHING;
	planned->finishing.finish = group_finish;
	planned->finishing.context = planned;
	planned->plan.finishing = &planned->finishing;
	base = planned->plan.key_count + planned->plan.aggregate_count;
	if (plan_width(&planned->plan) > PLAN_OUTPUTS_MAX)
		return false;
	for (uint32_t i = 0, computed = 0; i < chain->count; i++)
		if (i != chain->select && dx_operator_is_order(chain->steps[i]->operation) &&
		    outputs[i] == PLAN_NOTHING)
			outputs[i] = base + computed++;
	for (uint32_t first = 0, end; first < chain->count; first = end) {
		for (end = first; dx_operator_is_then(chain->steps[end]->operation);)
			end++;
		end++;
		for (uint32_t i = end; i-- > first;)
			if (dx_operator_is_order(chain->steps[i]->operation) &&
			    !plan_order(&planned->plan, outputs[i],
					dx_operator_is_descending(chain->steps[i]->operation)))
				return false;
	}
	/* The group whose key is absent comes last. */
	return planned->absence == PLAN_NOTHING || plan_order(&planned->plan, base + planned->absence, false);
}

static bool group_plan_make(const struct dx_plan_making *making, struct group_plan *planned)
{
	struct plan *plan = &planned->plan;
	struct group_chain chain;
	struct dx_query *query = making->query;
	if (!chain_read(planned, &chain) || !dx_pipeline_make(&planned->pipeline, making, planned->groups->source))
		return false;
	if (planned->pipeline.selection || planned->pipeline.order_count || plan->skip || plan->limit != UINT64_MAX)
		return dx_plan_refuse(query, planned->groups, "before it, only Where() has a translation");
	planned->calls.key = planned->groups->arguments[0].closure->node;
	planned->keys = dx_plan_keys_new(making, &planned->groups->arguments[0]);
	if (!planned->keys)
		return dx_plan_refuse(query, planned->groups, "the key is no column");
	if (!lambdas_take(planned, &chain))
		return dx_plan_refuse(query, planned->sequence, "groups are used for more than key, counts and sums");
	for (uint32_t i = 0; i < planned->calls.count; i++)
		if (!call_add(making, planned, i))
			return dx_plan_refuse(query, planned->sequence, "what is counted or summed is no column");
	plan->keeps_first_order = true;
	if (!orders_make(planned, &chain))
		return false;
	/* First elements are read in the order of events; that of the last group, whose key is absent, anew. */
	bool has_order = plan->order_count > (planned->absence != PLAN_NOTHING);
	if (planned->id != PLAN_NOTHING && (has_order || planned->lambda_count) && plan->source == COLUMNS_OF_EVENTS)
		return dx_plan_refuse(query, planned->sequence, "First() gives calls in the order of the trace only");
	dx_pipeline_cut(plan, planned->sequence);
	return dx_plan_ready(making, planned->sequence, &planned->target);
}

/* ---- the sequence ---- */

/* The interpreter's way, with sums in place of groups where that is enough. */
static void interpret(struct dx_query *query, struct group_plan *planned, struct dx_iterator *iterator)
{
	static const struct dx_planner sums = {.sequence = dx_group_sums_sequence};
	const struct dx_planner *planner = query->planner;
	struct dx_arena *arena = query->arena;
	plan_close(planned->run);
	planned->run = NULL;
	query->planner = &sums;
	query->arena = iterator->home;
	planned->interpreted = dx_open(query, planned->sequence);
	query->arena = arena;
	query->planner = planner;
}

/* Get the next rows. False: there are none, or the sequence is interpreted. */
static bool rows_next(struct dx_query *query, struct group_plan *planned, struct dx_iterator *iterator)
{
	struct diag diag = {""};
	bool is_first = !planned->run;
	if (is_first)
		planned->run = plan_open(&planned->plan, &planned->target);
	int status = plan_next(planned->run, &planned->rows, &diag);
	planned->next = 0;
	if (query->is_stopped)
		return false;
	if (planned->is_wrong || dx_plan_keys_are_wrong(planned->keys) || status == -EOVERFLOW || status == -ENOMEM)
		interpret(query, planned, iterator);
	else if (status < 0)
		dx_pipeline_failed(query, planned->groups, status, diag.text);
	return status > 0 && !planned->interpreted;
}

static bool groups_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct group_plan *planned = (struct group_plan *)iterator->sequence->arguments[0].data;
	if (!planned->interpreted && planned->next == planned->rows.count && !rows_next(query, planned, iterator) &&
	    !planned->interpreted)
		return false;
	if (planned->interpreted)
		return dx_next(query, planned->interpreted, element);
	element->index = dx_plan_keys_value(planned->keys, &planned->rows, planned->next);
	element->value = row_call(planned, planned->select, &planned->rows, planned->next++);
	return true;
}

static const struct dx_operator groups_operator = {.name = "GroupBy", .next = groups_next};

/* Return the plan of the sequence; NULL: it has none. */
static struct group_plan *group_plan_new(struct dx_query *query, const struct dx_sequence *sequence, bool is_count)
{
	if (query->is_stopped)
		return NULL;
	struct group_plan *planned = memory_zeroed(1, sizeof(*planned));
	const struct dx_plan_making making = {query, &planned->plan, query->arena};
	planned->query = query;
	planned->sequence = sequence;
	planned->is_count = is_count;
	planned->plan.filter = planned->id = PLAN_NOTHING;
	planned->calls.arena = query->arena;
	if (!group_plan_make(&making, planned)) {
		group_plan_end(planned);
		return NULL;
	}
	dx_explain(query, sequence, &planned->plan);
	planned->reader.source = planned->pipeline.source;
	return planned;
}

bool dx_group_plan_count(struct dx_query *query, const struct dx_sequence *sequence, struct dx_value *result)
{
	struct dx_mark mark = dx_mark(query->arena);
	struct group_plan *planned = group_plan_new(query, sequence, true);
	struct diag diag = {""};
	uint64_t count = 0;
	int status = -ENOTSUP;
	if (planned) {
		planned->run = plan_open(&planned->plan, &planned->target);
		while ((status = plan_next(planned->run, &planned->rows, &diag)) > 0)
			count += planned->rows.count;
		if (planned->is_wrong || dx_plan_keys_are_wrong(planned->keys))
			status = -ENOTSUP;
		group_plan_end(planned);
	}
	dx_release(query->arena, mark);
	*result = dx_number(count);
	return !status || query->is_stopped;
}

const struct dx_sequence *dx_group_plan_sequence(struct dx_query *query, const struct dx_sequence *sequence)
{
	struct group_plan *planned = group_plan_new(query, sequence, false);
	if (!planned)
		return NULL;
	dx_on_release(query->arena, group_plan_end, planned);
	struct dx_sequence *made = dx_sequence_new(query, &groups_operator, NULL, sequence->column);
	made->argument_count = 1;
	made->arguments[0] = (struct dx_value){.kind = DX_ABSENT, .data = planned};
	return made;
}
