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

#include "base/digits.h"
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

/* Names are written whole once, and as a number from 1 on afterwards. These are the numbers of a frame's names, and its
   function, each level of which has a name of its own. */
struct callgrind_names {
	uint32_t object, file, function;
};

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
	struct intern objects, files, functions;
	struct map levels;             /* (function, level) -> number of the name */
	struct callgrind_names *names; /* by frame */
	bool *has_object, *has_file;   /* by number: it was written whole */
	uint32_t *depths;              /* by function: how often it is on the stack that is visited */
};

/* ---- the tree ---- */

static uint32_t name_of(struct intern *names, const char *text)
{
	return 1 + intern_text(names, *text ? text : "???");
}

static void names_find(struct callgrind *grind)
{
	const struct export_tree *tree = &grind->tree;
	grind->names = memory_zeroed(tree->frame_count, sizeof(*grind->names));
	for (uint32_t i = 0; i < tree->frame_count; i++) {
		const struct export_frame *frame = &tree->frames[i];
		const struct callgrind_function key = {frame->text, frame->source};
		grind->names[i] = (struct callgrind_names){name_of(&grind->objects, frame->image),
							   name_of(&grind->files, frame->source),
							   intern_bytes(&grind->functions, &key, sizeof(key))};
	}
	grind->has_object = memory_zeroed((size_t)grind->objects.count + 1, sizeof(*grind->has_object));
	grind->has_file = memory_zeroed((size_t)grind->files.count + 1, sizeof(*grind->has_file));
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
	return &grind->depths[grind->names[grind->tree.nodes[node].frame].function];
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

static void put_number(struct callgrind *grind, uint64_t number)
{
	char digits[DIGITS_BYTES], *end = digits + sizeof(digits), *begin = digits_before(end, number);
	sink_bytes(grind->out, begin, (size_t)(end - begin));
}

static void put_key(struct callgrind *grind, const char *key, uint32_t number)
{
	sink_text(grind->out, key);
	sink_text(grind->out, "=(");
	put_number(grind, number);
	sink_put(grind->out, ')');
}

/* Numbers are given in the order of frames, and not in that of lines. */
static void name_write(struct callgrind *grind, const char *key, const struct intern *names, bool *written,
		       uint32_t number)
{
	put_key(grind, key, number);
	if (!written[number]) {
		sink_put(grind->out, ' ');
		sink_text(grind->out, names->items[number - 1].data);
		written[number] = true;
	}
	sink_put(grind->out, '\n');
}

static void function_write(struct callgrind *grind, const char *key, uint32_t node)
{
	const struct export_frame *frame = export_tree_frame(&grind->tree, node);
	const uint32_t function = grind->names[grind->tree.nodes[node].frame].function;
	bool added;
	uint32_t *number = map_add(&grind->levels, map_pair(function, grind->nodes[node].level), &added);
	if (added)
		*number = grind->levels.count;
	put_key(grind, key, *number);
	if (added) {
		sink_put(grind->out, ' ');
		sink_text(grind->out, frame->text);
		if (grind->nodes[node].level > 1) {
			sink_put(grind->out, '\'');
			put_number(grind, grind->nodes[node].level);
		}
	}
	sink_put(grind->out, '\n');
}

/* keys: of the object, the file and the function. */
static void place_write(struct callgrind *grind, const char *const *keys, uint32_t node)
{
	const struct callgrind_names *names = &grind->names[grind->tree.nodes[node].frame];
	name_write(grind, keys[0], &grind->objects, grind->has_object, names->object);
	name_write(grind, keys[1], &grind->files, grind->has_file, names->file);
	function_write(grind, keys[2], node);
}

static void cost_write(struct callgrind *grind, uint32_t line, const uint64_t *values)
{
	put_number(grind, line);
	for (unsigned i = 0; i < SHOWN; i++) {
		sink_put(grind->out, ' ');
		put_number(grind, values[shown[i].figure]);
	}
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
		sink_text(grind->out, "calls=");
		put_number(grind, grind->nodes[at].sums[EXPORT_TOTAL_COUNT]);
		sink_put(grind->out, ' ');
		put_number(grind, export_tree_frame(tree, at)->line);
		sink_put(grind->out, '\n');
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
	names_find(&grind);
	nodes_make(&grind);
	levels_find(&grind);
	head_write(&grind);
	for (uint32_t node = 1; node < grind.tree.node_count; node++)
		node_write(&grind, node);
	export_tree_fini(&grind.tree);
	intern_fini(&grind.objects);
	intern_fini(&grind.files);
	intern_fini(&grind.functions);
	map_fini(&grind.levels);
	free(grind.has_object);
	free(grind.has_file);
	free(grind.names);
	free(grind.nodes);
	free(grind.depths);
}
