/* SPDX-License-Identifier: MIT */
/*
 * -frames: one row per innermost frame that is left after culling, so that each allocation is in the row of the
 * function that asked for it, and in no other. -inclusive: in the rows of all functions on its stack, once in each.
 */
#include "action/report/report_rows.h"
#include "action/report/stack_view.h"

/* A group is a frame's name, from 1; 0: no stack. */
static void frames_groups(struct action_input *input, struct action_source *source, const struct heap_cell *cell,
			  struct action_groups *groups)
{
	uint32_t node = action_site_node(input, source, cell);
	action_groups_add(groups, node ? heap_names_frame(action_names(input), node)->name + 1 : 0);
}

/* Return whether the user's code called the function, which asked for memory: `report` has its bytes there. */
static bool is_called_by_user(struct action_input *input, uint32_t group)
{
	struct action_source *source = &input->sources[0];
	for (uint32_t i = 0; i < source->window->cell_count; i++) {
		uint32_t node = action_site_node(input, source, &source->window->cells[i]);
		if (node && heap_names_frame(action_names(input), node)->name + 1 == group &&
		    stack_view_user_node(input, node) != node)
			return true;
	}
	return false;
}

/* Name the largest function of a library that has a notable part of what the rows are sorted by. */
static void frames_note(struct action_input *input, const struct action_rows *rows, struct sink *out)
{
	enum { NOTABLE_PART = 10 };
	uint64_t all = 0;
	if (input->layout.has_all_frames)
		return;
	for (size_t i = 0; i < rows->memory_count; i++)
		all += rows->memory[i].rank;
	for (size_t i = 0; i < rows->shown && rows->rows[i]->rank > all / NOTABLE_PART; i++) {
		const uint32_t group = rows->rows[i]->group;
		/* The walk to the user's code names frames, and may move all names. */
		if (!group || !heap_names_name(action_names(input), group - 1)->is_library ||
		    !is_called_by_user(input, group))
			continue;
		sink_format(out, "  %s is of a library: report adds it to the function of yours that called it\n",
			    text_shown(heap_names_name(action_names(input), group - 1)->short_text));
		return;
	}
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
	.note = frames_note,
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
