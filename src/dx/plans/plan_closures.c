/* SPDX-License-Identifier: MIT */
#include "dx/plans/plan_closures.h"

#include <assert.h>
#include <string.h>

#include "dx/core/syntax.h"
#include "dx/plans/plan_ids.h"
#include "dx/plans/plan_numbers.h"

static struct dx_plan_member member_of(const struct dx_plan_making *making, const struct dx_node *node,
				       const char *parameter)
{
	bool is_member = node->kind == DX_NODE_MEMBER && node->first->kind == DX_NODE_NAME &&
			 !strcmp(node->first->name, parameter);
	return is_member ? dx_plan_member_of(making, node->name) : (struct dx_plan_member){.node = PLAN_NOTHING};
}

struct dx_plan_member dx_plan_node_member(const struct dx_plan_making *making, const struct dx_node *node,
					  const char *parameter)
{
	return node->kind == DX_NODE_MEMBER ? member_of(making, node, parameter)
					    : dx_plan_arithmetic(making, node, parameter);
}

struct dx_plan_member dx_plan_lambda_member(const struct dx_plan_making *making, const struct dx_value *lambda)
{
	assert(lambda->kind == DX_LAMBDA);
	const struct dx_node *node = lambda->closure->node;
	return node->count == 1 ? dx_plan_node_member(making, node->first, node->names[0])
				: (struct dx_plan_member){.node = PLAN_NOTHING};
}

/* ---- conditions ---- */

static enum plan_operator comparison_of(unsigned operation)
{
	static const uint8_t operators[] = {[DX_LESS] = PLAN_LESS,          [DX_GREATER] = PLAN_GREATER,
					    [DX_LESS_EQUAL] = PLAN_AT_MOST, [DX_GREATER_EQUAL] = PLAN_AT_LEAST,
					    [DX_EQUAL] = PLAN_EQUAL,        [DX_UNEQUAL] = PLAN_UNEQUAL};
	return operators[operation];
}

static uint32_t truth_or(struct plan *plan, uint32_t truth, bool otherwise)
{
	return plan_apply(plan, PLAN_IF_ABSENT, truth, plan_truth(plan, otherwise), PLAN_NOTHING);
}

/* h.Action == "Free", either way round. */
static uint32_t text_comparison(const struct dx_plan_making *making, const struct dx_node *node,
				const struct dx_plan_member *member, const char *text)
{
	struct plan *plan = making->plan;
	bool is_unequal = node->operation == DX_UNEQUAL;
	if (node->operation != DX_EQUAL && !is_unequal)
		return PLAN_NOTHING;
	if (member->shape == DX_PLAN_ENTRY) {
		uint32_t is_equal = truth_or(plan, dx_plan_entries_lookup(making, member->node, text), false);
		return is_unequal ? plan_apply(plan, PLAN_NOT, is_equal, PLAN_NOTHING, PLAN_NOTHING) : is_equal;
	}
	for (uint32_t i = 0; i < member->word_count; i++)
		if (!strcmp(member->words[i], text))
			return plan_apply(plan, comparison_of(node->operation), member->node, plan_number(plan, i),
					  PLAN_NOTHING);
	return plan_truth(plan, is_unequal);
}

static bool is_text(const struct dx_node *node)
{
	return node->kind == DX_NODE_LITERAL && node->literal.kind == DX_TEXT;
}

static bool is_null(const struct dx_node *node)
{
	return node->kind == DX_NODE_LITERAL && node->literal.kind == DX_ABSENT;
}

static uint32_t is_absent(struct plan *plan, uint32_t node)
{
	return plan_apply(plan, PLAN_IS_ABSENT, node, PLAN_NOTHING, PLAN_NOTHING);
}

/* h.Size == null, either way round. */
static uint32_t null_comparison(const struct dx_plan_making *making, const struct dx_node *node, const char *parameter)
{
	struct plan *plan = making->plan;
	const struct dx_node *of = is_null(node->first) ? node->second : node->first;
	struct dx_plan_member member = dx_plan_node_member(making, of, parameter);
	if (member.node == PLAN_NOTHING || (node->operation != DX_EQUAL && node->operation != DX_UNEQUAL))
		return PLAN_NOTHING;
	uint32_t truth = is_absent(plan, member.node);
	return node->operation == DX_EQUAL ? truth : plan_apply(plan, PLAN_NOT, truth, PLAN_NOTHING, PLAN_NOTHING);
}

