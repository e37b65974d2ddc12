/* SPDX-License-Identifier: MIT */
/*
 * A key, or each member of one that is `new { ... }`, is a part:
 *
 *     a member     x => x.Size            its column
 *     a stack      x => x.Stack           the ids that a stack is made of; then its node in the tree of names
 *     made of ids  x => x.Thread.Name     the id of the thread; then the number of the value among all that were made
                  x => x.Caller          the id of the site, which the caller is made of
 *
 * A node stands for its text, which may be long: the text is made when a row is shown.
 */
#include "dx/plans/plan_keys.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "dx/model/stack_frames.h"
#include "dx/model/stack_nodes.h"
#include "dx/plans/plan_closures.h"
#include "dx/plans/plan_ids.h"
#include "dx/run/keys.h"

enum part_kind { PART_MEMBER, PART_STACK, PART_MADE };

struct part {
	enum part_kind kind;
	uint32_t key; /* of the plan */
	struct dx_plan_member member;
	struct dx_plan_made made;
	struct dx_keys values; /* of PART_MADE */
	bool has_values;
};

struct dx_plan_keys {
	struct dx_query *query;
	struct dx_arena arena;
	enum column_source source;
	const struct dx_node *record; /* NULL: the key is one part itself */
	struct part *parts;
	uint32_t count;
	struct stack_nodes *nodes; /* NULL: no part is a stack */
	struct plan_key_function regrouping;
	bool is_wrong;
};

/* ---- making ---- */

static bool part_make(struct dx_plan_keys *keys, const struct dx_plan_making *making, struct part *part,
		      const struct dx_closure *lambda, struct dx_node *node)
{
	*part = (struct part){.kind = PART_MEMBER, .key = making->plan->key_count};
	part->member = dx_plan_node_member(making, node, lambda->node->names[0]);
	if (part->member.node != PLAN_NOTHING)
		return plan_key(making->plan, part->member.node);
	if (!dx_plan_made_take(making, lambda, node, &part->made))
		return false;
	part->kind = part->made.is_stack ? PART_STACK : PART_MADE;
	if (part->made.is_stack && !keys->nodes)
		keys->nodes = stack_nodes_new(making->query);
	if (part->kind == PART_MADE) {
		dx_keys_init(&part->values, making->query, &keys->arena, NULL);
		part->has_values = true;
	}
	return plan_key(making->plan, dx_plan_made_id(making->plan, &part->made));
}

/* ---- values of ids ---- */

static uint64_t made_number(struct dx_plan_keys *keys, struct part *part, uint64_t number, bool is_absent)
{
	struct dx_query *query = keys->query;
	struct dx_mark mark = dx_mark(query->arena);
	struct dx_value value = dx_plan_made_value(query, &part->made, number, is_absent);
	/* Each collection is a key of its own. */
	keys->is_wrong |= value.kind == DX_SEQUENCE || value.kind == DX_LAMBDA;
	uint32_t place = dx_keys_add(&part->values, &value);
	dx_release(query->arena, mark);
	return place;
}

/* Return the node of the stack; sets is_wrong if its text may be that of another node. */
static uint64_t stack_number(struct dx_plan_keys *keys, uint64_t number)
{
	const struct heap_site site = dx_plan_site(keys->query, keys->source, number);
	uint32_t node;
	keys->is_wrong |= !stack_nodes_find(keys->nodes, &site, &node);
	return node;
}

static void keys_replace(void *context, uint64_t *numbers, uint64_t *absent)
{
	struct dx_plan_keys *keys = context;
	for (uint32_t i = 0; i < keys->count && !keys->is_wrong && !keys->query->is_stopped; i++) {
		struct part *part = &keys->parts[i];
		bool is_absent = *absent >> part->key & 1;
		if (part->kind == PART_MEMBER)
			continue;
		/* All events have a thread and a function; who lacks them is damaged. */
		if (is_absent && keys->source == COLUMNS_OF_EVENTS) {
			keys->is_wrong = true;
		} else if (part->kind == PART_MADE) {
			numbers[part->key] = made_number(keys, part, numbers[part->key], is_absent);
			*absent &= ~(UINT64_C(1) << part->key);
		} else if (!is_absent) {
			numbers[part->key] = stack_number(keys, numbers[part->key]);
		}
	}
	dx_step(keys->query, "GroupBy", -1);
}

