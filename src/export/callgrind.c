/* SPDX-License-Identifier: MIT */
/*
 * The format of callgrind: what each line of a function costs by itself, and what its calls cost with all below them.
 * A node of the tree is a line of a function; readers add up what they find of one function.
 *
 * Readers add the costs of a function and of its calls. A function below itself would be counted twice, so each level
 * of a recursion is a function of its own: f, f'2, f'3, as callgrind has it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "export/export.h"
#include "export/export_tree.h"

/* Readers show the first one first. */
static const struct callgrind_event {
	enum export_figure figure;
	const char *name;
} shown[] = {
	{EXPORT_OUTSTANDING_BYTES, "OutstandingBytes"},
	{EXPORT_OUTSTANDING_COUNT, "OutstandingBlocks"},
	{EXPORT_PEAK_BYTES, "PeakBytes"},
	{EXPORT_PEAK_COUNT, "PeakBlocks"},
	{EXPORT_TOTAL_BYTES, "TotalBytes"},
	{EXPORT_TOTAL_COUNT, "TotalBlocks"},
};
enum { SHOWN = sizeof(shown) / sizeof(*shown) };

enum { COMMAND_BYTES = 1000, UTF8_MASK = 0xc0, UTF8_INSIDE = 0x80 };

/* Names are written whole once, and as a number afterwards. */
enum name_kind { NAME_OBJECT, NAME_FILE, NAME_FUNCTION, NAME_KINDS };

/* What makes a function the same, for readers that do not distinguish images either. Equal texts of a tree are one. */
struct callgrind_function {
	const char *text, *source;
};

struct callgrind_node {
	uint32_t first, next; /* its first child, and its parent's next one; 0: none */
	uint32_t level;       /* how often its function is on the stack up to it */
	uint64_t sums[EXPORT_FIGURE_COUNT];
};

struct callgrind {
	struct export_tree tree;
	struct sink *out;
	struct callgrind_node *nodes;
	struct intern names[NAME_KINDS], functions;
	uint32_t *function_of; /* by frame */
	uint32_t *depths;      /* by function: how often it is on the stack that is visited */
};

/* ---- the tree ---- */

static void functions_find(struct callgrind *grind)
{
	const struct export_tree *tree = &grind->tree;
	grind->function_of = memory_zeroed(tree->frame_count, sizeof(*grind->function_of));
	for (uint32_t i = 0; i < tree->frame_count; i++) {
		const struct export_frame *frame = &tree->frames[i];
		const struct callgrind_function key = {frame->text, frame->source};
		grind->function_of[i] = intern_bytes(&grind->functions, &key, sizeof(key));
	}
	grind->depths = memory_zeroed(grind->functions.count, sizeof(*grind->depths));
}

/* Callers come before what they call: sums go up from the last node to the first one. */
static void nodes_make(struct callgrind *grind)
{
	const struct export_tree *tree = &grind->tree;
	grind->nodes = memory_zeroed(tree->node_count, sizeof(*grind->nodes));
	for (uint32_t i = tree->node_count; i-- > 0;) {
		struct callgrind_node *node = &grind->nodes[i], *parent = &grind->nodes[tree->nodes[i].parent];
		for (unsigned k = 0; k < EXPORT_FIGURE_COUNT; k++)
			node->sums[k] += tree->nodes[i].values[k];
		if (!i)
			return;
		for (unsigned k = 0; k < EXPORT_FIGURE_COUNT; k++)
			parent->sums[k] += node->sums[k];
		node->next = parent->first;
		parent->first = i;
	}
}

static uint32_t *depth_of(struct callgrind *grind, uint32_t node)
{
	return &grind->depths[grind->function_of[grind->tree.nodes[node].frame]];
}

/* Go through the tree from outside in, and back. */
static void levels_find(struct callgrind *grind)
{
	uint32_t at = 0;
	for (;;) {
		if (grind->nodes[at].first) {
			at = grind->nodes[at].first;
			grind->nodes[at].level = ++*depth_of(grind, at);
			continue;
		}
		while (at && !grind->nodes[at].next) {
			--*depth_of(grind, at);
			at = grind->tree.nodes[at].parent;
		}
		if (!at)
			return;
		--*depth_of(grind, at);
		at = grind->nodes[at].next;
		grind->nodes[at].level = ++*depth_of(grind, at);
	}
}

