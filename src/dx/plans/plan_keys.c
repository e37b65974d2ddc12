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
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "dx/model/objects.h"
#include "dx/model/stack_frames.h"
#include "dx/model/stack_nodes.h"
#include "dx/plans/group_calls.h"
#include "dx/plans/plan_closures.h"
#include "dx/run/interpret.h"
#include "dx/run/keys.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum part_kind { PART_MEMBER, PART_STACK, PART_MADE };

/* Members of rows that stand for ids, and what the interpreter has of them. */
static const struct {
	const char *name;
	enum column_source source;
	enum column_id column;
	const struct dx_class *class; /* of the objects; NULL: it is a text */
} roots[] = {
	{"Stack", COLUMNS_OF_EVENTS, COLUMN_SITE, NULL},
	{"Caller", COLUMNS_OF_EVENTS, COLUMN_SITE, &dx_frame_class},
	{"Thread", COLUMNS_OF_EVENTS, COLUMN_THREAD, &dx_thread_class},
	{"Process", COLUMNS_OF_EVENTS, COLUMN_PROCESS, &dx_process_class},
	{"Stack", COLUMNS_OF_ALLOCATIONS, COLUMN_SITE, NULL},
	{"Caller", COLUMNS_OF_ALLOCATIONS, COLUMN_SITE, &dx_frame_class},
	{"FreeStack", COLUMNS_OF_ALLOCATIONS, COLUMN_FREE_SITE, NULL},
	{"Thread", COLUMNS_OF_ALLOCATIONS, COLUMN_THREAD, &dx_thread_class},
	{"FreeThread", COLUMNS_OF_ALLOCATIONS, COLUMN_FREE_THREAD, &dx_thread_class},
	{"Process", COLUMNS_OF_ALLOCATIONS, COLUMN_PROCESS, &dx_process_class},
};
enum { ROOT_COUNT = sizeof(roots) / sizeof(roots[0]) };

