/* SPDX-License-Identifier: MIT */
#include "plan/evaluate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/wide_registers.h"

/* ---- which nodes ---- */

/* Operands lie before their nodes: one pass from the end marks them all. */
static void mark_operands(const struct plan *plan, bool *is_needed)
{
	for (uint32_t i = plan->node_count; i-- > 0;)
		for (unsigned k = 0; is_needed[i] && k < plan_operand_count(plan->nodes[i].operation); k++)
			is_needed[plan->nodes[i].operands[k]] = true;
}

static void mark_outputs(const struct plan *plan, bool *is_needed)
{
	for (uint32_t i = 0; i < plan->key_count; i++)
		is_needed[plan->keys[i]] = true;
	for (uint32_t i = 0; i < plan->aggregate_count; i++)
		if (plan->aggregates[i].node != PLAN_NOTHING)
			is_needed[plan->aggregates[i].node] = true;
	for (uint32_t i = 0; i < plan->output_count && !plan_is_grouped(plan); i++)
		is_needed[plan->outputs[i]] = true;
	mark_operands(plan, is_needed);
}

static bool *filter_marks(const struct plan *plan)
{
	bool *marks = memory_zeroed((size_t)plan->node_count + 1, sizeof(*marks));
	if (plan->filter != PLAN_NOTHING)
		marks[plan->filter] = true;
	mark_operands(plan, marks);
	return marks;
}

static bool *output_marks(const struct plan *plan)
{
	bool *marks = memory_zeroed((size_t)plan->node_count + 1, sizeof(*marks));
	mark_outputs(plan, marks);
	return marks;
}

unsigned plan_needs(const struct plan *plan)
{
	bool *of_filter = filter_marks(plan), *of_outputs = output_marks(plan);
	unsigned columns = 0;
	for (uint32_t i = 0; i < plan->node_count; i++)
		if ((of_filter[i] || of_outputs[i]) && plan->nodes[i].operation == PLAN_COLUMN)
			columns |= column_find(plan->source, (enum column_id)plan->nodes[i].number)->strips;
	free(of_filter);
	free(of_outputs);
	return columns;
}

static void constant_fill(const struct plan_node *node, struct plan_vector *to, uint64_t *room)
{
	memset(to->absent, node->is_absent ? 0xff : 0, sizeof(to->absent));
	memset(to->truth, node->number && !node->is_absent ? 0xff : 0, sizeof(to->truth));
	to->values = node->type == PLAN_TRUTH ? NULL : room;
	for (uint32_t i = 0; i < PLAN_BATCH; i++)
		room[i] = node->number;
}

void plan_evaluation_begin(struct plan_evaluation *evaluation, const struct plan *plan)
{
	*evaluation = (struct plan_evaluation){
		.plan = plan, .is_of_filter = filter_marks(plan), .is_of_outputs = output_marks(plan)};
	uint32_t count = 0;
	evaluation->vectors = memory_zeroed((size_t)plan->node_count + 1, sizeof(*evaluation->vectors));
	evaluation->room_of = memory_zeroed((size_t)plan->node_count + 1, sizeof(*evaluation->room_of));
	for (uint32_t i = 0; i < plan->node_count; i++)
		if (evaluation->is_of_filter[i] || evaluation->is_of_outputs[i])
			evaluation->room_of[i] = count++;
	evaluation->room = memory_zeroed((size_t)count + 1, PLAN_BATCH * sizeof(*evaluation->room));
	for (uint32_t i = 0; i < plan->node_count; i++)
		if ((evaluation->is_of_filter[i] || evaluation->is_of_outputs[i]) &&
		    plan->nodes[i].operation == PLAN_CONSTANT)
			constant_fill(&plan->nodes[i], &evaluation->vectors[i],
				      evaluation->room + (size_t)evaluation->room_of[i] * PLAN_BATCH);
}

void plan_evaluation_end(struct plan_evaluation *evaluation)
{
	free(evaluation->vectors);
	free(evaluation->room);
	free(evaluation->room_of);
	free(evaluation->is_of_filter);
	free(evaluation->is_of_outputs);
	*evaluation = (struct plan_evaluation){.plan = NULL};
}

