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
static bool root_replace(struct dx_plan_made *made, struct dx_arena *arena, struct dx_node **place,
			 const char *parameter)
{
	struct dx_node *node = *place;
	if (node->kind == DX_NODE_LITERAL)
		return true;
	if (is_member_of(node, parameter)) {
		uint32_t root = root_find(made->source, node->name);
		bool is_first = made->root == ROOT_COUNT;
		made->root = is_first ? root : made->root;
		*place = node->first;
		return root < ROOT_COUNT && root == made->root;
	}
	bool is_call = node->kind == DX_NODE_CALL && node->first && dx_method_find(DX_OF_TEXT, NULL, node->name);
	if (node->kind != DX_NODE_MEMBER && node->kind != DX_NODE_BINARY && node->kind != DX_NODE_UNARY && !is_call)
		return false;
	*place = node = dx_node_copy_flat(arena, node);
	for (uint32_t i = 0; node->children && i < node->count; i++)
		if (!root_replace(made, arena, &node->children[i], parameter))
			return false;
	return root_replace(made, arena, &node->first, parameter) &&
	       (!node->second || root_replace(made, arena, &node->second, parameter)) && !node->third;
}

bool dx_plan_made_take(const struct dx_plan_making *making, const struct dx_closure *lambda, struct dx_node *node,
		       struct dx_plan_made *made)
{
	struct dx_arena *arena = making->query->arena;
	struct dx_node *copy = dx_node_copy_flat(arena, lambda->node);
	*made = (struct dx_plan_made){making->plan->source, ROOT_COUNT, false, {copy, lambda->scope}};
	copy->first = node;
	if (!root_replace(made, arena, &copy->first, copy->names[0]) || made->root == ROOT_COUNT)
		return false;
	made->is_stack = !roots[made->root].class && copy->first->kind == DX_NODE_NAME;
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

struct dx_value dx_plan_made_value(struct dx_query *query, const struct dx_plan_made *made, uint64_t id, bool is_absent)
{
	const struct dx_value lambda = {.kind = DX_LAMBDA, .closure = &made->lambda};
	struct dx_value root = {.kind = DX_ABSENT};
	assert(made->root < ROOT_COUNT);
	const struct dx_class *class = roots[made->root].class;
	if (!is_absent && class && class != &dx_frame_class) {
		root = dx_id_object(query, class, (uint32_t)id);
	} else if (!is_absent) {
		const struct heap_site site = dx_plan_site(query, made->source, id);
		uint32_t node = dx_stack_node(query, site.stack, site.entry);
		root = class ? dx_caller(query, node) : dx_stack(query, node);
	}
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
