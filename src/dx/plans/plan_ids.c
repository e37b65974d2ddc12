/* SPDX-License-Identifier: MIT */
#include "dx/plans/plan_ids.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "dx/core/methods.h"
#include "dx/core/syntax.h"
#include "dx/model/debugger.h"
#include "dx/model/objects.h"
#include "dx/model/stack_frames.h"
#include "dx/plans/explain.h"
#include "dx/plans/group_calls.h"
#include "dx/run/interpret.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* What an id stands for: the text of a stack, its frames, the caller among them, or an object of a class. */
enum root_kind { ROOT_STACK, ROOT_FRAMES, ROOT_CALLER, ROOT_OBJECT };

/* Members of rows that stand for ids, and what the interpreter has of them. */
static const struct {
	const char *name;
	enum column_source source;
	enum column_id column;
	enum root_kind kind;
	const struct dx_class *class; /* of ROOT_OBJECT */
} roots[] = {
	{"Stack", COLUMNS_OF_EVENTS, COLUMN_SITE, ROOT_STACK, NULL},
	{"Frames", COLUMNS_OF_EVENTS, COLUMN_SITE, ROOT_FRAMES, NULL},
	{"Caller", COLUMNS_OF_EVENTS, COLUMN_SITE, ROOT_CALLER, NULL},
	{"Thread", COLUMNS_OF_EVENTS, COLUMN_THREAD, ROOT_OBJECT, &dx_thread_class},
	{"Process", COLUMNS_OF_EVENTS, COLUMN_PROCESS, ROOT_OBJECT, &dx_process_class},
	{"Stack", COLUMNS_OF_ALLOCATIONS, COLUMN_SITE, ROOT_STACK, NULL},
	{"Frames", COLUMNS_OF_ALLOCATIONS, COLUMN_SITE, ROOT_FRAMES, NULL},
	{"Caller", COLUMNS_OF_ALLOCATIONS, COLUMN_SITE, ROOT_CALLER, NULL},
	{"FreeStack", COLUMNS_OF_ALLOCATIONS, COLUMN_FREE_SITE, ROOT_STACK, NULL},
	{"FreeFrames", COLUMNS_OF_ALLOCATIONS, COLUMN_FREE_SITE, ROOT_FRAMES, NULL},
	{"Thread", COLUMNS_OF_ALLOCATIONS, COLUMN_THREAD, ROOT_OBJECT, &dx_thread_class},
	{"FreeThread", COLUMNS_OF_ALLOCATIONS, COLUMN_FREE_THREAD, ROOT_OBJECT, &dx_thread_class},
	{"Process", COLUMNS_OF_ALLOCATIONS, COLUMN_PROCESS, ROOT_OBJECT, &dx_process_class},
};
enum { ROOT_COUNT = sizeof(roots) / sizeof(roots[0]) };

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

/* Lambdas around a node, within the expression: their parameters are not the row's. */
struct inner_lambdas {
	const struct inner_lambdas *outer;
	const struct dx_node *lambda;
};

static bool is_inner_name(const struct inner_lambdas *inner, const char *name)
{
	for (; inner; inner = inner->outer)
		for (uint32_t i = 0; i < inner->lambda->count; i++)
			if (!strcmp(inner->lambda->names[i], name))
				return true;
	return false;
}

/* Members, operators, indexes, conditions, and methods of texts and of collections have no effects. */
static bool has_effects(const struct dx_node *node)
{
	switch ((enum dx_node_kind)node->kind) {
	case DX_NODE_CALL:
		return !node->first || (!dx_method_find(DX_OF_TEXT, NULL, node->name) &&
					!dx_method_find(DX_OF_SEQUENCE, NULL, node->name));
	case DX_NODE_MEMBER:
	case DX_NODE_BINARY:
	case DX_NODE_UNARY:
	case DX_NODE_CONDITIONAL:
	case DX_NODE_INDEX:
	case DX_NODE_LAMBDA:
		return false;
	default:
		return true;
	}
}

