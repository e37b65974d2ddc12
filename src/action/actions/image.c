/* SPDX-License-Identifier: MIT */
/* -image: one row per image of the frame that -frames would show. */
#include "action/report/action.h"

static void image_groups(struct action_input *input, struct action_source *source, const struct heap_cell *cell,
			 struct action_groups *groups)
{
	uint32_t node = action_site_node(input, source, cell);
	const struct heap_name *name =
		node ? heap_names_name(action_names(input), heap_names_frame(action_names(input), node)->name) : NULL;
	action_groups_add(groups, intern_text(&input->images, !name         ? "[no stack]"
							      : name->image ? name->image
									    : name->text));
}

static char *image_text(struct action_input *input, uint32_t group)
{
	return action_copy(input->images.items[group].data);
}

static void image_json(struct action_input *input, uint32_t group, struct json *json)
{
	json_text(json, "image", input->images.items[group].data);
}

const struct action action_image = {
	.name = "image",
	.title = "Images",
	.label = "image",
	.help = "one row per executable or library of those functions",
	.groups = image_groups,
	.text = image_text,
	.json = image_json,
};