/* ---- operators ---- */

/* A value with its room, and up to three operands. */
struct operation {
	struct plan_vector *to;
	uint64_t *room;
	const struct plan_vector *a, *b, *c;
	uint8_t type; /* of the last operand */
};

static void absent_of_both(const struct operation *of)
{
	for (unsigned i = 0; i < PLAN_WORDS; i++)
		of->to->absent[i] = of->a->absent[i] | of->b->absent[i];
}

static void truth_of_present(struct plan_vector *to)
{
	for (unsigned i = 0; i < PLAN_WORDS; i++)
		to->truth[i] &= ~to->absent[i];
}

#define COMPARE(name, type, comparison) \
	WIDE_REGISTERS static void compare_##name(uint64_t *truth, const uint64_t *a, const uint64_t *b) \
	{ \
		uint8_t is_true[PLAN_BATCH]; \
		for (uint32_t i = 0; i < PLAN_BATCH; i++) \
			is_true[i] = (type)a[i] comparison(type) b[i]; \
		for (uint32_t word = 0; word < PLAN_WORDS; word++) \
			truth[word] = plan_bits_of_bytes(is_true + word * 64); \
	}
COMPARE(equal, uint64_t, ==)
COMPARE(less, uint64_t, <)
COMPARE(less_time, int64_t, <)

/* All comparisons are these two, of the operands or of the operands swapped, or turned round. */
static void compare(const struct operation *of, enum plan_operator operation)
{
	bool is_swapped = operation == PLAN_GREATER || operation == PLAN_AT_MOST;
	bool is_turned = operation == PLAN_UNEQUAL || operation == PLAN_AT_MOST || operation == PLAN_AT_LEAST;
	bool is_equality = operation == PLAN_EQUAL || operation == PLAN_UNEQUAL;
	const struct plan_vector *a = is_swapped ? of->b : of->a, *b = is_swapped ? of->a : of->b;
	absent_of_both(of);
	if (of->type == PLAN_TRUTH)
		for (unsigned i = 0; i < PLAN_WORDS; i++)
			of->to->truth[i] = is_equality ? ~(a->truth[i] ^ b->truth[i]) : ~a->truth[i] & b->truth[i];
	else
		(is_equality             ? compare_equal
		 : of->type == PLAN_TIME ? compare_less_time
					 : compare_less)(of->to->truth, a->values, b->values);
	for (unsigned i = 0; is_turned && i < PLAN_WORDS; i++)
		of->to->truth[i] = ~of->to->truth[i];
	truth_of_present(of->to);
}

/* Truths have no bit where they are absent. So false is neither bit. */
static void apply_and(const struct operation *of)
{
	for (unsigned i = 0; i < PLAN_WORDS; i++) {
		uint64_t is_false = ~(of->a->truth[i] | of->a->absent[i]) | ~(of->b->truth[i] | of->b->absent[i]);
		of->to->truth[i] = of->a->truth[i] & of->b->truth[i];
		of->to->absent[i] = ~(is_false | of->to->truth[i]);
	}
}

static void apply_or(const struct operation *of)
{
	for (unsigned i = 0; i < PLAN_WORDS; i++) {
		of->to->truth[i] = of->a->truth[i] | of->b->truth[i];
		of->to->absent[i] = (of->a->absent[i] | of->b->absent[i]) & ~of->to->truth[i];
	}
}

static void apply_not(const struct operation *of)
{
	for (unsigned i = 0; i < PLAN_WORDS; i++) {
		of->to->absent[i] = of->a->absent[i];
		of->to->truth[i] = ~of->a->truth[i] & ~of->a->absent[i];
	}
}

static void apply_is_absent(const struct operation *of)
{
	memcpy(of->to->truth, of->a->absent, sizeof(of->to->truth));
	memset(of->to->absent, 0, sizeof(of->to->absent));
}