/* Both sides absent: equal, and neither less nor greater. */
static uint32_t comparison_node(const struct dx_plan_making *making, const struct dx_node *node, const char *parameter)
{
	struct plan *plan = making->plan;
	struct dx_plan_member left = member_of(making, node->first, parameter),
			      right = member_of(making, node->second, parameter);
	const struct dx_plan_member *member = left.node == PLAN_NOTHING ? &right : &left;
	const struct dx_node *other = member == &left ? node->second : node->first;
	if (is_null(node->first) || is_null(node->second))
		return null_comparison(making, node, parameter);
	if (member->node != PLAN_NOTHING && (member->shape == DX_PLAN_WORD || member->shape == DX_PLAN_ENTRY))
		return is_text(other) ? text_comparison(making, node, member, other->literal.text) : PLAN_NOTHING;
	uint32_t one, second;
	if (!dx_plan_number_pair(making, node, parameter, &one, &second))
		return PLAN_NOTHING;
	uint32_t compared = plan_apply(plan, comparison_of(node->operation), one, second, PLAN_NOTHING);
	uint32_t otherwise = plan_truth(plan, false);
	if (node->operation == DX_UNEQUAL || node->operation == DX_EQUAL)
		otherwise = plan_apply(plan, comparison_of(node->operation), is_absent(plan, one),
				       is_absent(plan, second), PLAN_NOTHING);
	return plan_apply(plan, PLAN_IF_ABSENT, compared, otherwise, PLAN_NOTHING);
}

static uint32_t truth_node(const struct dx_plan_making *making, struct dx_node *node, const struct dx_closure *lambda);

static uint32_t operation_node(const struct dx_plan_making *making, const struct dx_node *node,
			       const struct dx_closure *lambda)
{
	bool is_not = node->kind == DX_NODE_UNARY;
	uint32_t one = truth_node(making, node->first, lambda), other = PLAN_NOTHING;
	if (one != PLAN_NOTHING && !is_not)
		other = truth_node(making, node->second, lambda);
	return plan_apply(making->plan,
			  is_not                      ? PLAN_NOT
			  : node->operation == DX_AND ? PLAN_AND
						      : PLAN_OR,
			  one, other, PLAN_NOTHING);
}

static bool is_operation(const struct dx_node *node)
{
	return (node->kind == DX_NODE_UNARY && node->operation == DX_NOT) ||
	       (node->kind == DX_NODE_BINARY && (node->operation == DX_AND || node->operation == DX_OR));
}

/* What compares members, or is one. */
static uint32_t member_truth(const struct dx_plan_making *making, const struct dx_node *node, const char *parameter)
{
	if (node->kind == DX_NODE_LITERAL && node->literal.kind == DX_BOOL)
		return plan_truth(making->plan, node->literal.truth);
	if (node->kind == DX_NODE_MEMBER) {
		struct dx_plan_member member = member_of(making, node, parameter);
		return member.node != PLAN_NOTHING && member.shape == DX_PLAN_TRUTH ? member.node : PLAN_NOTHING;
	}
	bool is_comparison =
		node->kind == DX_NODE_BINARY && node->operation >= DX_LESS && node->operation <= DX_UNEQUAL;
	return is_comparison ? comparison_node(making, node, parameter) : PLAN_NOTHING;
}

static uint32_t truth_node(const struct dx_plan_making *making, struct dx_node *node, const struct dx_closure *lambda)
{
	if (is_operation(node))
		return operation_node(making, node, lambda);
	uint32_t truth = member_truth(making, node, lambda->node->names[0]);
	return truth == PLAN_NOTHING ? dx_plan_made_condition(making, lambda, node) : truth;
}

uint32_t dx_plan_condition(const struct dx_plan_making *making, const struct dx_value *lambda)
{
	const struct dx_node *node = lambda->closure->node;
	return node->count == 1 ? truth_node(making, node->first, lambda->closure) : PLAN_NOTHING;
}
