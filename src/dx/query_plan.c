/* SPDX-License-Identifier: MIT */
/*
 * Translates lambdas to the plan's expressions. Whatever has no translation is left to the interpreter, and so is a
 * trace with gaps, whose errors count, too. A comparison is true or false in the language, never absent: a member that
 * an object lacks is unequal to every number, and neither less nor greater.
 */
#include "dx/query_plan.h"

#include <string.h>
#include <strings.h>

#include "dx/debugger.h"
#include "plan/plan.h"

/* ---- members ---- */

static uint32_t action_is(struct plan *plan, uint64_t kind)
{
	return plan_apply(plan, PLAN_EQUAL, plan_column(plan, PLAN_ACTION), plan_number(plan, kind), PLAN_NOTHING);
}

/* The value where the condition is true; absent elsewhere. */
static uint32_t only_if(struct plan *plan, uint32_t condition, uint32_t value)
{
	return plan_apply(plan, PLAN_CHOOSE, condition, value, plan_absent(plan, PLAN_NUMBER));
}

static uint32_t size_node(struct plan *plan)
{
	uint32_t is_sized =
		plan_apply(plan, PLAN_OR, action_is(plan, EVENT_ALLOC), action_is(plan, EVENT_REALLOC), PLAN_NOTHING);
	uint32_t size = plan_column(plan, PLAN_SIZE);
	uint32_t is_known = plan_apply(plan, PLAN_UNEQUAL, size, plan_number(plan, UINT64_MAX), PLAN_NOTHING);
	return only_if(plan, plan_apply(plan, PLAN_AND, is_sized, is_known, PLAN_NOTHING), size);
}

/* The numbers of kinds begin with those of calls of blocks. */
static uint32_t address_node(struct plan *plan)
{
	uint32_t address =
		plan_apply(plan, PLAN_IF_ABSENT, plan_column(plan, PLAN_ADDRESS), plan_number(plan, 0), PLAN_NOTHING);
	uint32_t has_block = plan_apply(plan, PLAN_AT_MOST, plan_column(plan, PLAN_ACTION),
					plan_number(plan, EVENT_FREE), PLAN_NOTHING);
	return only_if(plan, has_block, address);
}

static uint32_t previous_node(struct plan *plan)
{
	uint32_t previous = plan_apply(plan, PLAN_IF_ABSENT, plan_column(plan, PLAN_PREVIOUS_ADDRESS),
				       plan_number(plan, 0), PLAN_NOTHING);
	return only_if(plan, action_is(plan, EVENT_REALLOC), previous);
}

static const struct {
	const char *name;
	uint32_t (*make)(struct plan *plan);
} members[] = {{"Size", size_node}, {"Address", address_node}, {"PreviousAddress", previous_node}};

/* ---- lambdas ---- */

static bool is_member(const struct dx_node *node, const char *parameter)
{
	return node->kind == DX_NODE_MEMBER && node->first->kind == DX_NODE_NAME &&
	       !strcmp(node->first->name, parameter);
}

static uint32_t number_node(struct plan *plan, const struct dx_node *node, const char *parameter)
{
	if (node->kind == DX_NODE_LITERAL && node->literal.kind == DX_NUMBER && !node->literal.is_signed)
		return plan_number(plan, node->literal.number);
	for (size_t i = 0; is_member(node, parameter) && i < sizeof(members) / sizeof(members[0]); i++)
		if (!strcasecmp(members[i].name, node->name))
			return members[i].make(plan);
	return PLAN_NOTHING;
}

static enum plan_operator comparison_of(unsigned operation)
{
	static const uint8_t operators[] = {[DX_LESS] = PLAN_LESS,          [DX_GREATER] = PLAN_GREATER,
					    [DX_LESS_EQUAL] = PLAN_AT_MOST, [DX_GREATER_EQUAL] = PLAN_AT_LEAST,
					    [DX_EQUAL] = PLAN_EQUAL,        [DX_UNEQUAL] = PLAN_UNEQUAL};
	return operators[operation];
}

/* h.Action == "Free", either way round. */
static uint32_t action_node(struct plan *plan, const struct dx_node *node, const char *parameter)
{
	static const char *const actions[] = {
#define X(id, action, word) action,
		EVENT_KINDS(X)
#undef X
	};
	const struct dx_node *member = is_member(node->first, parameter) ? node->first : node->second,
			     *text = member == node->first ? node->second : node->first;
	if (!is_member(member, parameter) || strcasecmp(member->name, "Action") != 0 || text->kind != DX_NODE_LITERAL ||
	    text->literal.kind != DX_TEXT || (node->operation != DX_EQUAL && node->operation != DX_UNEQUAL))
		return PLAN_NOTHING;
	for (uint64_t kind = 0; kind <= EVENT_PROTECT; kind++)
		if (!strcmp(actions[kind], text->literal.text))
			return plan_apply(plan, comparison_of(node->operation), plan_column(plan, PLAN_ACTION),
					  plan_number(plan, kind), PLAN_NOTHING);
	return plan_truth(plan, node->operation == DX_UNEQUAL);
}

