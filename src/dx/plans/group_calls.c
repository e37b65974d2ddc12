/* SPDX-License-Identifier: MIT */
#include "dx/plans/group_calls.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

static const char *const method_names[DX_GROUP_METHODS] = {"Count", "Sum", "Average", "Min", "Max", "First", "Any"};

const char *dx_group_call_name(enum dx_group_call_kind kind)
{
	assert(kind < DX_GROUP_METHODS);
	return method_names[kind];
}

bool dx_node_mentions(const struct dx_node *node, const char *name)
{
	if (!node)
		return false;
	if (node->kind == DX_NODE_NAME)
		return !strcmp(node->name, name);
	if (node->kind == DX_NODE_LAMBDA)
		for (uint32_t i = 0; i < node->count; i++)
			if (!strcmp(node->names[i], name))
				return false;
	for (uint32_t i = 0; node->children && i < node->count; i++)
		if (dx_node_mentions(node->children[i], name))
			return true;
	return dx_node_mentions(node->first, name) || dx_node_mentions(node->second, name) ||
	       dx_node_mentions(node->third, name);
}

struct dx_node *dx_node_copy_flat(struct dx_arena *arena, const struct dx_node *node)
{
	struct dx_node *copy = dx_new(arena, struct dx_node, 1);
	*copy = *node;
	if (node->children) {
		copy->children = dx_new(arena, struct dx_node *, (size_t)node->count + 1);
		memcpy(copy->children, node->children, node->count * sizeof(*node->children));
	}
	return copy;
}

/* ---- the key ---- */

static bool is_call_on(const struct dx_node *node, const char *name)
{
	return node->kind == DX_NODE_CALL && node->first && node->first->kind == DX_NODE_NAME &&
	       !strcmp(node->first->name, name);
}

static bool is_first_of(const struct dx_node *node, const char *name)
{
	return is_call_on(node, name) && !node->count && !strcasecmp(node->name, method_names[DX_GROUP_FIRST]);
}

/* Whether `node` is the key's expression with the group's first element in place of the parameter. */
static bool is_key(const struct dx_node *key, const char *parameter, const struct dx_node *node, const char *group)
{
	if (key->kind == DX_NODE_NAME)
		return !strcmp(key->name, parameter) && is_first_of(node, group);
	return key->kind == DX_NODE_MEMBER && node->kind == DX_NODE_MEMBER && !strcasecmp(key->name, node->name) &&
	       is_key(key->first, parameter, node->first, group);
}

/* Return the part of the key that the node is; PART_NONE: none. */
enum { PART_NONE = UINT32_MAX };

static uint32_t key_part(const struct dx_group_calls *calls, const struct dx_node *node, const char *group)
{
	const struct dx_node *key = calls->key->first;
	const char *parameter = calls->key->names[0];
	if (node->kind == DX_NODE_MEMBER && node->first->kind == DX_NODE_NAME && !strcmp(node->first->name, group) &&
	    !strcasecmp(node->name, DX_NAME_KEY))
		return key->kind == DX_NODE_RECORD ? DX_GROUP_KEY_WHOLE : 0;
	if (key->kind != DX_NODE_RECORD)
		return is_key(key, parameter, node, group) ? 0 : PART_NONE;
	for (uint32_t i = 0; i < key->count; i++)
		if (is_key(key->children[i], parameter, node, group))
			return i;
	return PART_NONE;
}

/* ---- the lambdas ---- */

struct call_copy {
	struct dx_group_calls *calls;
	const struct dx_scope *scope;
	const char *group;
};

static bool add(const struct call_copy *taking, struct dx_group_call call)
{
	struct dx_group_calls *calls = taking->calls;
	if (calls->count == DX_GROUP_CALLS_MAX)
		return false;
	calls->items[calls->count++] = call;
	return true;
}

/* Take a call on the group, such as g.Sum(x => x.Size). */
static struct dx_node *call_take(const struct call_copy *taking, const struct dx_node *node)
{
	const struct dx_node *argument = node->count == 1 ? node->children[0] : NULL;
	unsigned kind = 0;
	while (kind < DX_GROUP_METHODS && strcasecmp(method_names[kind], node->name) != 0)
		kind++;
	bool is_lambda = argument && argument->kind == DX_NODE_LAMBDA && argument->count == 1;
	if (kind == DX_GROUP_METHODS || node->count > 1 || (argument && !is_lambda) ||
	    dx_node_mentions(argument, taking->group))
		return NULL;
	struct dx_node *copy = dx_node_copy_flat(taking->calls->arena, node);
	return add(taking, (struct dx_group_call){copy, {argument, taking->scope}, (enum dx_group_call_kind)kind, 0})
		       ? copy
		       : NULL;
}

