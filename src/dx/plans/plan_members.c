/* SPDX-License-Identifier: MIT */
/*
 * A comparison is true or false in the language, never absent: a member that an object lacks is unequal to every
 * number, and neither less nor greater.
 */
#include "dx/plans/plan_members.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/events.h"
#include "dx/model/debugger.h"
#include "dx/model/objects.h"
#include "dx/model/objects_heap.h"
#include "trace/code_rows.h"
#include "trace/trace.h"

/* ---- members of events ---- */

static uint32_t column_is(struct plan *plan, enum column_id column, enum plan_operator operation, uint64_t number)
{
	return plan_apply(plan, operation, plan_column(plan, column), plan_number(plan, number), PLAN_NOTHING);
}

static uint32_t has_bits(struct plan *plan, uint32_t node, uint64_t bits)
{
	uint32_t common = plan_apply(plan, PLAN_BITS_AND, node, plan_number(plan, bits), PLAN_NOTHING);
	return plan_apply(plan, PLAN_UNEQUAL, common, plan_number(plan, 0), PLAN_NOTHING);
}

static uint32_t has_flag(struct plan *plan, uint64_t flag)
{
	return has_bits(plan, plan_column(plan, COLUMN_FLAGS), flag);
}

/* The column, as calls have it. */
static uint32_t call_column(struct plan *plan, const struct dx_call_column *of)
{
	uint32_t value = plan_column(plan, of->column), one = plan_number(plan, 1);
	enum plan_type type = value == PLAN_NOTHING ? PLAN_NUMBER : (enum plan_type)plan->nodes[value].type;
	uint32_t kind = plan_apply(plan, PLAN_SHIFT_LEFT, one, plan_column(plan, COLUMN_ACTION), PLAN_NOTHING);
	/* The first kinds, or some. */
	bool are_first = !(of->kinds & (of->kinds + 1));
	uint32_t is_there = are_first
				    ? column_is(plan, COLUMN_ACTION, PLAN_LESS, (uint64_t)__builtin_popcount(of->kinds))
				    : has_bits(plan, kind, of->kinds);
	if (of->without)
		is_there =
			plan_apply(plan, PLAN_AND, is_there,
				   plan_apply(plan, PLAN_NOT, has_flag(plan, of->without), PLAN_NOTHING, PLAN_NOTHING),
				   PLAN_NOTHING);
	if (of->none)
		is_there = plan_apply(plan, PLAN_AND, is_there,
				      plan_apply(plan, PLAN_UNEQUAL, value, plan_number(plan, of->none), PLAN_NOTHING),
				      PLAN_NOTHING);
	if (of->is_zero_for_absent)
		value = plan_apply(plan, PLAN_IF_ABSENT, value, plan_number(plan, 0), PLAN_NOTHING);
	return plan_apply(plan, PLAN_CHOOSE, is_there, value, plan_absent(plan, type));
}

/* ---- members of allocations ---- */

static uint32_t block_is_outstanding(struct plan *plan)
{
	return column_is(plan, COLUMN_END_KIND, PLAN_AT_LEAST, HEAP_END_EXIT);
}

/* Members that are more than a column, or less, as their getters have them (objects_heap.c, objects_allocation.c). */
static const struct {
	const char *name;
	enum column_source source;
	enum dx_plan_shape shape;
	uint32_t (*make)(struct plan *plan);
	unsigned flag; /* of an allocation, without `make` */
} members[] = {
	{"IsOutstanding", COLUMNS_OF_ALLOCATIONS, DX_PLAN_TRUTH, block_is_outstanding, 0},
	{"IsRealloc", COLUMNS_OF_ALLOCATIONS, DX_PLAN_TRUTH, NULL, HEAP_REALLOC},
	{"IsMoved", COLUMNS_OF_ALLOCATIONS, DX_PLAN_TRUTH, NULL, HEAP_MOVED},
	{"IsTemporary", COLUMNS_OF_ALLOCATIONS, DX_PLAN_TRUTH, NULL, HEAP_TEMPORARY},
	{"IsNested", COLUMNS_OF_ALLOCATIONS, DX_PLAN_TRUTH, NULL, HEAP_NESTED},
};

/* Several entries may have one name. */
static uint32_t entry_first(const struct trace_dictionary *dictionary, uint32_t entry)
{
	uint32_t first = 0;
	while (first < entry && strcmp(dictionary->entries[first].name, dictionary->entries[entry].name) != 0)
		first++;
	return first;
}

