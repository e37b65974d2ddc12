/* SPDX-License-Identifier: MIT */
/* -stacks: one row per stack, frame by frame the same by name. */
#include "action/action.h"

#include <inttypes.h>

#include "base/memory.h"
#include "base/style.h"
#include "base/text.h"

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
	const struct heap_names *names = action_names(input);
	for (uint32_t at = node; at; at = heap_names_frame(names, at)->parent)
		if (heap_name_is_offset(heap_names_name(names, heap_names_frame(names, at)->name)))
			return true;
	return false;
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

static void stack_line(struct action_input *input, uint32_t node, struct sink *out)
{
	const struct heap_frame *frame = heap_names_frame(action_names(input), node);
	char room[TEXT_NAME_BYTES];
	sink_format(out, "        %s",
		    text_name(text_shown(heap_names_name(action_names(input), frame->name)->text), room));
	sink_text(out, style_begin(input->is_colored, STYLE_QUIET));
	if (frame->is_inlined)
		sink_text(out, " [inlined]");
	if (frame->file)
		sink_format(out, "  %s", text_shown(text_file_name(frame->file)));
	if (frame->line)
		sink_format(out, ":%" PRIu32, frame->line);
	sink_format(out, "%s\n", style_end(input->is_colored, STYLE_QUIET));
}

char *action_stack_lines(struct action_input *input, uint32_t node)
{
	struct sink out;
	sink_to_memory(&out);
	if (!node)
		sink_text(&out, "        [no stack]\n");
	for (uint32_t at = node; at; at = heap_names_frame(action_names(input), at)->parent)
		stack_line(input, at, &out);
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
	.json = action_stack_json,
	.lines = action_stack_lines,
};
