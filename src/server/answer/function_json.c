/* SPDX-License-Identifier: MIT */
#include "server/answer/function_json.h"

#include <inttypes.h>

#include "action/report/stack_view.h"

const char *function_full(const struct heap_name *name, char place[FUNCTION_TEXT_BYTES])
{
	if (!heap_name_is_offset(name))
		return name->symbol ? name->symbol : name->text;
	snprintf(place, FUNCTION_TEXT_BYTES, "+0x%" PRIx64, name->offset);
	return place;
}

void function_json_name(struct json *json, const char *key, const struct heap_name *name)
{
	char place[FUNCTION_TEXT_BYTES];
	json_begin_array(json, key);
	json_text(json, NULL, name->image ? name->image : "");
	json_text(json, NULL, function_full(name, place));
	json_end_array(json);
}

void function_json(struct json *json, const char *key, struct action_input *input, uint32_t node)
{
	struct heap_names *names = action_names(input);
	if (!node || node == HEAP_NONE)
		return;
	uint32_t user = stack_view_user_node(input, node);
	function_json_name(json, key, heap_names_name(names, heap_names_frame(names, user)->name));
}