/* A lookup of entries: the first one of the name (text NULL), or whether they have the name. */
static uint32_t entries_lookup(const struct dx_plan_making *making, uint32_t node, const char *text)
{
	const struct trace_dictionary *dictionary = making->query->session->dictionary;
	struct plan_lookup *lookup = dx_new(making->arena, struct plan_lookup, 1);
	uint64_t *values = dx_new(making->arena, uint64_t, (size_t)dictionary->entry_count + 1);
	for (uint32_t i = 0; i < dictionary->entry_count; i++)
		values[i] = text ? !strcmp(dictionary->entries[i].name, text) : entry_first(dictionary, i);
	*lookup = (struct plan_lookup){
		.type = text ? PLAN_TRUTH : PLAN_NUMBER, .values = values, .count = dictionary->entry_count};
	return plan_lookup(making->plan, node, lookup);
}

static const struct column *column_of_member(enum column_source source, const char *name, enum column_id *id)
{
	const struct dx_class *class = source == COLUMNS_OF_EVENTS ? &dx_heap_class : &dx_allocation_class;
	for (const struct dx_member *row = class->members; row->name; row++)
		if (!strcasecmp(row->name, name) && dx_member_column(row) >= 0) {
			*id = (enum column_id)dx_member_column(row);
			return column_find(source, *id);
		}
	return NULL;
}

/* Objects, such as threads, have no shape. */
static bool shape_of(const struct column *column, enum dx_plan_shape *shape)
{
	switch (column->type) {
	case TYPE_ADDRESS:
		*shape = DX_PLAN_ADDRESS;
		return true;
	case TYPE_TIME:
		*shape = DX_PLAN_SIGNED;
		return true;
	case TYPE_WORD:
		*shape = DX_PLAN_WORD;
		return true;
	case TYPE_FUNCTION:
		*shape = DX_PLAN_ENTRY;
		return true;
	default:
		*shape = DX_PLAN_NUMBER;
		return column->type != TYPE_PROCESS && column->type != TYPE_THREAD;
	}
}

struct dx_plan_member dx_plan_member_of(const struct dx_plan_making *making, const char *name)
{
	struct plan *plan = making->plan;
	struct dx_plan_member none = {.node = PLAN_NOTHING};
	enum dx_plan_shape shape;
	enum column_id id;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (members[i].source == plan->source && !strcasecmp(members[i].name, name))
			return (struct dx_plan_member){members[i].make ? members[i].make(plan)
								       : has_flag(plan, members[i].flag),
						       members[i].shape, NULL, 0};
	const struct column *column = column_of_member(plan->source, name, &id);
	if (!column || !shape_of(column, &shape))
		return none;
	const struct dx_call_column *of = plan->source == COLUMNS_OF_EVENTS ? dx_call_column_find(id) : NULL;
	uint32_t node = of ? call_column(plan, of) : plan_column(plan, id);
	if (shape == DX_PLAN_ENTRY)
		node = entries_lookup(making, node, NULL);
	return (struct dx_plan_member){node, shape, column->words, column->word_count};
}

struct dx_plan_member dx_plan_node_member(const struct dx_plan_making *making, const struct dx_node *node,
					  const char *parameter)
{
	bool is_member = node->kind == DX_NODE_MEMBER && node->first->kind == DX_NODE_NAME &&
			 !strcmp(node->first->name, parameter);
	return is_member ? dx_plan_member_of(making, node->name) : (struct dx_plan_member){.node = PLAN_NOTHING};
}

struct dx_plan_member dx_plan_lambda_member(const struct dx_plan_making *making, const struct dx_value *lambda)
{
	assert(lambda->kind == DX_LAMBDA);
	const struct dx_node *node = lambda->closure->node;
	return node->count == 1 ? dx_plan_node_member(making, node->first, node->names[0])
				: (struct dx_plan_member){.node = PLAN_NOTHING};
}

bool dx_plan_has_order(enum dx_plan_shape shape)
{
	return shape == DX_PLAN_NUMBER || shape == DX_PLAN_ADDRESS || shape == DX_PLAN_SIGNED;
}