struct part {
	enum part_kind kind;
	uint32_t key; /* of the plan */
	struct dx_plan_member member;
	uint32_t root;          /* a row of `roots` */
	struct dx_closure made; /* of PART_MADE: the lambda, with the root in place of its member */
	struct dx_keys values;
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

static bool is_member_of(const struct dx_node *node, const char *parameter)
{
	return node->kind == DX_NODE_MEMBER && node->first->kind == DX_NODE_NAME &&
	       !strcmp(node->first->name, parameter);
}

static uint32_t root_find(enum column_source source, const char *name)
{
	uint32_t i = 0;
	while (i < ROOT_COUNT && (roots[i].source != source || strcasecmp(roots[i].name, name) != 0))
		i++;
	return i;
}

/* Replace the root by the parameter, wherever it stands. All of it must be of one root, and have no effects: members,
   operators, and methods of texts. */
static bool root_replace(const struct dx_plan_keys *keys, struct part *part, struct dx_node **place,
			 const char *parameter)
{
	struct dx_node *node = *place;
	if (node->kind == DX_NODE_LITERAL)
		return true;
	if (is_member_of(node, parameter)) {
		uint32_t root = root_find(keys->source, node->name);
		bool is_first = part->root == ROOT_COUNT;
		part->root = is_first ? root : part->root;
		*place = node->first;
		return root < ROOT_COUNT && root == part->root;
	}
	bool is_call = node->kind == DX_NODE_CALL && node->first && dx_method_find(DX_OF_TEXT, NULL, node->name);
	if (node->kind != DX_NODE_MEMBER && node->kind != DX_NODE_BINARY && node->kind != DX_NODE_UNARY && !is_call)
		return false;
	*place = node = dx_node_copy_flat(keys->query->arena, node);
	for (uint32_t i = 0; node->children && i < node->count; i++)
		if (!root_replace(keys, part, &node->children[i], parameter))
			return false;
	return root_replace(keys, part, &node->first, parameter) &&
	       (!node->second || root_replace(keys, part, &node->second, parameter)) && !node->third;
}

static bool part_make(struct dx_plan_keys *keys, const struct dx_plan_making *making, struct part *part,
		      const struct dx_node *lambda, struct dx_node *node, const struct dx_scope *scope)
{
	*part = (struct part){.kind = PART_MEMBER, .key = making->plan->key_count, .root = ROOT_COUNT};
	part->member = dx_plan_node_member(making, node, lambda->names[0]);
	if (part->member.node != PLAN_NOTHING)
		return plan_key(making->plan, part->member.node);
	struct dx_node *made = dx_node_copy_flat(making->query->arena, lambda);
	made->first = node;
	if (!root_replace(keys, part, &made->first, lambda->names[0]) || part->root == ROOT_COUNT)
		return false;
	bool is_text = !roots[part->root].class;
	part->kind = is_text && made->first->kind == DX_NODE_NAME ? PART_STACK : PART_MADE;
	part->made = (struct dx_closure){made, scope};
	if (is_text && !keys->nodes)
		keys->nodes = stack_nodes_new(making->query);
	if (part->kind == PART_MADE) {
		dx_keys_init(&part->values, making->query, &keys->arena, NULL);
		part->has_values = true;
	}
	return plan_key(making->plan, plan_column(making->plan, roots[part->root].column));
}

/* ---- values of ids ---- */

/* The stack of a site's number. */
static struct heap_site site_of(const struct dx_plan_keys *keys, uint64_t number)
{
	uint32_t entries = keys->query->session->dictionary->entry_count;
	if (keys->source == COLUMNS_OF_ALLOCATIONS)
		return keys->query->session->table->sites[number];
	return (struct heap_site){(uint32_t)(number / entries), (uint32_t)(number % entries)};
}

static struct dx_value root_value(struct dx_plan_keys *keys, uint32_t root, uint64_t number)
{
	if (roots[root].column != COLUMN_SITE && roots[root].column != COLUMN_FREE_SITE)
		return dx_id_object(keys->query, roots[root].class, (uint32_t)number);
	const struct heap_site site = site_of(keys, number);
	uint32_t node = dx_stack_node(keys->query, site.stack, site.entry);
	return roots[root].class ? dx_caller(keys->query, node) : dx_stack(keys->query, node);
}

static uint64_t made_number(struct dx_plan_keys *keys, struct part *part, uint64_t number, bool is_absent)
{
	struct dx_query *query = keys->query;
	struct dx_mark mark = dx_mark(query->arena);
	const struct dx_value none = {.kind = DX_ABSENT},
			      root = is_absent ? none : root_value(keys, part->root, number),
			      lambda = {.kind = DX_LAMBDA, .closure = &part->made};
	struct dx_value value = dx_call(query, &lambda, &root);
	/* Each collection is a key of its own. */
	keys->is_wrong |= value.kind == DX_SEQUENCE || value.kind == DX_LAMBDA;
	uint32_t place = dx_keys_add(&part->values, &value);
	dx_release(query->arena, mark);
	return place;
}

/* Return the node of the stack; sets is_wrong if its text may be that of another node. */
static uint64_t stack_number(struct dx_plan_keys *keys, uint64_t number)
{
	const struct heap_site site = site_of(keys, number);
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
		if (!part_make(keys, making, &keys->parts[i], lambda, node, closure->scope))
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

bool dx_plan_keys_are_absent(const struct dx_plan_keys *keys, const struct plan_rows *rows, uint32_t row)
{
	const struct part *part = &keys->parts[0];
	struct plan_value value = plan_cell(rows, row, part->key);
	return !keys->record && (value.is_absent || (part->kind == PART_MADE && value.number == part->values.absent));
}

uint32_t dx_plan_keys_order(const struct dx_plan_keys *keys, uint32_t part)
{
	if (part >= keys->count)
		return PLAN_NOTHING;
	const struct part *of = &keys->parts[part];
	return of->kind == PART_MEMBER && dx_plan_has_order(of->member.shape) ? of->key : PLAN_NOTHING;
}
