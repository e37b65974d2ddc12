/* SPDX-License-Identifier: MIT */
/*
 * -frames: one row per innermost frame that is left after culling, so that each allocation is in the row of the
 * function that asked for it, and in no other. -inclusive: in the rows of all functions on its stack, once in each.
 */
#include "action/report/action.h"

/* A group is a frame's name, from 1; 0: no stack. */
static void frames_groups(struct action_input *input, struct action_source *source, const struct heap_cell *cell,
			  struct action_groups *groups)
{
	uint32_t node = action_site_node(input, source, cell);
	action_groups_add(groups, node ? heap_names_frame(action_names(input), node)->name + 1 : 0);
}

static void inclusive_groups(struct action_input *input, struct action_source *source, const struct heap_cell *cell,
			     struct action_groups *groups)
{
	uint32_t node = action_site_node(input, source, cell);
	if (!node)
		action_groups_add(groups, 0);
	for (uint32_t at = node; at; at = heap_names_frame(action_names(input), at)->parent)
		action_groups_add(groups, heap_names_frame(action_names(input), at)->name + 1);
}

static bool frames_are_by_offset(struct action_input *input, uint32_t group)
{
	return group && heap_name_is_offset(heap_names_name(action_names(input), group - 1));
}

static char *frames_text(struct action_input *input, uint32_t group)
{
	return action_copy(group ? heap_names_name(action_names(input), group - 1)->text : "[no stack]");
}

static char *frames_label(struct action_input *input, uint32_t group)
{
	return group ? action_label(input, heap_names_name(action_names(input), group - 1)) : action_copy("[no stack]");
}

static void frames_json(struct action_input *input, uint32_t group, struct json *json)
{
	json_begin_object(json, "frame");
	if (group)
		action_json_name(input, heap_names_name(action_names(input), group - 1), json);
	else
		json_text(json, "symbol", "[no stack]");
	json_end_object(json);
}

const struct action action_frames = {
	.name = "frames",
	.title = "Frames",
	.label = "frame",
	.help = "one row per function that asked for memory",
	.groups = frames_groups,
	.is_by_offset = frames_are_by_offset,
	.text = frames_text,
	.label_text = frames_label,
	.json = frames_json,
};

const struct action action_inclusive = {
	.name = "frames-inclusive",
	.title = "Frames, with all that they call",
	.label = "frame",
	.is_inclusive = true,
	.help = "with -frames: one row per function anywhere on the stacks",
	.groups = inclusive_groups,
	.is_by_offset = frames_are_by_offset,
	.text = frames_text,
	.label_text = frames_label,
	.json = frames_json,
};
