/* SPDX-License-Identifier: MIT */
/* -stacks: one row per stack, frame by frame the same by name. */
#include "action/action.h"

#include <inttypes.h>

#include "base/memory.h"
#include "base/text.h"

static uint32_t stacks_group(struct action_source *source, const struct heap_site *site)
{
	return heap_names_site(source->names, site);
}

static char *stacks_text(struct action_source *source, uint32_t group)
{
	return heap_names_text(source->names, group);
}

static void stacks_json_frame(struct action_source *source, uint32_t node, struct json *json)
{
	const struct heap_frame *frame = heap_names_frame(source->names, node);
	const struct heap_name *name = heap_names_name(source->names, frame->name);
	json_begin_object(json, NULL);
	if (name->image)
		json_text(json, "image", name->image);
	if (name->symbol || !name->image)
		json_text(json, "symbol", name->symbol ? name->symbol : name->text);
	if (frame->file)
		json_text(json, "file", frame->file);
	if (frame->line)
		json_count(json, "line", frame->line);
	if (frame->is_inlined)
		json_bool(json, "inlined", true);
	if (frame->image != TRACE_NONE) {
		const struct trace_image *image = &trace_dictionary(source->trace)->images[frame->image];
		if (image->build_id_size)
			json_bytes(json, "build_id", image->build_id, image->build_id_size);
		if (frame->offset)
			json_address(json, "offset", frame->offset);
	}
	json_end_object(json);
}

static void stacks_json(struct action_source *source, uint32_t group, struct json *json)
{
	json_begin_array(json, action_stacks.label);
	for (uint32_t at = group; at; at = heap_names_frame(source->names, at)->parent)
		stacks_json_frame(source, at, json);
	json_end_array(json);
}

static void stacks_line(struct action_source *source, uint32_t node, FILE *out)
{
	const struct heap_frame *frame = heap_names_frame(source->names, node);
	fprintf(out, "        %s", heap_names_name(source->names, frame->name)->text);
	if (frame->is_inlined)
		fputs(" [inlined]", out);
	if (frame->file)
		fprintf(out, "  %s", text_file_name(frame->file));
	if (frame->line)
		fprintf(out, ":%" PRIu32, frame->line);
	putc('\n', out);
}

static char *stacks_lines(struct action_source *source, uint32_t group)
{
	char *lines = NULL;
	size_t size;
	FILE *out = open_memstream(&lines, &size);
	if (!out)
		memory_exhausted(0);
	if (!group)
		fputs("        [no stack]\n", out);
	for (uint32_t at = group; at; at = heap_names_frame(source->names, at)->parent)
		stacks_line(source, at, out);
	putc('\n', out);
	fclose(out);
	return lines;
}

const struct action action_stacks = {
	.name = "stacks", .title = "Stacks", .label = "stack", .help = "one row per distinct stack (the default)",
	.group = stacks_group, .text = stacks_text, .json = stacks_json, .lines = stacks_lines,
};
