/* SPDX-License-Identifier: MIT */
/*
 * Each number has limits, which those of its operands give. At first a member may be anything that its type has room
 * for, which is enough for Size / 16. If it is not, the greatest and the least value of the member are found in the
 * trace, by a plan, too.
 */
#include "dx/plans/plan_numbers.h"

#include <string.h>

#include "base/memory.h"
#include "dx/core/syntax.h"

/* Of type PLAN_NUMBER if none is negative, else of PLAN_TIME. */
struct number {
	uint32_t node;
	__int128 low, high;
	bool has_member;
};

struct number_making {
	const struct dx_plan_making *making;
	const char *parameter;
	bool is_measured; /* limits of members are those in the trace */
	bool is_too_wide; /* with closer limits there may be a translation */
};

/* Set the node and its limits. False: a value may have more than 64 bits. */
static bool number_set(struct number *number, uint32_t node, __int128 low, __int128 high)
{
	number->node = node;
	number->low = low;
	number->high = high;
	return node != PLAN_NOTHING && low >= INT64_MIN && high <= (low < 0 ? INT64_MAX : (__int128)UINT64_MAX);
}

/* ---- operands ---- */

static bool literal_make(struct plan *plan, const struct dx_value *literal, struct number *number)
{
	if (literal->kind != DX_NUMBER)
		return false;
	__int128 value = dx_integer_of(literal);
	return number_set(number, value < 0 ? plan_time(plan, (int64_t)value) : plan_number(plan, (uint64_t)value),
			  value, value);
}

/* Limits in the trace. */
struct member_limits {
	const struct column *column;
	__int128 low, high;
};

struct dx_plan_limits {
	uint32_t count;
	struct member_limits found[COLUMN_SOURCES * COLUMN_COUNT];
};

/* Set the limits that the member has in the trace; without any value they are 0. */
static bool limits_measure(const struct dx_plan_making *making, const char *name, struct member_limits *limits)
{
	struct plan plan;
	struct plan_target target;
	struct plan_rows rows;
	struct diag diag = {""};
	const struct dx_plan_making alone = {making->query, &plan, making->arena};
	plan_init(&plan, making->plan->source);
	uint32_t node = dx_plan_member_of(&alone, name).node;
	bool is_found = plan_aggregate(&plan, PLAN_LEAST, node) && plan_aggregate(&plan, PLAN_GREATEST, node) &&
			dx_plan_target(making->query, &plan, &target);
	if (is_found) {
		struct plan_run *run = plan_open(&plan, &target);
		is_found = plan_next(run, &rows, &diag) > 0;
		for (uint32_t i = 0; is_found && i < 2; i++) {
			struct plan_value value = plan_cell(&rows, 0, i);
			*(i ? &limits->high : &limits->low) = value.is_absent           ? 0
							      : value.type == PLAN_TIME ? (__int128)value.time_ns
											: (__int128)value.number;
		}
		plan_close(run);
	}
	plan_fini(&plan);
	return is_found;
}

/* Return the limits, which are found once for a query; NULL: they cannot be found. */
static const struct member_limits *limits_of(const struct dx_plan_making *making, const struct column *column,
					     const char *name)
{
	struct dx_query *query = making->query;
	if (!query->limits)
		query->limits = memory_zeroed(1, sizeof(*query->limits));
	struct member_limits *limits = query->limits->found;
	while (limits < query->limits->found + query->limits->count && limits->column != column)
		limits++;
	if (limits < query->limits->found + query->limits->count)
		return limits;
	limits->column = column;
	if (!limits_measure(making, name, limits))
		return NULL;
	query->limits->count++;
	return limits;
}