/* Replace the root by the parameter, wherever it stands. All of it must be of one root, and have no effects. */
static bool root_replace(struct dx_plan_made *made, struct dx_arena *arena, struct dx_node **place,
			 const char *parameter, const struct inner_lambdas *inner)
{
	struct dx_node *node = *place;
	const struct inner_lambdas inside = {inner, node};
	if (!node || node->kind == DX_NODE_LITERAL)
		return true;
	if (is_member_of(node, parameter)) {
		uint32_t root = root_find(made->source, node->name);
		bool is_first = made->root == ROOT_COUNT;
		made->root = is_first ? root : made->root;
		*place = node->first;
		return root < ROOT_COUNT && root == made->root;
	}
	if (node->kind == DX_NODE_NAME)
		return is_inner_name(inner, node->name);
	if (has_effects(node))
		return false;
	*place = node = dx_node_copy_flat(arena, node);
	if (node->kind == DX_NODE_LAMBDA) {
		inner = &inside;
		if (is_inner_name(inner, parameter))
			return false;
	}
	/* Stack[0] is Frames[0]. */
	if (node->kind == DX_NODE_INDEX && is_member_of(node->first, parameter) &&
	    dx_name_of_parts(node->first->name)) {
		node->first = dx_node_copy_flat(arena, node->first);
		node->first->name = dx_name_of_parts(node->first->name);
	}
	for (uint32_t i = 0; node->children && i < node->count; i++)
		if (!root_replace(made, arena, &node->children[i], parameter, inner))
			return false;
	return root_replace(made, arena, &node->first, parameter, inner) &&
	       root_replace(made, arena, &node->second, parameter, inner) &&
	       root_replace(made, arena, &node->third, parameter, inner);
}

bool dx_plan_made_take(const struct dx_plan_making *making, const struct dx_closure *lambda, struct dx_node *node,
		       struct dx_plan_made *made)
{
	struct dx_arena *arena = making->query->arena;
	struct dx_node *copy = dx_node_copy_flat(arena, lambda->node);
	*made = (struct dx_plan_made){making->plan->source, ROOT_COUNT, false, {copy, lambda->scope}};
	copy->first = node;
	if (!root_replace(made, arena, &copy->first, copy->names[0], NULL) || made->root == ROOT_COUNT)
		return false;
	made->is_stack = roots[made->root].kind == ROOT_STACK && copy->first->kind == DX_NODE_NAME;
	return true;
}

uint32_t dx_plan_made_id(struct plan *plan, const struct dx_plan_made *made)
{
	return plan_column(plan, roots[made->root].column);
}

struct heap_site dx_plan_site(const struct dx_query *query, enum column_source source, uint64_t number)
{
	uint32_t entries = query->session->dictionary->entry_count;
	if (source == COLUMNS_OF_ALLOCATIONS)
		return query->session->table->sites[number];
	return (struct heap_site){(uint32_t)(number / entries), (uint32_t)(number % entries)};
}

static struct dx_value root_value(struct dx_query *query, const struct dx_plan_made *made, uint64_t id)
{
	enum root_kind kind = roots[made->root].kind;
	if (kind == ROOT_OBJECT)
		return dx_id_object(query, roots[made->root].class, (uint32_t)id);
	const struct heap_site site = dx_plan_site(query, made->source, id);
	uint32_t node = dx_stack_node(query, site.stack, site.entry);
	return kind == ROOT_STACK    ? dx_stack(query, node)
	       : kind == ROOT_FRAMES ? dx_frames(query, node)
				     : dx_caller(query, node);
}

struct dx_value dx_plan_made_value(struct dx_query *query, const struct dx_plan_made *made, uint64_t id, bool is_absent)
{
	const struct dx_value lambda = {.kind = DX_LAMBDA, .closure = &made->lambda};
	struct dx_value root = {.kind = DX_ABSENT};
	assert(made->root < ROOT_COUNT);
	if (!is_absent)
		root = root_value(query, made, id);
	return dx_call(query, &lambda, &root);
}

/* ---- conditions ---- */

/* A condition, as a look-up of ids. */
struct made_lookup {
	struct plan_lookup lookup; /* at first without values */
	struct dx_plan_made made;
	uint64_t *truths;  /* by id */
	bool fails_absent; /* it is an error of rows without an id */
};