/* ---- lines ---- */

static void name_write(struct callgrind *grind, const char *key, enum name_kind kind, const char *text)
{
	struct intern *names = &grind->names[kind];
	const uint32_t known = names->count, id = intern_text(names, *text ? text : "???");
	sink_format(grind->out, "%s=(%" PRIu32 ")", key, id + 1);
	if (id == known) {
		sink_put(grind->out, ' ');
		sink_text(grind->out, names->items[id].data);
	}
	sink_put(grind->out, '\n');
}

/* keys: of the object, the file and the function. */
static void place_write(struct callgrind *grind, const char *const *keys, uint32_t node)
{
	const struct export_frame *frame = export_tree_frame(&grind->tree, node);
	struct sink text;
	sink_to_memory(&text);
	sink_text(&text, frame->text);
	if (grind->nodes[node].level > 1)
		sink_format(&text, "'%" PRIu32, grind->nodes[node].level);
	char *function = sink_take(&text, NULL);
	name_write(grind, keys[NAME_OBJECT], NAME_OBJECT, frame->image);
	name_write(grind, keys[NAME_FILE], NAME_FILE, frame->source);
	name_write(grind, keys[NAME_FUNCTION], NAME_FUNCTION, function);
	free(function);
}

static void cost_write(struct callgrind *grind, uint32_t line, const uint64_t *values)
{
	sink_format(grind->out, "%" PRIu32, line);
	for (unsigned i = 0; i < SHOWN; i++)
		sink_format(grind->out, " %" PRIu64, values[shown[i].figure]);
	sink_put(grind->out, '\n');
}

static void node_write(struct callgrind *grind, uint32_t node)
{
	static const char *const own[] = {"ob", "fl", "fn"}, *const called[] = {"cob", "cfi", "cfn"};
	const struct export_tree *tree = &grind->tree;
	const uint32_t line = export_tree_frame(tree, node)->line;
	place_write(grind, own, node);
	cost_write(grind, line, tree->nodes[node].values);
	for (uint32_t at = grind->nodes[node].first; at; at = grind->nodes[at].next) {
		place_write(grind, called, at);
		sink_format(grind->out, "calls=%" PRIu64 " %" PRIu32 "\n", grind->nodes[at].sums[EXPORT_TOTAL_COUNT],
			    export_tree_frame(tree, at)->line);
		cost_write(grind, line, grind->nodes[at].sums);
	}
	sink_put(grind->out, '\n');
}

/* Readers want the command before the events, and look for those in the first 2,047 bytes. */
static void head_write(struct callgrind *grind)
{
	const char *command = export_command(&grind->tree);
	size_t length = strlen(command);
	while (length > COMMAND_BYTES || (length && (command[length] & UTF8_MASK) == UTF8_INSIDE))
		length--;
	sink_text(grind->out, "# callgrind format\nversion: 1\ncreator: xheap\ncmd: ");
	sink_bytes(grind->out, command, length);
	sink_text(grind->out, "\npositions: line\nevents:");
	for (unsigned i = 0; i < SHOWN; i++)
		sink_format(grind->out, " %s", shown[i].name);
	sink_text(grind->out, "\nsummary:");
	for (unsigned i = 0; i < SHOWN; i++)
		sink_format(grind->out, " %" PRIu64, grind->nodes[0].sums[shown[i].figure]);
	sink_text(grind->out, "\n\n");
}

void export_callgrind(const struct report *report, struct sink *out)
{
	struct callgrind grind = {.out = out};
	export_tree_make(&grind.tree, report);
	functions_find(&grind);
	nodes_make(&grind);
	levels_find(&grind);
	head_write(&grind);
	for (uint32_t node = 1; node < grind.tree.node_count; node++)
		node_write(&grind, node);
	export_tree_fini(&grind.tree);
	for (unsigned i = 0; i < NAME_KINDS; i++)
		intern_fini(&grind.names[i]);
	intern_fini(&grind.functions);
	free(grind.nodes);
	free(grind.function_of);
	free(grind.depths);
}
