/* SPDX-License-Identifier: MIT */
/* -image: one row per image of the frame that -frames would show. */
#include "action/action.h"

static void image_groups(struct action_source *source, const struct heap_cell *cell, struct action_groups *groups)
{
	uint32_t node = action_site_node(source, cell);
	const struct heap_name *name =
		node ? heap_names_name(source->names, heap_names_frame(source->names, node)->name) : NULL;
	action_groups_add(groups, intern_text(&source->images, !name         ? "[no stack]"
							       : name->image ? name->image
									     : name->text));
}

static char *image_text(struct action_source *source, uint32_t group)
{
	return action_copy(source->images.items[group].data);
}

static void image_json(struct action_source *source, uint32_t group, struct json *json)
{
	json_text(json, "image", source->images.items[group].data);
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
