/* SPDX-License-Identifier: MIT */
/* -image: one row per image of the frame that -frames would show. */
#include "action/action.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static uint32_t image_group(struct action_source *source, const struct heap_site *site)
{
	uint32_t node = heap_names_site(source->names, site);
	if (!node)
		return intern_text(&source->images, "[no stack]");
	const struct heap_frame *frame = heap_names_frame(source->names, heap_names_caller(source->names, node));
	const struct heap_name *name = heap_names_name(source->names, frame->name);
	return intern_text(&source->images, name->image ? name->image : name->text);
}

static char *image_text(struct action_source *source, uint32_t group)
{
	char *text = strdup(source->images.items[group].data);
	if (!text)
		memory_exhausted(0);
	return text;
}

static void image_json(struct action_source *source, uint32_t group, struct json *json)
{
	json_text(json, action_image.label, source->images.items[group].data);
}

const struct action action_image = {
	.name = "image", .title = "Images", .label = "image", .help = "one row per executable or library of those functions",
	.group = image_group, .text = image_text, .json = image_json,
};