struct dx_value dx_plan_value(const struct dx_query *query, const struct dx_plan_member *member,
			      const struct plan_value *value)
{
	assert(member->node != PLAN_NOTHING);
	struct dx_value made = {.kind = DX_ABSENT};
	if (value->is_absent)
		return made;
	switch (member->shape) {
	case DX_PLAN_NUMBER:
		return dx_number(value->number);
	case DX_PLAN_ADDRESS:
		return dx_address(value->number);
	case DX_PLAN_SIGNED:
		return dx_signed(value->time_ns);
	case DX_PLAN_TRUTH:
		return dx_bool(value->number);
	case DX_PLAN_WORD:
		return dx_text(
			member->words[value->number < member->word_count ? value->number : member->word_count - 1]);
	default:
		return dx_text(query->session->dictionary->entries[value->number].name);
	}
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
		uint32_t is_equal = truth_or(plan, entries_lookup(making, member->node, text), false);
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

/* An operand of a comparison of numbers: a member, or a literal that is compared with the member `beside`. */
static uint32_t number_operand(const struct dx_plan_making *making, const struct dx_node *node,
			       const struct dx_plan_member *member, const struct dx_plan_member *beside)
{
	const struct dx_value *literal = &node->literal;
	if (node->kind != DX_NODE_LITERAL)
		return dx_plan_has_order(member->shape) ? member->node : PLAN_NOTHING;
	if (literal->kind != DX_NUMBER || (literal->is_signed && (int64_t)literal->number < 0))
		return PLAN_NOTHING;
	if (beside->node == PLAN_NOTHING || beside->shape != DX_PLAN_SIGNED)
		return plan_number(making->plan, literal->number);
	return literal->number <= INT64_MAX ? plan_time(making->plan, (int64_t)literal->number) : PLAN_NOTHING;
}

/* Both sides absent: neither less nor greater, nor unequal. */
static uint32_t comparison_node(const struct dx_plan_making *making, const struct dx_node *node, const char *parameter)
{
	struct plan *plan = making->plan;
	struct dx_plan_member left = dx_plan_node_member(making, node->first, parameter),
			      right = dx_plan_node_member(making, node->second, parameter);
	const struct dx_plan_member *member = left.node == PLAN_NOTHING ? &right : &left;
	const struct dx_node *other = member == &left ? node->second : node->first;
	if (member->node != PLAN_NOTHING && (member->shape == DX_PLAN_WORD || member->shape == DX_PLAN_ENTRY))
		return is_text(other) ? text_comparison(making, node, member, other->literal.text) : PLAN_NOTHING;
	uint32_t one = number_operand(making, node->first, &left, &right),
		 second = number_operand(making, node->second, &right, &left);
	if (one == PLAN_NOTHING || second == PLAN_NOTHING)
		return PLAN_NOTHING;
	uint32_t compared = plan_apply(plan, comparison_of(node->operation), one, second, PLAN_NOTHING);
	uint32_t otherwise = plan_truth(plan, false);
	if (node->operation == DX_UNEQUAL)
		otherwise = plan_apply(
			plan, PLAN_UNEQUAL, plan_apply(plan, PLAN_IS_ABSENT, one, PLAN_NOTHING, PLAN_NOTHING),
			plan_apply(plan, PLAN_IS_ABSENT, second, PLAN_NOTHING, PLAN_NOTHING), PLAN_NOTHING);
	return plan_apply(plan, PLAN_IF_ABSENT, compared, otherwise, PLAN_NOTHING);
}

static uint32_t truth_node(const struct dx_plan_making *making, const struct dx_node *node, const char *parameter)
{
	struct plan *plan = making->plan;
	if (node->kind == DX_NODE_LITERAL && node->literal.kind == DX_BOOL)
		return plan_truth(plan, node->literal.truth);
	if (node->kind == DX_NODE_MEMBER) {
		struct dx_plan_member member = dx_plan_node_member(making, node, parameter);
		return member.node != PLAN_NOTHING && member.shape == DX_PLAN_TRUTH ? member.node : PLAN_NOTHING;
	}
	if (node->kind == DX_NODE_UNARY && node->operation == DX_NOT)
		return plan_apply(plan, PLAN_NOT, truth_node(making, node->first, parameter), PLAN_NOTHING,
				  PLAN_NOTHING);
	if (node->kind != DX_NODE_BINARY)
		return PLAN_NOTHING;
	if (node->operation == DX_AND || node->operation == DX_OR)
		return plan_apply(plan, node->operation == DX_AND ? PLAN_AND : PLAN_OR,
				  truth_node(making, node->first, parameter),
				  truth_node(making, node->second, parameter), PLAN_NOTHING);
	bool is_comparison = node->operation >= DX_LESS && node->operation <= DX_UNEQUAL;
	return is_comparison ? comparison_node(making, node, parameter) : PLAN_NOTHING;
}

uint32_t dx_plan_condition(const struct dx_plan_making *making, const struct dx_value *lambda)
{
	const struct dx_node *node = lambda->closure->node;
	return node->count == 1 ? truth_node(making, node->first, node->names[0]) : PLAN_NOTHING;
}