/* Take b where the bit is set, else c. Nobody reads values of absent ones: where c has no others, b has all values. */
static void choose(const struct operation *of, const struct plan_vector *b, const struct plan_vector *c,
		   const uint64_t *bits)
{
	uint64_t from_c = 0;
	for (unsigned i = 0; i < PLAN_WORDS; i++) {
		of->to->absent[i] = (b->absent[i] & bits[i]) | (c->absent[i] & ~bits[i]);
		of->to->truth[i] = (b->truth[i] & bits[i]) | (c->truth[i] & ~bits[i]);
		from_c |= ~c->absent[i] & ~bits[i];
	}
	if (of->type == PLAN_TRUTH)
		return;
	if (!from_c)
		of->to->values = b->values;
	for (uint32_t i = 0; from_c && i < PLAN_BATCH; i++)
		of->room[i] = bits[i / 64] >> i % 64 & 1 ? b->values[i] : c->values[i];
}

/* Mostly all are present. */
static void apply_if_absent(const struct operation *of)
{
	uint64_t present[PLAN_WORDS];
	for (unsigned i = 0; i < PLAN_WORDS; i++)
		present[i] = ~of->a->absent[i];
	choose(of, of->a, of->b, present);
}

static void apply_choose(const struct operation *of)
{
	choose(of, of->b, of->c, of->a->truth);
	for (unsigned i = 0; i < PLAN_WORDS; i++)
		of->to->absent[i] |= of->a->absent[i];
	if (of->type == PLAN_TRUTH)
		truth_of_present(of->to);
}

#define ARITHMETIC(operator_, expression) \
	case operator_: \
		for (uint32_t i = 0; i < PLAN_BATCH; i++) { \
			uint64_t x = a[i], y = b[i]; \
			room[i] = (expression); \
		} \
		break;

WIDE_REGISTERS static void arithmetic(uint64_t *room, const uint64_t *a, const uint64_t *b, unsigned operation)
{
	switch (operation) {
		ARITHMETIC(PLAN_ADD, x + y)
		ARITHMETIC(PLAN_SUBTRACT, x - y)
		ARITHMETIC(PLAN_MULTIPLY, x * y)
		ARITHMETIC(PLAN_DIVIDE, y ? x / y : 0)
		ARITHMETIC(PLAN_REMAINDER, y ? x % y : 0)
		ARITHMETIC(PLAN_BITS_AND, x & y)
		ARITHMETIC(PLAN_BITS_OR, x | y)
		ARITHMETIC(PLAN_BITS_XOR, x ^ y)
		ARITHMETIC(PLAN_SHIFT_LEFT, y < 64 ? x << y : 0)
		ARITHMETIC(PLAN_SHIFT_RIGHT, y < 64 ? x >> y : 0)
	}
}

static void apply_arithmetic(const struct operation *of, unsigned operation)
{
	absent_of_both(of);
	arithmetic(of->room, of->a->values, of->b->values, operation);
	for (uint32_t i = 0; (operation == PLAN_DIVIDE || operation == PLAN_REMAINDER) && i < PLAN_BATCH; i++)
		of->to->absent[i / 64] |= (uint64_t)!of->b->values[i] << i % 64;
}

/* What has the highest bit does not fit. */
static void apply_conversion(const struct operation *of)
{
	memcpy(of->to->absent, of->a->absent, sizeof(of->to->absent));
	for (uint32_t i = 0; i < PLAN_BATCH; i++) {
		bool is_truth = of->type == PLAN_TRUTH;
		of->room[i] = is_truth ? of->a->truth[i / 64] >> i % 64 & 1 : of->a->values[i];
		of->to->absent[i / 64] |= of->room[i] >> 63 << i % 64;
	}
}

static void apply_lookup(const struct operation *of, const struct plan_lookup *lookup)
{
	memcpy(of->to->absent, of->a->absent, sizeof(of->to->absent));
	memset(of->to->truth, 0, sizeof(of->to->truth));
	for (uint32_t i = 0; i < PLAN_BATCH; i++) {
		uint64_t at = of->a->values[i];
		bool is_absent = of->a->absent[i / 64] >> i % 64 & 1 || at >= lookup->count ||
				 (lookup->is_absent && lookup->is_absent[at]);
		uint64_t value = is_absent ? 0 : lookup->values[at];
		of->room[i] = value;
		of->to->absent[i / 64] |= (uint64_t)is_absent << i % 64;
		of->to->truth[i / 64] |= (uint64_t)(value != 0) << i % 64;
	}
}

