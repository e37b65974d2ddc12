/* SPDX-License-Identifier: MIT */
/*
 * -callers FUNCTION: who called it, and who called these, for what was allocated beneath it; each row with all beneath
 * it. Of a stack that has the function several times, its innermost call counts.
 */
#include "action/report/action.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

/* A tree from callee to caller; its nodes are numbered from 0. */
struct action_callers {
	struct map children; /* (parent + 1, name) -> node */
	struct {
		uint32_t parent, name;
	} * nodes;
	uint32_t count;
	size_t capacity;
};

static uint32_t node_add(struct action_callers *callers, uint32_t parent, uint32_t name)
{
	bool added;
	uint32_t *node = map_add(&callers->children, map_pair(parent + 1, name), &added);
	if (added) {
		assert(parent == HEAP_NONE || parent < callers->count);
		*node = callers->count;
		memory_grow(callers->nodes, callers->count, callers->capacity);
		callers->nodes[callers->count].parent = parent;
		callers->nodes[callers->count++].name = name;
	}
	return *node;
}

static void callers_free(struct action_callers *callers)
{
	map_fini(&callers->children);
	free(callers->nodes);
	free(callers);
}

static void callers_groups(struct action_input *input, struct action_source *source, const struct heap_cell *cell,
			   struct action_groups *groups)
{
	struct heap_names *names = source->names;
	uint32_t at = heap_names_site(names, &source->table->sites[cell->site]), node = HEAP_NONE;
	if (!input->callers) {
		input->callers = memory_zeroed(1, sizeof(*input->callers));
		input->callers_free = callers_free;
	}
	while (at && !heap_patterns_match(input->callers_of, names, at))
		at = heap_names_frame(names, at)->parent;
	for (; at; at = heap_names_frame(names, at)->parent) {
		node = node_add(input->callers, node, heap_names_frame(names, at)->name);
		action_groups_add(groups, node);
	}
}

static uint32_t callers_parent(struct action_input *input, uint32_t group)
{
	assert(group < input->callers->count);
	return input->callers->nodes[group].parent;
}

static const struct heap_name *name_of(struct action_input *input, uint32_t group)
{
	assert(group < input->callers->count);
	return heap_names_name(action_names(input), input->callers->nodes[group].name);
}

static char *callers_text(struct action_input *input, uint32_t group)
{
	return action_copy(name_of(input, group)->text);
}

static char *callers_label(struct action_input *input, uint32_t group)
{
	uint32_t above = callers_parent(input, group);
	return action_label_beneath(input, name_of(input, group), above == HEAP_NONE ? NULL : name_of(input, above));
}

static void callers_json(struct action_input *input, uint32_t group, struct json *json)
{
	json_begin_object(json, "frame");
	action_json_name(input, name_of(input, group), json);
	json_end_object(json);
}

const struct action action_callers_table = {
	.name = "callers",
	.title = "Callers",
	.label = "frame",
	.is_inclusive = true,
	.help = "who called FUNCTION, and who called these",
	.groups = callers_groups,
	.parent = callers_parent,
	.text = callers_text,
	.label_text = callers_label,
	.json = callers_json,
};
