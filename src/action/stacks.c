/* SPDX-License-Identifier: MIT */
/* -stacks: one row per stack, frame by frame the same by name. */
#include "action/action.h"

#include "action/stack_view.h"

static void stacks_groups(struct action_input *input, struct action_source *source, const struct heap_cell *cell,
			  struct action_groups *groups)
{
	action_groups_add(groups, action_site_node(input, source, cell));
}

char *action_stack_text(struct action_input *input, uint32_t node)
{
	return heap_names_text(action_names(input), node, 0);
}

void action_stack_json(struct action_input *input, uint32_t node, struct json *json)
{
	json_begin_array(json, "stack");
	for (uint32_t at = node; at; at = heap_names_frame(action_names(input), at)->parent) {
		json_begin_object(json, NULL);
		action_json_node(input, at, json);
		json_end_object(json);
	}
	json_end_array(json);
}

char *action_stack_lines(struct action_input *input, uint32_t node)
{
	enum { INDENT = 8 };
	struct sink out;
	sink_to_memory(&out);
	stack_view_print(&(struct stack_view){.input = input, .indent = INDENT, .has_places = true}, node, &out);
	sink_put(&out, '\n');
	return sink_take(&out, NULL);
}

const struct action action_stacks = {
	.name = "stacks",
	.title = "Stacks",
	.label = "stack",
	.help = "one row per distinct stack (the default)",
	.groups = stacks_groups,
	.text = action_stack_text,
	.json = action_stack_json,
	.lines = action_stack_lines,
};
