/* SPDX-License-Identifier: MIT */
#include "plan/bounds.h"

#include <stdlib.h>

#include "base/memory.h"

static const struct plan_node *node_of(const struct plan *plan, uint32_t i)
{
	return &plan->nodes[i];
}

static bool is_column(const struct plan_node *node, enum column_id column)
{
	return node->operation == PLAN_COLUMN && node->number == column;
}

/* A comparison of a column with a constant, the column first. */
struct limit {
	enum column_id column;
	enum plan_operator operation;
	uint64_t constant;
};

/* The same comparison with its operands swapped. */
static enum plan_operator swapped(unsigned operation)
{
	return operation == PLAN_LESS       ? PLAN_GREATER
	       : operation == PLAN_AT_MOST  ? PLAN_AT_LEAST
	       : operation == PLAN_GREATER  ? PLAN_LESS
	       : operation == PLAN_AT_LEAST ? PLAN_AT_MOST
					    : (enum plan_operator)operation;
}

static bool limit_read(struct limit *limit, const struct plan *plan, const struct plan_node *node)
{
	if (node->operation < PLAN_EQUAL || node->operation > PLAN_AT_LEAST || node->operation == PLAN_UNEQUAL)
		return false;
	const struct plan_node *a = node_of(plan, node->operands[0]), *b = node_of(plan, node->operands[1]);
	bool is_turned = a->operation == PLAN_CONSTANT;
	const struct plan_node *column = is_turned ? b : a, *constant = is_turned ? a : b;
	if (column->operation != PLAN_COLUMN || constant->operation != PLAN_CONSTANT || constant->is_absent)
		return false;
	*limit = (struct limit){(enum column_id)column->number,
				is_turned ? swapped(node->operation) : (enum plan_operator)node->operation,
				constant->number};
	return true;
}

/* "It is absent, or ...": the comparison, if both are of one column. */
static bool limit_read_or_absent(struct limit *limit, const struct plan *plan, const struct plan_node *node)
{
	for (unsigned i = 0; node->operation == PLAN_OR && i < 2; i++) {
		const struct plan_node *absent = node_of(plan, node->operands[i]),
				       *other = node_of(plan, node->operands[1 - i]);
		if (absent->operation == PLAN_IS_ABSENT && limit_read(limit, plan, other) &&
		    is_column(node_of(plan, absent->operands[0]), limit->column))
			return limit->column != COLUMN_SIZE;
	}
	return false;
}

static bool bounds_below(enum plan_operator operation)
{
	return operation == PLAN_GREATER || operation == PLAN_AT_LEAST || operation == PLAN_EQUAL;
}

static bool bounds_above(enum plan_operator operation)
{
	return operation == PLAN_LESS || operation == PLAN_AT_MOST || operation == PLAN_EQUAL;
}

/* A bound that is a little too wide does no harm: "<" is taken for "<=". */
static void limit_apply(struct plan_bounds *bounds, const struct limit *limit)
{
	int64_t time_ns = (int64_t)limit->constant;
	bool is_below = bounds_below(limit->operation), is_above = bounds_above(limit->operation);
	switch (limit->column) {
	case COLUMN_BIRTH:
	case COLUMN_TIME:
		bounds->from_ns = is_below && time_ns > bounds->from_ns ? time_ns : bounds->from_ns;
		bounds->to_ns = is_above && time_ns < bounds->to_ns ? time_ns : bounds->to_ns;
		break;
	case COLUMN_END:
		bounds->end_from_ns = is_below && time_ns > bounds->end_from_ns ? time_ns : bounds->end_from_ns;
		break;
	case COLUMN_SIZE:
		bounds->size_from =
			is_below && limit->constant > bounds->size_from ? limit->constant : bounds->size_from;
		bounds->size_to = is_above && limit->constant < bounds->size_to ? limit->constant : bounds->size_to;
		break;
	default:
		break;
	}
}

void plan_bounds_find(struct plan_bounds *bounds, const struct plan *plan)
{
	*bounds = (struct plan_bounds){INT64_MIN, INT64_MAX, INT64_MIN, 0, UINT64_MAX};
	bool *is_required = memory_zeroed((size_t)plan->node_count + 1, sizeof(*is_required));
	if (plan->filter != PLAN_NOTHING)
		is_required[plan->filter] = true;
	for (uint32_t i = plan->node_count; i-- > 0;) {
		const struct plan_node *node = node_of(plan, i);
		struct limit limit;
		if (!is_required[i])
			continue;
		if (node->operation == PLAN_AND)
			is_required[node->operands[0]] = is_required[node->operands[1]] = true;
		else if (limit_read(&limit, plan, node) || limit_read_or_absent(&limit, plan, node))
			limit_apply(bounds, &limit);
	}
	free(is_required);
	if (plan->source == COLUMNS_OF_ALLOCATIONS && plan->allocations && plan->allocations->moment.is_asked &&
	    plan->allocations->moment.at.time_ns < bounds->to_ns)
		bounds->to_ns = plan->allocations->moment.at.time_ns;
}

bool plan_bounds_have(const struct plan_bounds *bounds, const struct heap_group *group, const struct heap_sizes *sizes)
{
	if (sizes && (sizes->greatest < bounds->size_from || sizes->least > bounds->size_to))
		return false;
	return group->first_ns <= bounds->to_ns && group->last_ns >= bounds->from_ns &&
	       group->end_ns >= bounds->end_from_ns;
}
