/* SPDX-License-Identifier: MIT */
#include "plan/plan.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/run.h"

void plan_init(struct plan *plan, enum column_source source)
{
	*plan = (struct plan){.source = source, .filter = PLAN_NOTHING, .limit = UINT64_MAX};
}

void plan_fini(struct plan *plan)
{
	free(plan->nodes);
	*plan = (struct plan){.filter = PLAN_NOTHING};
}

/* ---- nodes ---- */

static bool node_is_same(const struct plan_node *one, const struct plan_node *other)
{
	return one->operation == other->operation && one->type == other->type && one->is_absent == other->is_absent &&
	       one->number == other->number && one->lookup == other->lookup &&
	       !memcmp(one->operands, other->operands, sizeof(one->operands));
}

/* An expression that is there already is computed once. */
static uint32_t node_add(struct plan *plan, struct plan_node node)
{
	for (uint32_t i = 0; i < plan->node_count; i++)
		if (node_is_same(&plan->nodes[i], &node))
			return i;
	if (plan->node_count >= PLAN_NODES_MAX)
		return PLAN_NOTHING;
	memory_grow(plan->nodes, plan->node_count, plan->node_capacity);
	plan->nodes[plan->node_count] = node;
	return plan->node_count++;
}

#define NO_OPERANDS \
	{ \
		PLAN_NOTHING, PLAN_NOTHING, PLAN_NOTHING \
	}

uint32_t plan_column(struct plan *plan, enum column_id column)
{
	const struct column *listed = column < COLUMN_COUNT ? column_find(plan->source, column) : NULL;
	if (!listed || !listed->fill)
		return PLAN_NOTHING;
	return node_add(plan, (struct plan_node){.operation = PLAN_COLUMN,
						 .type = listed->type == TYPE_TIME ? PLAN_TIME : PLAN_NUMBER,
						 .operands = NO_OPERANDS,
						 .number = column});
}

static uint32_t constant_add(struct plan *plan, enum plan_type type, uint64_t bits, bool is_absent)
{
	return node_add(plan, (struct plan_node){.operation = PLAN_CONSTANT,
						 .type = (uint8_t)type,
						 .is_absent = is_absent,
						 .operands = NO_OPERANDS,
						 .number = bits});
}

uint32_t plan_number(struct plan *plan, uint64_t number)
{
	return constant_add(plan, PLAN_NUMBER, number, false);
}

uint32_t plan_time(struct plan *plan, int64_t time_ns)
{
	return constant_add(plan, PLAN_TIME, (uint64_t)time_ns, false);
}

uint32_t plan_truth(struct plan *plan, bool is_true)
{
	return constant_add(plan, PLAN_TRUTH, is_true, false);
}

uint32_t plan_absent(struct plan *plan, enum plan_type type)
{
	return type == PLAN_REAL ? PLAN_NOTHING : constant_add(plan, type, 0, true);
}

uint32_t plan_lookup(struct plan *plan, uint32_t number, const struct plan_lookup *lookup)
{
	assert(!lookup->count || lookup->values);
	if (number >= plan->node_count || plan->nodes[number].type != PLAN_NUMBER || lookup->type == PLAN_REAL)
		return PLAN_NOTHING;
	return node_add(plan, (struct plan_node){.operation = PLAN_LOOKUP,
						 .type = (uint8_t)lookup->type,
						 .operands = {number, PLAN_NOTHING, PLAN_NOTHING},
						 .lookup = lookup});
}

/* ---- operators ---- */

#define X(id, word, operands) operands,
static const uint8_t operand_counts[] = {PLAN_OPERATORS(X)};
#undef X

enum { BIT_TRUTH = 1 << PLAN_TRUTH, BIT_NUMBER = 1 << PLAN_NUMBER, BIT_TIME = 1 << PLAN_TIME, BIT_ANY = 7 };
enum result { RESULT_TRUTH, RESULT_SAME, RESULT_NUMBER, RESULT_TIME };

