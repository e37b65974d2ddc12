/* SPDX-License-Identifier: MIT */
#include "server/answer/function_json.h"

#include "action/report/stack_view.h"
#include "cells/cell_names.h"

void function_json_name(struct json *json, const char *key, const struct heap_names *names, uint32_t name)
{
	char text[CELL_NAME_ROOM];
	json_begin_array(json, key);
	cell_name_image(names, name, text);
	json_text(json, NULL, text);
	cell_name_full(names, name, text);
	json_text(json, NULL, text);
	json_end_array(json);
}

void function_json(struct json *json, const char *key, struct action_input *input, uint32_t node)
{
	const struct heap_names *names = action_names(input);
	if (node && node != HEAP_NONE)
		function_json_name(json, key, names, heap_names_frame(names, stack_view_user_node(input, node))->name);
}

void function_json_frames(struct json *json, const char *key, const struct heap_names *names, uint32_t node)
{
	json_begin_array(json, key);
	for (unsigned i = 0; node && i < FRAMES_MAX; i++) {
		const struct heap_frame *frame = heap_names_frame(names, node);
		json_begin_array(json, NULL);
		cell_name_write(names, frame->name, json);
		json_text(json, NULL, frame->file ? frame->file : "");
		json_count(json, NULL, frame->line);
		json_count(json, NULL, cell_name_marks(names, frame->name));
		json_end_array(json);
		node = frame->parent;
	}
	json_end_array(json);
}
