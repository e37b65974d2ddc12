/* SPDX-License-Identifier: MIT */
#include "action/actions/stacks.h"

#include "action/report/action.h"
#include "action/report/stack_view.h"

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

bool action_stack_has_offset(struct action_input *input, uint32_t node)
{
	return heap_names_frame(action_names(input), node)->has_offset;
}

static int stacks_compare(struct action_input *input, uint32_t one, uint32_t other)
{
	return heap_names_compare(action_names(input), one, other);
}

bool action_stack_matches(struct action_input *input, uint32_t node, struct heap_patterns *patterns)
{
	const struct heap_names *names = action_names(input);
	bool matches = false;
	/* To the outermost frame, so that each pattern sees all of them. */
	for (uint32_t at = node; at; at = heap_names_frame(names, at)->parent)
		matches |= heap_patterns_match(patterns, names, at);
	return matches;
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
	.is_by_offset = action_stack_has_offset,
	.text = action_stack_text,
	.compare = stacks_compare,
	.json = action_stack_json,
	.lines = action_stack_lines,
};