/* The types that an operation takes as its last operand, which are those of its last but one, and what comes out. */
static const struct {
	uint8_t takes, result;
} rules[PLAN_OPERATOR_COUNT] = {
	[PLAN_EQUAL] = {BIT_ANY, RESULT_TRUTH},
	[PLAN_UNEQUAL] = {BIT_ANY, RESULT_TRUTH},
	[PLAN_LESS] = {BIT_ANY, RESULT_TRUTH},
	[PLAN_AT_MOST] = {BIT_ANY, RESULT_TRUTH},
	[PLAN_GREATER] = {BIT_ANY, RESULT_TRUTH},
	[PLAN_AT_LEAST] = {BIT_ANY, RESULT_TRUTH},
	[PLAN_AND] = {BIT_TRUTH, RESULT_TRUTH},
	[PLAN_OR] = {BIT_TRUTH, RESULT_TRUTH},
	[PLAN_NOT] = {BIT_TRUTH, RESULT_TRUTH},
	[PLAN_IS_ABSENT] = {BIT_ANY, RESULT_TRUTH},
	[PLAN_IF_ABSENT] = {BIT_ANY, RESULT_SAME},
	[PLAN_CHOOSE] = {BIT_ANY, RESULT_SAME},
	[PLAN_ADD] = {BIT_NUMBER | BIT_TIME, RESULT_SAME},
	[PLAN_SUBTRACT] = {BIT_NUMBER | BIT_TIME, RESULT_SAME},
	[PLAN_MULTIPLY] = {BIT_NUMBER, RESULT_SAME},
	[PLAN_DIVIDE] = {BIT_NUMBER, RESULT_SAME},
	[PLAN_REMAINDER] = {BIT_NUMBER, RESULT_SAME},
	[PLAN_BITS_AND] = {BIT_NUMBER, RESULT_SAME},
	[PLAN_BITS_OR] = {BIT_NUMBER, RESULT_SAME},
	[PLAN_BITS_XOR] = {BIT_NUMBER, RESULT_SAME},
	[PLAN_SHIFT_LEFT] = {BIT_NUMBER, RESULT_SAME},
	[PLAN_SHIFT_RIGHT] = {BIT_NUMBER, RESULT_SAME},
	[PLAN_AS_NUMBER] = {BIT_TIME | BIT_TRUTH, RESULT_NUMBER},
	[PLAN_AS_TIME] = {BIT_NUMBER, RESULT_TIME},
};

unsigned plan_operand_count(enum plan_operator operation)
{
	assert(operation < PLAN_OPERATOR_COUNT);
	return operand_counts[operation];
}

/* Return the type of what the operation makes of its operands; PLAN_REAL: it does not take them. */
static enum plan_type result_type(const struct plan *plan, const struct plan_node *node)
{
	unsigned count = operand_counts[node->operation];
	uint8_t type = plan->nodes[node->operands[count - 1]].type;
	if (!(1 << type & rules[node->operation].takes) ||
	    (count > 1 && plan->nodes[node->operands[count - 2]].type != type) ||
	    (count > 2 && plan->nodes[node->operands[0]].type != PLAN_TRUTH))
		return PLAN_REAL;
	return rules[node->operation].result == RESULT_TRUTH    ? PLAN_TRUTH
	       : rules[node->operation].result == RESULT_NUMBER ? PLAN_NUMBER
	       : rules[node->operation].result == RESULT_TIME   ? PLAN_TIME
								: (enum plan_type)type;
}

uint32_t plan_apply(struct plan *plan, enum plan_operator operation, uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t given[] = {a, b, c};
	struct plan_node node = {.operation = (uint8_t)operation, .operands = NO_OPERANDS};
	assert(operation < PLAN_OPERATOR_COUNT);
	if (!rules[operation].takes)
		return PLAN_NOTHING;
	for (unsigned i = 0; i < operand_counts[operation]; i++) {
		if (given[i] >= plan->node_count)
			return PLAN_NOTHING;
		node.operands[i] = given[i];
	}
	node.type = (uint8_t)result_type(plan, &node);
	return node.type == PLAN_REAL ? PLAN_NOTHING : node_add(plan, node);
}

/* ---- what is asked for ---- */

bool plan_output(struct plan *plan, uint32_t node)
{
	if (node >= plan->node_count || plan->output_count >= PLAN_OUTPUTS_MAX)
		return false;
	plan->outputs[plan->output_count++] = node;
	return true;
}

bool plan_key(struct plan *plan, uint32_t node)
{
	if (node >= plan->node_count || plan->key_count + plan->aggregate_count >= PLAN_OUTPUTS_MAX)
		return false;
	plan->keys[plan->key_count++] = node;
	return true;
}

bool plan_aggregate(struct plan *plan, enum plan_aggregate_kind kind, uint32_t node)
{
	bool is_any = kind == PLAN_COUNT && node == PLAN_NOTHING, is_added = kind == PLAN_SUM || kind == PLAN_AVERAGE;
	if (plan->key_count + plan->aggregate_count >= PLAN_OUTPUTS_MAX || (!is_any && node >= plan->node_count) ||
	    (is_added && plan->nodes[node].type == PLAN_TRUTH))
		return false;
	plan->aggregates[plan->aggregate_count++] = (struct plan_aggregate){kind, node};
	return true;
}

bool plan_order(struct plan *plan, uint32_t output, bool is_descending)
{
	if (plan->order_count >= PLAN_OUTPUTS_MAX || output >= plan_width(plan))
		return false;
	plan->orders[plan->order_count++] = (struct plan_order){output, is_descending};
	return true;
}