static bool member_make(struct number_making *with, const char *name, struct number *number)
{
	struct plan *plan = with->making->plan;
	struct dx_plan_member member = dx_plan_member_of(with->making, name);
	if (member.node == PLAN_NOTHING || !dx_plan_has_order(member.shape))
		return false;
	bool is_signed = member.shape == DX_PLAN_SIGNED;
	const struct member_limits any = {member.column, is_signed ? INT64_MIN : 0,
					  is_signed ? INT64_MAX : (__int128)UINT64_MAX};
	const struct member_limits *limits = with->is_measured ? limits_of(with->making, member.column, name) : &any;
	if (!limits)
		return false;
	number->has_member = true;
	return number_set(number,
			  is_signed && limits->low >= 0
				  ? plan_apply(plan, PLAN_AS_NUMBER, member.node, PLAN_NOTHING, PLAN_NOTHING)
				  : member.node,
			  limits->low, limits->high);
}

/* ---- operations ---- */

static const uint8_t operators[] = {
	[DX_MULTIPLY] = PLAN_MULTIPLY,       [DX_DIVIDE] = PLAN_DIVIDE,
	[DX_REMAINDER] = PLAN_REMAINDER,     [DX_ADD] = PLAN_ADD,
	[DX_SUBTRACT] = PLAN_SUBTRACT,       [DX_SHIFT_LEFT] = PLAN_SHIFT_LEFT,
	[DX_SHIFT_RIGHT] = PLAN_SHIFT_RIGHT, [DX_BIT_AND] = PLAN_BITS_AND,
	[DX_BIT_XOR] = PLAN_BITS_XOR,        [DX_BIT_OR] = PLAN_BITS_OR,
};

static bool is_operation(const struct dx_node *node)
{
	return (node->kind == DX_NODE_UNARY && node->operation == DX_MINUS) ||
	       (node->kind == DX_NODE_BINARY && node->operation < sizeof(operators) && operators[node->operation]);
}

static uint32_t as_time(struct plan *plan, const struct number *number)
{
	if (number->low < 0 || number->node == PLAN_NOTHING)
		return number->node;
	return number->high > INT64_MAX ? PLAN_NOTHING
					: plan_apply(plan, PLAN_AS_TIME, number->node, PLAN_NOTHING, PLAN_NOTHING);
}

/* What may be negative on the way is added as a time. */
static bool sum_make(struct plan *plan, bool is_difference, const struct number *a, const struct number *b,
		     struct number *number)
{
	enum plan_operator operation = is_difference ? PLAN_SUBTRACT : PLAN_ADD;
	__int128 low = is_difference ? a->low - b->high : a->low + b->low,
		 high = is_difference ? a->high - b->low : a->high + b->high;
	if (a->low >= 0 && b->low >= 0 && low >= 0)
		return number_set(number, plan_apply(plan, operation, a->node, b->node, PLAN_NOTHING), low, high);
	uint32_t node = plan_apply(plan, operation, as_time(plan, a), as_time(plan, b), PLAN_NOTHING);
	if (low >= 0)
		node = plan_apply(plan, PLAN_AS_NUMBER, node, PLAN_NOTHING, PLAN_NOTHING);
	return high <= INT64_MAX && number_set(number, node, low, high);
}

static __int128 lesser(__int128 one, __int128 other)
{
	return one < other ? one : other;
}

/* Set the limits of what is not negative, as neither operand is. False: it may be an error. */
static bool limits_set(unsigned operation, const struct number *a, const struct number *b, __int128 *low,
		       __int128 *high)
{
	*low = 0;
	*high = UINT64_MAX;
	switch (operation) {
	case DX_MULTIPLY:
		if (a->high && b->high > (__int128)UINT64_MAX / a->high)
			return false;
		*low = a->low * b->low;
		*high = a->high * b->high;
		return true;
	case DX_DIVIDE:
		if (b->low <= 0)
			return false;
		*low = a->low / b->high;
		*high = a->high / b->low;
		return true;
	case DX_REMAINDER:
		*high = lesser(a->high, b->high - 1);
		return b->low > 0;
	case DX_SHIFT_LEFT: /* bits beyond the 64 are lost in the language, too */
		return b->high < 64;
	case DX_SHIFT_RIGHT:
		*high = a->high;
		return b->high < 64;
	case DX_BIT_AND:
		*high = lesser(a->high, b->high);
		return true;
	default:
		return true;
	}
}

