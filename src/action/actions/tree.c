/* SPDX-License-Identifier: MIT */
/* -tree: who called whom, from the thread's start down to the functions that asked for memory; each row with all
   beneath it. */
#include "action/actions/stacks.h"
#include "action/report/action.h"

/* A group is a node of the names; 0: no stack. */
static void tree_groups(struct action_input *input, struct action_source *source, const struct heap_cell *cell,
			struct action_groups *groups)
{
	uint32_t node = action_site_node(input, source, cell);
	if (!node)
		action_groups_add(groups, 0);
	for (uint32_t at = node; at; at = heap_names_frame(action_names(input), at)->parent)
		action_groups_add(groups, at);
}

static uint32_t tree_parent(struct action_input *input, uint32_t group)
{
	uint32_t parent = group ? heap_names_frame(action_names(input), group)->parent : 0;
	return parent ? parent : HEAP_NONE;
}

static char *tree_text(struct action_input *input, uint32_t group)
{
	return action_copy(
		group ? heap_names_name(action_names(input), heap_names_frame(action_names(input), group)->name)->text
		      : "[no stack]");
}

static char *tree_label(struct action_input *input, uint32_t group)
{
	const struct heap_names *names = action_names(input);
	uint32_t above = tree_parent(input, group);
	if (!group)
		return action_copy("[no stack]");
	return action_label_beneath(
		input, heap_names_name(names, heap_names_frame(names, group)->name),
		above == HEAP_NONE ? NULL : heap_names_name(names, heap_names_frame(names, above)->name));
}

static void tree_json(struct action_input *input, uint32_t group, struct json *json)
{
	json_begin_object(json, "frame");
	if (group)
		action_json_node(input, group, json);
	else
		json_text(json, "symbol", "[no stack]");
	json_end_object(json);
}

const struct action action_tree = {
	.name = "tree",
	.title = "Calls from the threads' starts",
	.label = "frame",
	.is_inclusive = true,
	.help = "who called whom, from the threads' starts",
	.groups = tree_groups,
	.parent = tree_parent,
	.is_by_offset = action_stack_has_offset,
	.text = tree_text,
	.label_text = tree_label,
	.json = tree_json,
};
