/* SPDX-License-Identifier: MIT */
#include "server/answer/function_json.h"

#include "action/report/stack_view.h"
#include "cells/cell_names.h"
#include "trace/code_rows.h"
#include "trace/trace.h"

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

static void json_frame(struct json *json, const struct heap_names *names, uint32_t name, const char *file,
		       uint32_t line)
{
	json_begin_array(json, NULL);
	cell_name_write(names, name, json);
	json_text(json, NULL, file ? file : "");
	json_count(json, NULL, line);
	json_count(json, NULL, cell_name_marks(names, name));
	json_end_array(json);
}

void function_json_frames(struct json *json, const char *key, const struct heap_names *names, uint32_t node)
{
	json_begin_array(json, key);
	for (unsigned i = 0; node && i < FRAMES_MAX; i++) {
		const struct heap_frame *frame = heap_names_frame(names, node);
		json_frame(json, names, frame->name, frame->file, frame->line);
		node = frame->parent;
	}
	json_end_array(json);
}

void function_json_site(struct json *json, const char *key, const struct action_source *source, uint32_t site)
{
	struct heap_names *names = source->names;
	const struct trace_dictionary *dictionary = source->table->dictionary;
	if (site >= source->table->site_count)
		return;
	const struct heap_site *of = &source->table->sites[site];
	const uint32_t node = heap_names_site(names, of);
	unsigned frame_count = 0;
	/* A question that was cancelled has no nodes. */
	if (!node || !of->stack || of->entry >= dictionary->entry_count) {
		function_json_frames(json, key, names, node);
		return;
	}
	json_begin_array(json, key);
	json_frame(json, names, heap_names_frame(names, node)->name, NULL, 0);
	for (uint32_t at = of->stack; at && frame_count < FRAMES_MAX - 1; at = dictionary->nodes[at].parent) {
		uint32_t count;
		const struct heap_address_function *functions =
			heap_names_address(names, dictionary->nodes[at].frame, &count);
		for (uint32_t i = 0; i < count && frame_count < FRAMES_MAX - 1; i++, frame_count++)
			json_frame(json, names, functions[i].name, functions[i].file, functions[i].line);
	}
	json_end_array(json);
}
