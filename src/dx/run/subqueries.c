/* SPDX-License-Identifier: MIT */
/*
 * Lambdas have levels: 1 is the outermost one. A part depends on no parameter around it if all its names are of lambdas
 * within it, that is of higher levels than its place has:
 *
 *     Heap().Where(h => h.Frames.Any(f => f.Line > Heap().Max(x => x.Size)))
 *                  1                 2             -------3--------------
 */
#include "dx/run/subqueries.h"

#include <string.h>
#include <strings.h>

#include "dx/core/methods.h"

/* The lambdas around a node, the innermost first. */
struct scope_level {
	const struct scope_level *outer;
	const struct dx_node *lambda;
	unsigned number;
};

enum { CHILDREN_FIRST = 3 };

static uint32_t child_count(const struct dx_node *node)
{
	return CHILDREN_FIRST + (node->children ? node->count : 0);
}

/* Return a child, or NULL. */
static struct dx_node *child_at(const struct dx_node *node, uint32_t i)
{
	struct dx_node *const first[CHILDREN_FIRST] = {node->first, node->second, node->third};
	return i < CHILDREN_FIRST ? first[i] : node->children[i - CHILDREN_FIRST];
}

static uint16_t level_of(const struct scope_level *level, const char *name)
{
	for (; level; level = level->outer)
		for (uint32_t i = 0; i < level->lambda->count; i++)
			if (!strcmp(level->lambda->names[i], name))
				return (uint16_t)level->number;
	return UINT16_MAX;
}

/* A lambda that is a variable's, or a parameter's. */
static bool calls_lambda(const struct dx_node *node)
{
	return (node->kind == DX_NODE_CALL && !node->first && !dx_method_find(DX_OF_NOTHING, NULL, node->name)) ||
	       (node->kind == DX_NODE_APPLY && node->first->kind != DX_NODE_LAMBDA);
}

/* Methods without a result are called for what they do. A lambda of another place may set variables. */
static bool has_effect(const struct dx_node *node)
{
	for (const struct dx_method *const *table = dx_method_tables; *table && node->kind == DX_NODE_CALL; table++)
		for (const struct dx_method *row = *table; row->name; row++)
			if (row->result == DX_RESULT_KIND && row->kind == DX_ABSENT &&
			    !strcasecmp(row->name, node->name))
				return true;
	return node->kind == DX_NODE_ASSIGN || calls_lambda(node);
}

/* Set the least level of the names in each node, and whether it has calls or variables. Return whether there are
   effects. */
static bool levels_set(struct dx_node *node, const struct scope_level *level)
{
	const struct scope_level inside = {level, node, level ? level->number + 1 : 1};
	bool has_effects = has_effect(node);
	node->least_level = node->kind == DX_NODE_NAME ? level_of(level, node->name) : UINT16_MAX;
	node->has_call = node->kind == DX_NODE_CALL || node->kind == DX_NODE_VARIABLE;
	for (uint32_t i = 0; i < child_count(node); i++) {
		struct dx_node *child = child_at(node, i);
		if (!child)
			continue;
		has_effects |= levels_set(child, node->kind == DX_NODE_LAMBDA ? &inside : level);
		node->has_call |= child->has_call;
		if (child->least_level < node->least_level)
			node->least_level = child->least_level;
	}
	return has_effects;
}

/* Mark the largest parts that depend on nothing around them. Return whether there are any. */
static bool mark(struct dx_node *node, unsigned level)
{
	bool is_lambda = node->kind == DX_NODE_LAMBDA;
	node->is_subquery = level && !is_lambda && node->has_call && node->least_level > level;
	node->has_subqueries = node->is_subquery;
	for (uint32_t i = 0; i < child_count(node) && !node->is_subquery; i++)
		if (child_at(node, i) && mark(child_at(node, i), level + is_lambda))
			node->has_subqueries = true;
	return node->has_subqueries;
}

void dx_subqueries_mark(struct dx_node *tree)
{
	if (!levels_set(tree, NULL))
		mark(tree, 0);
}

struct dx_node *dx_subquery_take(struct dx_node *node)
{
	struct dx_node *taken = NULL;
	if (!node->has_subqueries)
		return NULL;
	if (node->is_subquery)
		taken = node;
	for (uint32_t i = 0; i < child_count(node) && !taken; i++)
		if (child_at(node, i))
			taken = dx_subquery_take(child_at(node, i));
	node->is_subquery = false;
	node->has_subqueries = taken && taken != node;
	return taken;
}
