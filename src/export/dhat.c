/* SPDX-License-Identifier: MIT */
/*
 * The format of DHAT, version 2: program points, which are stacks, each with its totals, the sum of its lifetimes, its
 * own maximum, what it had at the moment when all together had most, and at the end.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "export/block_times.h"
#include "export/export.h"

/* Times are in microseconds. */
enum { NS_PER_US = 1000, FORMAT_VERSION = 2, SHORT_LIVED_US = 500, LINE_DEPTH = 2 };

/* What only the blocks one by one tell. */
struct dhat_point {
	uint64_t lifetimes_us;
	uint64_t bytes, blocks;          /* live now */
	uint64_t most_bytes, its_blocks; /* the most bytes that were live, and the blocks then */
};

struct dhat {
	struct export_tree tree;
	struct json json;
	struct dhat_point *points; /* by node */
};

static uint32_t begin_count(void *context, const struct export_block *block)
{
	struct dhat *dhat = context;
	struct dhat_point *point = &dhat->points[block->node];
	point->lifetimes_us += (uint64_t)(block->end_ns - block->birth_ns) / NS_PER_US;
	point->bytes += block->size_bytes;
	point->blocks++;
	if (point->bytes > point->most_bytes || !point->its_blocks) {
		point->most_bytes = point->bytes;
		point->its_blocks = point->blocks;
	}
	return 0;
}

static void end_count(void *context, const struct export_block *block, uint32_t number)
{
	struct dhat_point *point = &((struct dhat *)context)->points[block->node];
	(void)number;
	point->bytes -= block->size_bytes;
	point->blocks--;
}

static void point_write(struct dhat *dhat, uint32_t node)
{
	const uint64_t *values = dhat->tree.nodes[node].values;
	const struct dhat_point *point = &dhat->points[node];
	struct json *json = &dhat->json;
	json_begin_object(json, NULL);
	json_count(json, "tb", values[EXPORT_TOTAL_BYTES]);
	json_count(json, "tbk", values[EXPORT_TOTAL_COUNT]);
	json_count(json, "tl", point->lifetimes_us);
	json_count(json, "mb", point->most_bytes);
	json_count(json, "mbk", point->its_blocks);
	json_count(json, "gb", values[EXPORT_PEAK_BYTES]);
	json_count(json, "gbk", values[EXPORT_PEAK_COUNT]);
	json_count(json, "eb", values[EXPORT_OUTSTANDING_BYTES]);
	json_count(json, "ebk", values[EXPORT_OUTSTANDING_COUNT]);
	json_begin_array(json, "fs");
	for (uint32_t at = node; at; at = dhat->tree.nodes[at].parent)
		json_count(json, NULL, dhat->tree.nodes[at].frame);
	json_end_array(json);
	json_end_object(json);
}

/* As DHAT has them: "0x1234: function (file:line)". Frame 0 is the root. */
static void frame_write(struct dhat *dhat, const struct export_frame *frame)
{
	struct sink text;
	sink_to_memory(&text);
	sink_format(&text, "0x%" PRIX64 ": %s", frame->offset, frame->text);
	if (*frame->source && frame->line)
		sink_format(&text, " (%s:%" PRIu32 ")", frame->source, frame->line);
	else if (*frame->image)
		sink_format(&text, " (in %s)", frame->image);
	char *whole = sink_take(&text, NULL);
	json_text(&dhat->json, NULL, whole);
	free(whole);
}

static void head_write(struct dhat *dhat)
{
	const struct heap_window *window = dhat->tree.source->window;
	struct json *json = &dhat->json;
	json_count(json, "dhatFileVersion", FORMAT_VERSION);
	json_text(json, "mode", "heap");
	json_text(json, "verb", "Allocated");
	json_bool(json, "bklt", true);
	json_bool(json, "bkacc", false);
	json_text(json, "tu", "us");
	json_text(json, "Mtu", "s");
	json_count(json, "tuth", SHORT_LIVED_US);
	json_text(json, "cmd", export_command(&dhat->tree));
	json_count(json, "pid", export_pid(&dhat->tree));
	json_number(json, "te", window->range.to_ns / NS_PER_US);
	json_number(json, "tg", window->peak_at_ns / NS_PER_US);
}

static void tables_write(struct dhat *dhat)
{
	struct json *json = &dhat->json;
	json_begin_array(json, "pps");
	for (uint32_t node = 1; node < dhat->tree.node_count; node++)
		if (export_node_has_blocks(&dhat->tree.nodes[node]))
			point_write(dhat, node);
	json_end_array(json);
	json_begin_array(json, "ftbl");
	json_text(json, NULL, "[root]");
	for (uint32_t i = 1; i < dhat->tree.frame_count; i++)
		frame_write(dhat, &dhat->tree.frames[i]);
	json_end_array(json);
}

void export_dhat(const struct report *report, struct sink *out)
{
	struct dhat dhat = {.json = {.out = out, .line_depth = LINE_DEPTH}};
	const struct export_block_visit visit = {.begin = begin_count, .end = end_count, .context = &dhat};
	export_tree_make(&dhat.tree, report);
	dhat.points = memory_zeroed(dhat.tree.node_count, sizeof(*dhat.points));
	export_blocks_visit(&dhat.tree, &visit, out);
	json_begin_object(&dhat.json, NULL);
	head_write(&dhat);
	tables_write(&dhat);
	json_end_object(&dhat.json);
	json_end(&dhat.json);
	export_tree_fini(&dhat.tree);
	free(dhat.points);
}