static bool number_make(struct number_making *with, const struct dx_node *node, struct number *number);

/* False: it may be an error, within these limits. */
static bool result_make(struct plan *plan, unsigned operation, const struct number *a, const struct number *b,
			struct number *number)
{
	__int128 low, high;
	if (operation == DX_ADD || operation == DX_SUBTRACT)
		return sum_make(plan, operation == DX_SUBTRACT, a, b, number);
	if (a->low < 0 || b->low < 0 || !limits_set(operation, a, b, &low, &high))
		return false;
	uint32_t node = plan_apply(plan, (enum plan_operator)operators[operation], a->node, b->node, PLAN_NOTHING);
	return number_set(number, node, low, high);
}

static bool operation_make(struct number_making *with, const struct dx_node *node, struct number *number)
{
	struct plan *plan = with->making->plan;
	bool is_minus = node->kind == DX_NODE_UNARY;
	struct number a = {.node = plan_number(plan, 0)}, b;
	if (!number_make(with, is_minus ? node->first : node->second, &b) ||
	    (!is_minus && !number_make(with, node->first, &a)))
		return false;
	bool is_made = result_make(plan, is_minus ? DX_SUBTRACT : node->operation, &a, &b, number);
	number->has_member = a.has_member || b.has_member;
	with->is_too_wide |= !is_made;
	return is_made;
}

static bool number_make(struct number_making *with, const struct dx_node *node, struct number *number)
{
	*number = (struct number){.node = PLAN_NOTHING};
	if (node->kind == DX_NODE_LITERAL)
		return literal_make(with->making->plan, &node->literal, number);
	if (node->kind == DX_NODE_MEMBER && node->first->kind == DX_NODE_NAME &&
	    !strcmp(node->first->name, with->parameter))
		return member_make(with, node->name, number);
	return is_operation(node) && operation_make(with, node, number);
}

/* ---- expressions ---- */

/* Try without the limits in the trace, then with them. */
static bool try_both(struct number_making *with, const struct dx_node *node,
		     bool (*make)(struct number_making *with, const struct dx_node *node, struct number *numbers),
		     struct number *numbers)
{
	if (make(with, node, numbers))
		return true;
	with->is_measured = with->is_too_wide;
	return with->is_measured && make(with, node, numbers);
}

struct dx_plan_member dx_plan_arithmetic(const struct dx_plan_making *making, const struct dx_node *node,
					 const char *parameter)
{
	struct number_making with = {.making = making, .parameter = parameter};
	struct number number;
	if (!is_operation(node) || !try_both(&with, node, number_make, &number) || !number.has_member)
		return (struct dx_plan_member){.node = PLAN_NOTHING};
	return (struct dx_plan_member){number.node, number.low < 0 ? DX_PLAN_SIGNED : DX_PLAN_NUMBER, NULL, 0, NULL};
}

static bool pair_make(struct number_making *with, const struct dx_node *node, struct number *numbers)
{
	struct plan *plan = with->making->plan;
	if (!number_make(with, node->first, &numbers[0]) || !number_make(with, node->second, &numbers[1]))
		return false;
	if (numbers[0].low >= 0 && numbers[1].low >= 0)
		return true;
	numbers[0].node = as_time(plan, &numbers[0]);
	numbers[1].node = as_time(plan, &numbers[1]);
	with->is_too_wide = true;
	return numbers[0].node != PLAN_NOTHING && numbers[1].node != PLAN_NOTHING;
}

bool dx_plan_number_pair(const struct dx_plan_making *making, const struct dx_node *node, const char *parameter,
			 uint32_t *one, uint32_t *other)
{
	struct number_making with = {.making = making, .parameter = parameter};
	struct number numbers[2];
	if (!try_both(&with, node, pair_make, numbers))
		return false;
	*one = numbers[0].node;
	*other = numbers[1].node;
	return true;
}