/* A call that stands for the key in place of its expression. */
static struct dx_node *key_take(const struct call_copy *taking, const struct dx_node *node, uint32_t part)
{
	struct dx_node *copy = dx_new(taking->calls->arena, struct dx_node, 1),
		       *name = dx_new(taking->calls->arena, struct dx_node, 1);
	*name = (struct dx_node){.kind = DX_NODE_NAME, .height = 1, .column = node->column, .name = taking->group};
	*copy = (struct dx_node){.kind = DX_NODE_CALL,
				 .height = 2,
				 .column = node->column,
				 .name_column = node->name_column,
				 .name = method_names[DX_GROUP_FIRST],
				 .first = name};
	return add(taking, (struct dx_group_call){copy, {NULL, NULL}, DX_GROUP_KEY, part}) ? copy : NULL;
}

/* Copy what uses the group. False: something else is done with it, or a lambda that is called later uses it. */
static bool take(const struct call_copy *taking, struct dx_node **place)
{
	struct dx_node *node = *place;
	if (!node || !dx_node_mentions(node, taking->group))
		return true;
	uint32_t part = key_part(taking->calls, node, taking->group);
	if (node->kind == DX_NODE_NAME || node->kind == DX_NODE_LAMBDA)
		return false;
	if (part != PART_NONE || is_call_on(node, taking->group)) {
		*place = part != PART_NONE ? key_take(taking, node, part) : call_take(taking, node);
		return *place;
	}
	*place = node = dx_node_copy_flat(taking->calls->arena, node);
	for (uint32_t i = 0; node->children && i < node->count; i++)
		if (!take(taking, &node->children[i]))
			return false;
	return take(taking, &node->first) && take(taking, &node->second) && take(taking, &node->third);
}

const struct dx_closure *dx_group_calls_take(struct dx_group_calls *calls, const struct dx_closure *lambda)
{
	const struct dx_node *node = lambda->node;
	assert(node->kind == DX_NODE_LAMBDA && calls->key);
	if (node->count != 1)
		return NULL;
	const struct call_copy taking = {calls, lambda->scope, node->names[0]};
	struct dx_closure *copy = dx_new(calls->arena, struct dx_closure, 1);
	struct dx_node *made = dx_new(calls->arena, struct dx_node, 1);
	*made = *node;
	*copy = (struct dx_closure){made, lambda->scope};
	return take(&taking, &made->first) ? copy : NULL;
}

uint32_t dx_group_calls_find(const struct dx_group_calls *calls, const struct dx_node *node)
{
	uint32_t i = 0;
	while (i < calls->count && calls->items[i].node != node)
		i++;
	return i;
}

/* ---- the answers ---- */

struct dx_value dx_group_call_answer(struct dx_query *query, const struct dx_group_call *call,
				     const struct dx_group_cell *cell)
{
	assert(call->kind != DX_GROUP_KEY);
	if (cell->sum.error.kind == DX_ERROR)
		return cell->sum.error;
	switch (call->kind) {
	case DX_GROUP_COUNT:
		return dx_number(cell->sum.count);
	case DX_GROUP_ANY:
		return dx_bool(cell->sum.count > 0);
	case DX_GROUP_SUM:
		return dx_sum_result(query, &cell->sum);
	case DX_GROUP_AVERAGE:
		return dx_sum_average(query, &cell->sum);
	case DX_GROUP_FIRST:
		return cell->sum.count ? cell->value : dx_error(query, "First: there is no such element");
	default:
		return cell->value.kind == DX_ABSENT
			       ? dx_error(query, "%s: there are no elements", dx_group_call_name(call->kind))
			       : cell->value;
	}
}

struct dx_value dx_group_key_part(const struct dx_group_calls *calls, const struct dx_value *key, uint32_t part)
{
	bool has_parts =
		calls->key->first->kind == DX_NODE_RECORD && key->kind == DX_OBJECT && part != DX_GROUP_KEY_WHOLE;
	return has_parts ? ((const struct dx_record *)key->data)->values[part] : *key;
}

static struct dx_value group_call(struct dx_query *query, const struct dx_value *object, const struct dx_node *node)
{
	const struct dx_group *group = object->data;
	uint32_t call = dx_group_calls_find(group->calls, node);
	return call < group->calls->count ? group->answer(query, group, call)
					  : dx_error(query, "the group has no such result");
}

const struct dx_class dx_group_class = {.name = "group", .help = "a group of elements", .call = group_call};
