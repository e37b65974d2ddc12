/* SPDX-License-Identifier: MIT */
/*
 * The format of heaptrack, version 3: texts, instruction pointers and nodes of stacks are numbered lines, from 1 on,
 * that come before their first use; then the begins and ends of blocks, by the number of their size and stack. Numbers
 * are hexadecimal.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/block_times.h"
#include "export/export.h"
#include "trace/code_rows.h"

/* Of heaptrack whose files look so, and of the format. */
#define HEAD "v 10400 3\n"
enum { NS_PER_MS = 1000000 };

struct heaptrack {
	struct export_tree tree;
	struct sink *out;
	struct intern texts;
	struct export_places places;
	uint32_t *traces; /* by node: its number as a stack's innermost place; 0: none yet */
	uint32_t trace_count;
	struct map kinds; /* (number of the size, stack) -> place in the list of both */
	struct map sizes; /* size -> its number */
	uint32_t kind_count;
	int64_t time_ms;
	uint32_t *path; /* room for the longest stack */
	size_t path_capacity;
};

/* ---- lines ---- */

static void put_number(struct sink *out, uint64_t number)
{
	char digits[DIGITS_BYTES];
	char *begin = digits_hex_before(digits + sizeof(digits), number) + 2;
	sink_put(out, ' ');
	sink_bytes(out, begin, (size_t)(digits + sizeof(digits) - begin));
}

static void put_line(struct sink *out, char kind, uint64_t number)
{
	sink_put(out, kind);
	put_number(out, number);
	sink_put(out, '\n');
}

/* ---- stacks ---- */

/* Return the number of a text, which is written when it is new; 0: an empty one. */
static uint32_t text_of(struct heaptrack *track, const char *text)
{
	if (!*text)
		return 0;
	const uint32_t known = track->texts.count, id = intern_text(&track->texts, text);
	if (id == known) {
		sink_put(track->out, 's');
		put_number(track->out, track->texts.items[id].size);
		sink_put(track->out, ' ');
		sink_text(track->out, text);
		sink_put(track->out, '\n');
	}
	return id + 1;
}

/* The innermost of the functions at a place comes first. */
static void place_write(struct heaptrack *track, uint32_t first, uint32_t last)
{
	const struct export_tree *tree = &track->tree;
	const struct export_frame *place = export_tree_frame(tree, last);
	const uint32_t module = text_of(track, place->file ? text_shown(place->file->path) : place->image);
	for (uint32_t at = first;; at = tree->nodes[at].parent) {
		text_of(track, export_tree_frame(tree, at)->text);
		text_of(track, export_tree_frame(tree, at)->source);
		if (at == last)
			break;
	}
	sink_put(track->out, 'i');
	put_number(track->out, place->offset);
	put_number(track->out, module);
	for (uint32_t at = first;; at = tree->nodes[at].parent) {
		const struct export_frame *frame = export_tree_frame(tree, at);
		put_number(track->out, text_of(track, frame->text));
		put_number(track->out, text_of(track, frame->source));
		put_number(track->out, frame->line);
		if (at == last)
			break;
	}
	sink_put(track->out, '\n');
}

/* Return the number of the stack that ends in the node. Stacks outside of it are written before it. */
static uint32_t trace_of(struct heaptrack *track, uint32_t node)
{
	const struct export_tree *tree = &track->tree;
	size_t depth = 0;
	uint32_t trace = 0;
	while (node && !track->traces[node]) {
		memory_grow(track->path, depth, track->path_capacity);
		track->path[depth++] = node;
		const struct export_place place = export_place_of(&track->places, tree, node);
		if (place.is_new)
			place_write(track, node, place.last);
		node = tree->nodes[place.last].parent;
	}
	trace = node ? track->traces[node] : 0;
	while (depth-- > 0) {
		node = track->path[depth];
		const uint32_t number = track->places.known[node];
		sink_put(track->out, 't');
		put_number(track->out, number);
		put_number(track->out, trace);
		sink_put(track->out, '\n');
		trace = track->traces[node] = ++track->trace_count;
	}
	return trace;
}

/* ---- events ---- */

static void time_write(struct heaptrack *track, int64_t time_ns)
{
	const int64_t time_ms = time_ns / NS_PER_MS;
	if (time_ms <= track->time_ms)
		return;
	track->time_ms = time_ms;
	put_line(track->out, 'c', (uint64_t)time_ms);
}

/* Return the number of the size and stack, from 0 on. */
static uint32_t kind_of(struct heaptrack *track, uint64_t size_bytes, uint32_t trace)
{
	bool added;
	uint32_t *size = map_add(&track->sizes, size_bytes, &added);
	if (added)
		*size = track->sizes.count;
	uint32_t *kind = map_add(&track->kinds, map_pair(*size, trace), &added);
	if (added) {
		*kind = track->kind_count++;
		sink_put(track->out, 'a');
		put_number(track->out, size_bytes);
		put_number(track->out, trace);
		sink_put(track->out, '\n');
	}
	return *kind;
}

static uint32_t begin_write(void *context, const struct export_block *block)
{
	struct heaptrack *track = context;
	const uint32_t kind = kind_of(track, block->size_bytes, trace_of(track, block->node));
	time_write(track, block->birth_ns);
	put_line(track->out, '+', kind);
	return kind;
}

static void end_write(void *context, const struct export_block *block, uint32_t kind)
{
	struct heaptrack *track = context;
	time_write(track, block->end_ns);
	put_line(track->out, '-', kind);
}

void export_heaptrack(const struct report *report, struct sink *out)
{
	struct heaptrack track = {.out = out};
	export_tree_make(&track.tree, report);
	track.traces = memory_zeroed(track.tree.node_count, sizeof(*track.traces));
	sink_text(out, HEAD "X ");
	sink_text(out, export_command(&track.tree));
	sink_text(out, "\nI 1000 0\n");
	const struct export_block_visit visit = {.begin = begin_write, .end = end_write, .context = &track};
	export_blocks_visit(&track.tree, &visit, out);
	put_line(out, 'c', (uint64_t)(track.tree.source->window->range.to_ns / NS_PER_MS));
	export_tree_fini(&track.tree);
	export_places_fini(&track.places);
	intern_fini(&track.texts);
	map_fini(&track.kinds);
	map_fini(&track.sizes);
	free(track.traces);
	free(track.path);
}
