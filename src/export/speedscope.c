/* SPDX-License-Identifier: MIT */
/* The format of speedscope: a list of frames, and for each figure a profile whose samples are stacks with a weight. */
#include <stdlib.h>

#include "base/memory.h"
#include "export/export.h"
#include "export/export_tree.h"

/* The profile that is shown first comes first. */
static const struct speedscope_profile {
	enum export_figure figure;
	const char *name;
} shown[] = {
	{EXPORT_OUTSTANDING_BYTES, "outstanding bytes"},
	{EXPORT_PEAK_BYTES, "bytes at the peak"},
	{EXPORT_TOTAL_BYTES, "total bytes"},
	{EXPORT_OUTSTANDING_COUNT, "outstanding blocks"},
	{EXPORT_PEAK_COUNT, "blocks at the peak"},
	{EXPORT_TOTAL_COUNT, "total blocks"},
};
enum { SHOWN = sizeof(shown) / sizeof(*shown) };

struct speedscope {
	struct export_tree tree;
	struct json json;
	uint32_t *path; /* room for the longest stack */
	size_t path_capacity;
};

static void frames_write(struct speedscope *scope)
{
	struct json *json = &scope->json;
	json_begin_object(json, "shared");
	json_begin_array(json, "frames");
	for (uint32_t i = 1; i < scope->tree.frame_count; i++) {
		const struct export_frame *frame = &scope->tree.frames[i];
		json_begin_object(json, NULL);
		json_text(json, "name", frame->text);
		json_known_text(json, "file", *frame->source ? frame->source : frame->image);
		if (frame->line)
			json_count(json, "line", frame->line);
		json_end_object(json);
	}
	json_end_array(json);
	json_end_object(json);
}

static void stack_write(struct speedscope *scope, uint32_t node)
{
	size_t depth = 0;
	for (; node; node = scope->tree.nodes[node].parent) {
		memory_grow(scope->path, depth, scope->path_capacity);
		scope->path[depth++] = scope->tree.nodes[node].frame - 1;
	}
	json_begin_array(&scope->json, NULL);
	while (depth-- > 0)
		json_count(&scope->json, NULL, scope->path[depth]);
	json_end_array(&scope->json);
}

static void profile_write(struct speedscope *scope, const struct speedscope_profile *row)
{
	const struct export_tree *tree = &scope->tree;
	struct json *json = &scope->json;
	uint64_t sum = 0;
	json_begin_object(json, NULL);
	json_text(json, "type", "sampled");
	json_text(json, "name", row->name);
	json_text(json, "unit", export_figures[row->figure].is_bytes ? "bytes" : "none");
	json_begin_array(json, "samples");
	for (uint32_t node = 0; node < tree->node_count; node++)
		if (tree->nodes[node].values[row->figure])
			stack_write(scope, node);
	json_end_array(json);
	json_begin_array(json, "weights");
	for (uint32_t node = 0; node < tree->node_count; node++)
		if (tree->nodes[node].values[row->figure]) {
			json_count(json, NULL, tree->nodes[node].values[row->figure]);
			sum += tree->nodes[node].values[row->figure];
		}
	json_end_array(json);
	json_count(json, "startValue", 0);
	json_count(json, "endValue", sum);
	json_end_object(json);
}

void export_speedscope(const struct report *report, struct sink *out)
{
	struct speedscope scope = {.json = {.out = out, .line_depth = 3}};
	struct json *json = &scope.json;
	export_tree_make(&scope.tree, report);
	json_begin_object(json, NULL);
	json_text(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_text(json, "exporter", "xheap");
	json_text(json, "name", export_command(&scope.tree));
	json_count(json, "activeProfileIndex", 0);
	frames_write(&scope);
	json_begin_array(json, "profiles");
	for (unsigned i = 0; i < SHOWN; i++)
		profile_write(&scope, &shown[i]);
	json_end_array(json);
	json_end_object(json);
	json_end(json);
	export_tree_fini(&scope.tree);
	free(scope.path);
}
