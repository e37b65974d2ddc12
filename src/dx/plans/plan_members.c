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

uint32_t dx_plan_entries_lookup(const struct dx_plan_making *making, uint32_t node, const char *text)
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
						       members[i].shape, NULL, 0, NULL};
	const struct column *column = column_of_member(plan->source, name, &id);
	if (!column || !shape_of(column, &shape))
		return none;
	const struct dx_call_column *of = plan->source == COLUMNS_OF_EVENTS ? dx_call_column_find(id) : NULL;
	uint32_t node = of ? call_column(plan, of) : plan_column(plan, id);
	if (shape == DX_PLAN_ENTRY)
		node = dx_plan_entries_lookup(making, node, NULL);
	return (struct dx_plan_member){node, shape, column->words, column->word_count, column};
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

void dx_plan_restrict(struct plan *plan)
{
	if (plan->source == COLUMNS_OF_EVENTS) {
		plan->filter = column_is(plan, COLUMN_ACTION, PLAN_AT_MOST, EVENT_PROTECT);
		return;
	}
	uint32_t flag = plan_apply(plan, PLAN_BITS_AND, plan_column(plan, COLUMN_FLAGS),
				   plan_number(plan, HEAP_EARLIER), PLAN_NOTHING);
	plan->filter = plan_apply(plan, PLAN_EQUAL, flag, plan_number(plan, 0), PLAN_NOTHING);
}

bool dx_plan_target(struct dx_query *query, const struct plan *plan, struct plan_target *target)
{
	assert(plan->source < COLUMN_SOURCES);
	*target =
		(struct plan_target){.trace = query->session->trace,
				     .table = plan->source == COLUMNS_OF_ALLOCATIONS ? dx_session_table(query->session)
										     : query->session->table,
				     .memory_bytes = query->budget.limit_bytes,
				     .is_cancelled = query->is_cancelled};
	return plan->source == COLUMNS_OF_EVENTS || target->table;
}
