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