enum { LOOKUP_FIRST = 1024, LOOKUP_PART = 4 /* of the memory, at most */ };

/* Set the condition's value of an id. Return false if it is an error. */
static bool truth_find(struct dx_query *query, const struct dx_plan_made *made, uint64_t id, bool is_absent,
		       uint64_t *truth)
{
	struct dx_mark mark = dx_mark(query->arena);
	struct dx_value value = dx_plan_made_value(query, made, id, is_absent);
	bool is_error = value.kind == DX_ERROR;
	*truth = dx_is_true(&value);
	dx_release(query->arena, mark);
	return !is_error;
}

uint32_t dx_plan_made_condition(const struct dx_plan_making *making, const struct dx_closure *lambda,
				struct dx_node *node)
{
	struct plan *plan = making->plan;
	struct made_lookup *found = dx_new(making->arena, struct made_lookup, 1);
	uint64_t of_absent;
	if (!dx_plan_made_take(making, lambda, node, &found->made))
		return PLAN_NOTHING;
	found->lookup.type = PLAN_TRUTH;
	found->fails_absent = !truth_find(making->query, &found->made, 0, true, &of_absent);
	uint32_t truth = plan_lookup(plan, dx_plan_made_id(plan, &found->made), &found->lookup);
	return plan_apply(plan, PLAN_IF_ABSENT, truth, plan_truth(plan, of_absent), PLAN_NOTHING);
}

/* Make room for the truth of an id. Return false if it would take too much memory. */
static bool truths_grow(const struct dx_plan_making *making, struct made_lookup *found, uint64_t id)
{
	uint64_t count = found->lookup.count ? found->lookup.count : LOOKUP_FIRST;
	while (count <= id)
		count *= 2;
	if (count == found->lookup.count)
		return true;
	if (count > making->query->budget.limit_bytes / LOOKUP_PART / sizeof(*found->truths))
		return false;
	uint64_t *truths = dx_new(making->arena, uint64_t, count);
	if (found->truths)
		memcpy(truths, found->truths, found->lookup.count * sizeof(*truths));
	found->lookup.values = found->truths = truths;
	found->lookup.count = count;
	return true;
}

static bool row_take(const struct dx_plan_making *making, struct made_lookup *found, const struct plan_value *id)
{
	if (id->is_absent)
		return !found->fails_absent;
	return truths_grow(making, found, id->number) &&
	       truth_find(making->query, &found->made, id->number, false, &found->truths[id->number]) &&
	       dx_step(making->query, "Where", found->made.lambda.node->column);
}

/* Evaluate the condition for all ids that rows have. */
static bool truths_find(const struct dx_plan_making *making, struct made_lookup *found)
{
	struct plan plan;
	struct plan_target target;
	struct plan_rows rows;
	struct diag diag = {""};
	bool is_good = truths_grow(making, found, 0);
	int status = -1;
	plan_init(&plan, found->made.source);
	dx_plan_restrict(&plan);
	if (is_good && plan_key(&plan, dx_plan_made_id(&plan, &found->made)) &&
	    dx_plan_target(making->query, &plan, &target)) {
		struct plan_run *run = plan_open(&plan, &target);
		while (is_good && (status = plan_next(run, &rows, &diag)) > 0)
			for (uint32_t i = 0; i < rows.count && is_good; i++) {
				struct plan_value id = plan_cell(&rows, i, 0);
				is_good = row_take(making, found, &id);
			}
		plan_close(run);
	}
	plan_fini(&plan);
	return !status;
}

bool dx_plan_ready(const struct dx_plan_making *making, const struct dx_sequence *sequence, struct plan_target *target)
{
	const struct plan *plan = making->plan;
	for (uint32_t i = 0; i < plan->node_count; i++) {
		/* Look-ups of names have their values. */
		struct made_lookup *found = (struct made_lookup *)plan->nodes[i].lookup;
		if (plan->nodes[i].operation == PLAN_LOOKUP && !found->lookup.values && !truths_find(making, found))
			return dx_plan_refuse(making->query, sequence,
					      "a condition is an error of some stacks, threads or processes");
	}
	return dx_plan_target(making->query, plan, target);
}