static void apply(const struct plan_node *node, const struct operation *of)
{
	switch ((enum plan_operator)node->operation) {
	case PLAN_AND:
		apply_and(of);
		break;
	case PLAN_OR:
		apply_or(of);
		break;
	case PLAN_NOT:
		apply_not(of);
		break;
	case PLAN_IS_ABSENT:
		apply_is_absent(of);
		break;
	case PLAN_IF_ABSENT:
		apply_if_absent(of);
		break;
	case PLAN_CHOOSE:
		apply_choose(of);
		break;
	case PLAN_LOOKUP:
		apply_lookup(of, node->lookup);
		break;
	case PLAN_AS_NUMBER:
	case PLAN_AS_TIME:
		apply_conversion(of);
		break;
	default:
		if (node->operation <= PLAN_AT_LEAST)
			compare(of, (enum plan_operator)node->operation);
		else
			apply_arithmetic(of, node->operation);
	}
}

/* ---- batches ---- */

static void column_compute(const struct column *column, const struct column_rows *batch, struct plan_vector *to,
			   uint64_t *room)
{
	uint8_t absent[PLAN_BATCH];
	memset(to->absent, 0, sizeof(to->absent));
	if (column->lies_in) {
		to->values = batch->packed->numbers[column->lies_in - 1];
		return;
	}
	column->fill(batch, room, absent);
	if (!column->absent)
		return;
	memset(absent + batch->count, 0, PLAN_BATCH - batch->count);
	for (unsigned word = 0; word < PLAN_WORDS; word++)
		to->absent[word] = plan_bits_of_bytes(absent + word * 64);
}

static void node_compute(struct plan_evaluation *evaluation, const struct column_rows *batch, uint32_t i)
{
	const struct plan *plan = evaluation->plan;
	const struct plan_node *node = &plan->nodes[i];
	struct plan_vector *to = &evaluation->vectors[i];
	uint64_t *room = evaluation->room + (size_t)evaluation->room_of[i] * PLAN_BATCH;
	if (node->operation == PLAN_CONSTANT)
		return;
	to->values = node->type == PLAN_TRUTH ? NULL : room;
	if (node->operation == PLAN_COLUMN) {
		column_compute(column_find(plan->source, (enum column_id)node->number), batch, to, room);
		return;
	}
	const struct plan_vector *operands[3] = {NULL};
	unsigned count = plan_operand_count((enum plan_operator)node->operation);
	for (unsigned k = 0; k < count; k++)
		operands[k] = &evaluation->vectors[node->operands[k]];
	const struct operation of = {to,          room,        operands[0],
				     operands[1], operands[2], plan->nodes[node->operands[count - 1]].type};
	apply(node, &of);
}

bool plan_filter_batch(struct plan_evaluation *evaluation, const struct column_rows *batch, uint64_t passes[PLAN_WORDS])
{
	const struct plan *plan = evaluation->plan;
	uint64_t any = 0;
	assert(batch->count <= PLAN_BATCH);
	for (uint32_t i = 0; plan->filter != PLAN_NOTHING && i <= plan->filter; i++)
		if (evaluation->is_of_filter[i])
			node_compute(evaluation, batch, i);
	for (unsigned i = 0; i < PLAN_WORDS; i++) {
		if (plan->filter != PLAN_NOTHING)
			passes[i] &= evaluation->vectors[plan->filter].truth[i];
		any |= passes[i];
	}
	return any;
}

void plan_output_batch(struct plan_evaluation *evaluation, const struct column_rows *batch)
{
	for (uint32_t i = 0; i < evaluation->plan->node_count; i++)
		if (evaluation->is_of_outputs[i] && !evaluation->is_of_filter[i])
			node_compute(evaluation, batch, i);
}