/* Both sides absent: neither less nor greater, nor unequal. */
static uint32_t comparison_node(struct plan *plan, const struct dx_node *node, const char *parameter)
{
	uint32_t action = action_node(plan, node, parameter);
	if (action != PLAN_NOTHING)
		return action;
	uint32_t one = number_node(plan, node->first, parameter), other = number_node(plan, node->second, parameter);
	if (one == PLAN_NOTHING || other == PLAN_NOTHING)
		return PLAN_NOTHING;
	uint32_t compared = plan_apply(plan, comparison_of(node->operation), one, other, PLAN_NOTHING);
	uint32_t otherwise = plan_truth(plan, false);
	if (node->operation == DX_UNEQUAL)
		otherwise = plan_apply(
			plan, PLAN_UNEQUAL, plan_apply(plan, PLAN_IS_ABSENT, one, PLAN_NOTHING, PLAN_NOTHING),
			plan_apply(plan, PLAN_IS_ABSENT, other, PLAN_NOTHING, PLAN_NOTHING), PLAN_NOTHING);
	return plan_apply(plan, PLAN_IF_ABSENT, compared, otherwise, PLAN_NOTHING);
}

static uint32_t truth_node(struct plan *plan, const struct dx_node *node, const char *parameter)
{
	if (node->kind == DX_NODE_LITERAL && node->literal.kind == DX_BOOL)
		return plan_truth(plan, node->literal.truth);
	if (node->kind == DX_NODE_UNARY && node->operation == DX_NOT)
		return plan_apply(plan, PLAN_NOT, truth_node(plan, node->first, parameter), PLAN_NOTHING, PLAN_NOTHING);
	if (node->kind != DX_NODE_BINARY)
		return PLAN_NOTHING;
	if (node->operation == DX_AND || node->operation == DX_OR)
		return plan_apply(plan, node->operation == DX_AND ? PLAN_AND : PLAN_OR,
				  truth_node(plan, node->first, parameter), truth_node(plan, node->second, parameter),
				  PLAN_NOTHING);
	bool is_comparison = node->operation >= DX_LESS && node->operation <= DX_UNEQUAL;
	return is_comparison ? comparison_node(plan, node, parameter) : PLAN_NOTHING;
}

static uint32_t condition_node(struct plan *plan, const struct dx_value *lambda)
{
	const struct dx_node *node = lambda->closure->node;
	return node->count == 1 ? truth_node(plan, node->first, node->names[0]) : PLAN_NOTHING;
}

/* ---- pipelines ---- */

static bool has_annotated_heaps(const struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->entry_count; i++)
		if (function_is_annotation(dictionary->entries[i].function))
			return true;
	return false;
}

/* The filter of Heap() and all Where behind it. False: something else is in the pipeline. */
static bool filter_make(struct dx_query *query, struct plan *plan, const struct dx_sequence *sequence)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	bool with_nested;
	plan->filter = plan_apply(plan, PLAN_AT_MOST, plan_column(plan, PLAN_ACTION), plan_number(plan, EVENT_PROTECT),
				  PLAN_NOTHING);
	for (; sequence->operator== & dx_where_operator; sequence = sequence->source) {
		uint32_t condition = condition_node(plan, &sequence->arguments[0]);
		if (condition == PLAN_NOTHING)
			return false;
		plan->filter = plan_apply(plan, PLAN_AND, plan->filter, condition, PLAN_NOTHING);
	}
	return plan->filter != PLAN_NOTHING && dx_events_are_all(sequence, &with_nested) && !dictionary->gap_count &&
	       (with_nested || !has_annotated_heaps(dictionary));
}

/* Run the plan, whose only row has one number. */
static bool plan_answer(struct dx_query *query, const struct plan *plan, struct dx_value *result)
{
	const struct plan_target target = {.trace = query->session->trace,
					   .table = query->session->table,
					   .memory_bytes = query->budget.limit_bytes,
					   .is_cancelled = query->is_cancelled};
	struct plan_run *run = plan_open(plan, &target);
	struct plan_rows rows;
	struct diag diag = {""};
	bool is_answered = plan_next(run, &rows, &diag) > 0 && rows.count == 1;
	if (is_answered) {
		struct plan_value value = plan_cell(&rows, 0, 0);
		*result = dx_number(value.is_absent ? 0 : value.number);
	}
	plan_close(run);
	if (query->is_interrupted && *query->is_interrupted)
		dx_stop(query, -1, "interrupted");
	return is_answered || query->is_stopped;
}

bool dx_plan_count(struct dx_query *query, const struct dx_method_call *call, struct dx_value *result)
{
	struct plan plan;
	plan_init(&plan, PLAN_EVENTS);
	bool is_answered = !query->is_naive && filter_make(query, &plan, call->receiver.sequence);
	if (is_answered && call->count) {
		uint32_t condition = condition_node(&plan, &call->arguments[0]);
		plan.filter = plan_apply(&plan, PLAN_AND, plan.filter, condition, PLAN_NOTHING);
		is_answered = condition != PLAN_NOTHING && plan.filter != PLAN_NOTHING;
	}
	is_answered =
		is_answered && plan_aggregate(&plan, PLAN_COUNT, PLAN_NOTHING) && plan_answer(query, &plan, result);
	plan_fini(&plan);
	return is_answered;
}

bool dx_plan_sum(struct dx_query *query, const struct dx_method_call *call, struct dx_value *result)
{
	struct plan plan;
	plan_init(&plan, PLAN_EVENTS);
	bool is_answered = !query->is_naive && call->count && call->arguments[0].closure->node->count == 1 &&
			   filter_make(query, &plan, call->receiver.sequence);
	if (is_answered) {
		const struct dx_node *node = call->arguments[0].closure->node;
		uint32_t number = number_node(&plan, node->first, node->names[0]);
		is_answered = number != PLAN_NOTHING && plan_aggregate(&plan, PLAN_SUM, number) &&
			      plan_answer(query, &plan, result);
	}
	plan_fini(&plan);
	return is_answered;
}
