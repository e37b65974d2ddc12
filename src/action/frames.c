/* SPDX-License-Identifier: MIT */
/*
 * -frames: one row per innermost frame that is not an allocation function itself, so that each allocation is in the row of
 * the function that asked for it, and in no other.
 */
#include "action/action.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* A group is a frame's name, from 1; 0: no stack. */
static uint32_t frames_group(struct action_source *source, const struct heap_site *site)
{
	uint32_t node = heap_names_site(source->names, site);
	return node ? heap_names_frame(source->names, heap_names_caller(source->names, node))->name + 1 : 0;
}

static char *frames_text(struct action_source *source, uint32_t group)
{
	char *text = strdup(group ? heap_names_name(source->names, group - 1)->text : "[no stack]");
	if (!text)
		memory_exhausted(0);
	return text;
}

static void frames_json(struct action_source *source, uint32_t group, struct json *json)
{
	json_begin_object(json, action_frames.label);
	if (!group) {
		json_text(json, "symbol", "[no stack]");
	} else {
		const struct heap_name *name = heap_names_name(source->names, group - 1);
		if (name->image)
			json_text(json, "image", name->image);
		if (name->symbol || !name->image)
			json_text(json, "symbol", name->symbol ? name->symbol : name->text);
		if (name->image_id != TRACE_NONE) {
			const struct trace_image *image = &trace_dictionary(source->trace)->images[name->image_id];
			if (image->build_id_size)
				json_bytes(json, "build_id", image->build_id, image->build_id_size);
			json_address(json, "offset", name->offset);
		}
	}
	json_end_object(json);
}

const struct action action_frames = {
	.name = "frames", .title = "Frames", .label = "frame", .help = "one row per function that called an allocation function",
	.group = frames_group, .text = frames_text, .json = frames_json,
};