static enum plan_type aggregate_type(const struct plan *plan, const struct plan_aggregate *aggregate)
{
	return aggregate->kind == PLAN_COUNT     ? PLAN_NUMBER
	       : aggregate->kind == PLAN_AVERAGE ? PLAN_REAL
						 : plan->nodes[aggregate->node].type;
}

enum plan_type plan_output_type(const struct plan *plan, uint32_t output)
{
	assert(output < plan_width(plan));
	if (!plan_is_grouped(plan))
		return plan->nodes[plan->outputs[output]].type;
	if (output < plan->key_count)
		return plan->nodes[plan->keys[output]].type;
	return output < plan->key_count + plan->aggregate_count
		       ? aggregate_type(plan, &plan->aggregates[output - plan->key_count])
		       : PLAN_NUMBER;
}

struct plan_value plan_cell(const struct plan_rows *rows, uint32_t i, uint32_t output)
{
	assert(i < rows->count);
	const uint64_t *record = rows->cells + (size_t)i * rows->stride;
	return (struct plan_value){.type = plan_output_type(rows->plan, output),
				   .is_absent = record[plan_width(rows->plan)] >> output & 1,
				   .number = record[output]};
}

/* ---- validity ---- */

static bool node_is_valid(const struct plan *plan, uint32_t number)
{
	const struct plan_node *node = &plan->nodes[number];
	if (node->operation >= PLAN_OPERATOR_COUNT || node->type >= PLAN_REAL)
		return false;
	for (unsigned i = 0; i < 3; i++)
		if (i < operand_counts[node->operation] ? node->operands[i] >= number
							: node->operands[i] != PLAN_NOTHING)
			return false;
	switch (node->operation) {
	case PLAN_CONSTANT:
		return node->type != PLAN_TRUTH || node->number <= 1;
	case PLAN_COLUMN:
		return node->number < COLUMN_COUNT && column_find(plan->source, (enum column_id)node->number);
	case PLAN_LOOKUP:
		return node->lookup && node->type == node->lookup->type &&
		       plan->nodes[node->operands[0]].type == PLAN_NUMBER;
	default:
		return node->type == result_type(plan, node);
	}
}

static bool aggregate_is_valid(const struct plan *plan, const struct plan_aggregate *aggregate)
{
	if (aggregate->node == PLAN_NOTHING)
		return aggregate->kind == PLAN_COUNT;
	bool is_added = aggregate->kind == PLAN_SUM || aggregate->kind == PLAN_AVERAGE;
	return aggregate->kind <= PLAN_AVERAGE && aggregate->node < plan->node_count &&
	       !(is_added && plan->nodes[aggregate->node].type == PLAN_TRUTH);
}

static bool are_nodes(const struct plan *plan, const uint32_t *numbers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (numbers[i] >= plan->node_count)
			return false;
	return true;
}

bool plan_is_valid(const struct plan *plan)
{
	bool is_valid = plan->source < COLUMN_SOURCES && plan->node_count <= plan->node_capacity &&
			plan->node_count <= PLAN_NODES_MAX && plan->output_count <= PLAN_OUTPUTS_MAX &&
			plan->key_count + plan->aggregate_count <= PLAN_OUTPUTS_MAX &&
			(!plan_is_grouped(plan) || plan_width(plan) <= PLAN_OUTPUTS_MAX) &&
			plan->order_count <= PLAN_OUTPUTS_MAX;
	for (uint32_t i = 0; is_valid && i < plan->node_count; i++)
		is_valid = node_is_valid(plan, i);
	is_valid = is_valid && are_nodes(plan, plan->outputs, plan->output_count) &&
		   are_nodes(plan, plan->keys, plan->key_count) &&
		   (plan->filter == PLAN_NOTHING ||
		    (plan->filter < plan->node_count && plan->nodes[plan->filter].type == PLAN_TRUTH));
	for (uint32_t i = 0; is_valid && i < plan->aggregate_count; i++)
		is_valid = aggregate_is_valid(plan, &plan->aggregates[i]);
	for (uint32_t i = 0; is_valid && i < plan->order_count; i++)
		is_valid = plan->orders[i].output < plan_width(plan);
	return is_valid;
}

int plan_run_check(const struct plan_run *run, struct diag *diag)
{
	if (plan_run_is_cancelled(run))
		return diag_fail(diag, ECANCELED, "interrupted");
	if (run->target.table && __atomic_load_n(run->target.table->is_damaged, __ATOMIC_RELAXED))
		return diag_fail(diag, EIO, "the index of the trace is damaged");
	return 0;
}