/* ---- all parts ---- */

static bool parts_make(struct dx_plan_keys *keys, const struct dx_plan_making *making, const struct dx_closure *closure)
{
	const struct dx_node *lambda = closure->node;
	bool is_regrouped = false;
	keys->record = lambda->first->kind == DX_NODE_RECORD ? lambda->first : NULL;
	keys->count = keys->record ? keys->record->count : 1;
	keys->parts = dx_new(&keys->arena, struct part, (size_t)keys->count + 1);
	for (uint32_t i = 0; i < keys->count; i++) {
		struct dx_node *node = keys->record ? keys->record->children[i] : lambda->first;
		if (!part_make(keys, making, &keys->parts[i], closure, node))
			return false;
		is_regrouped |= keys->parts[i].kind != PART_MEMBER;
	}
	keys->regrouping = (struct plan_key_function){keys_replace, keys};
	making->plan->regrouping = is_regrouped ? &keys->regrouping : NULL;
	return keys->count;
}

struct dx_plan_keys *dx_plan_keys_new(const struct dx_plan_making *making, const struct dx_value *lambda)
{
	struct dx_plan_keys *keys = memory_zeroed(1, sizeof(*keys));
	assert(lambda->kind == DX_LAMBDA && lambda->closure->node->count == 1);
	keys->query = making->query;
	keys->source = making->plan->source;
	dx_arena_init(&keys->arena, &making->query->budget);
	if (parts_make(keys, making, lambda->closure))
		return keys;
	dx_plan_keys_free(keys);
	return NULL;
}

void dx_plan_keys_free(struct dx_plan_keys *keys)
{
	if (!keys)
		return;
	for (uint32_t i = 0; i < keys->count; i++)
		if (keys->parts[i].has_values)
			dx_keys_fini(&keys->parts[i].values);
	stack_nodes_free(keys->nodes);
	dx_arena_fini(&keys->arena);
	free(keys);
}

bool dx_plan_keys_are_wrong(const struct dx_plan_keys *keys)
{
	return keys->is_wrong;
}

/* ---- values of rows ---- */

static struct dx_value part_value(const struct dx_plan_keys *keys, const struct part *part,
				  const struct plan_rows *rows, uint32_t row)
{
	struct plan_value value = plan_cell(rows, row, part->key);
	if (part->kind == PART_MEMBER)
		return dx_plan_value(keys->query, &part->member, &value);
	if (value.is_absent)
		return (struct dx_value){.kind = DX_ABSENT};
	return part->kind == PART_MADE ? part->values.keys[value.number]
				       : dx_stack(keys->query, (uint32_t)value.number);
}

struct dx_value dx_plan_keys_value(const struct dx_plan_keys *keys, const struct plan_rows *rows, uint32_t row)
{
	struct dx_arena *arena = keys->query->arena;
	if (!keys->record)
		return part_value(keys, &keys->parts[0], rows, row);
	struct dx_record *record = dx_new(arena, struct dx_record, 1);
	struct dx_value *values = dx_new(arena, struct dx_value, (size_t)keys->count + 1);
	for (uint32_t i = 0; i < keys->count; i++)
		values[i] = part_value(keys, &keys->parts[i], rows, row);
	*record = (struct dx_record){keys->count, (const char *const *)keys->record->names, values};
	return dx_object(&dx_record_class, record);
}

bool dx_plan_keys_may_be_absent(const struct dx_plan_keys *keys)
{
	return !keys->record;
}

bool dx_plan_keys_are_absent(const struct dx_plan_keys *keys, const struct plan_rows *rows, uint32_t row)
{
	const struct part *part = &keys->parts[0];
	struct plan_value value = plan_cell(rows, row, part->key);
	return value.is_absent || (part->kind == PART_MADE && value.number == part->values.absent);
}

uint32_t dx_plan_keys_order(const struct dx_plan_keys *keys, uint32_t part)
{
	if (part >= keys->count)
		return PLAN_NOTHING;
	const struct part *of = &keys->parts[part];
	return of->kind == PART_MEMBER && dx_plan_has_order(of->member.shape) ? of->key : PLAN_NOTHING;
}
