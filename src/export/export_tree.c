/* SPDX-License-Identifier: MIT */
#include "export/export_tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/report_columns.h"
#include "base/digits.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/export_past.h"
#include "query/by.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

const struct export_figure_row export_figures[EXPORT_FIGURE_COUNT] = {
#define X(id, number, name, is_bytes) {name, is_bytes},
	EXPORT_FIGURES(X)
#undef X
};

static const enum action_number numbers[EXPORT_FIGURE_COUNT] = {
#define X(id, number, name, is_bytes) ACTION_NUMBER_##number,
	EXPORT_FIGURES(X)
#undef X
};

/* The texts of a name, which many frames have. */
struct export_name {
	const char *text, *mangled, *image; /* NULL before they are known */
};

/* What makes frames the same. */
struct frame_key {
	uint64_t offset;
	uint32_t name, image, source, line;
	uint32_t is_inlined, is_split;
};

/* ---- frames ---- */

static uint32_t text_intern(struct export_tree *tree, const char *text)
{
	char *copy = text_make_harmless(action_copy(text ? text : ""));
	uint32_t id = intern_text(&tree->texts, copy);
	free(copy);
	return id;
}

static const char *text_keep(struct export_tree *tree, const char *text)
{
	const uint32_t id = text_intern(tree, text);
	return tree->texts.items[id].data;
}

/* A function without a name in the trace has image and offset as its text. */
static const char *function_of(const struct export_tree *tree, const struct heap_name *name)
{
	const char *symbol = tree->report->diff.input->layout.has_full_names ? name->symbol : name->short_symbol;
	return symbol ? symbol : name->text;
}

static const struct export_name *name_of(struct export_tree *tree, uint32_t number)
{
	struct export_name *known = &tree->names[number];
	assert(number < tree->name_count);
	if (!known->text) {
		const struct heap_name *name = heap_names_name(tree->source->names, number);
		*known = (struct export_name){text_keep(tree, function_of(tree, name)), text_keep(tree, name->mangled),
					      text_keep(tree, name->image)};
	}
	return known;
}

/* Files of sources are texts that live as long as the names. */
static uint32_t source_of(struct export_tree *tree, const char *source)
{
	bool added;
	uint32_t *known = map_add(&tree->sources, (uint64_t)(uintptr_t)source, &added);
	if (added)
		*known = text_intern(tree, source);
	return *known;
}

/* Add a frame, unless there is one with this key. */
static uint32_t frame_add(struct export_tree *tree, const struct frame_key *key, const struct export_frame *frame)
{
	const uint32_t known = tree->frame_keys.count, id = intern_bytes(&tree->frame_keys, key, sizeof(*key));
	if (id < known)
		return id;
	memory_grow(tree->frames, tree->frame_count, tree->frame_capacity);
	tree->frames[tree->frame_count] = *frame;
	return tree->frame_count++;
}

static uint32_t frame_of(struct export_tree *tree, const struct heap_frame *from)
{
	const struct trace_image *file = heap_names_image(tree->source->names, from->image);
	const struct frame_key key = {.offset = from->offset,
				      .name = from->name,
				      .image = file ? from->image : TRACE_NONE,
				      .source = source_of(tree, from->file),
				      .line = from->line,
				      .is_inlined = from->is_inlined};
	const struct export_name *name = name_of(tree, from->name);
	return frame_add(tree, &key,
			 &(struct export_frame){.text = name->text,
						.mangled = name->mangled,
						.image = name->image,
						.source = tree->texts.items[key.source].data,
						.file = file,
						.image_id = key.image,
						.line = from->line,
						.offset = from->offset,
						.is_inlined = from->is_inlined});
}

/* A frame that no code has. Splits that are called alike are one. */
static uint32_t frame_of_text(struct export_tree *tree, const char *text, bool is_split, uint32_t by)
{
	const uint32_t kept = text_intern(tree, text);
	const struct frame_key key = {.name = HEAP_NONE, .image = TRACE_NONE, .source = kept, .is_split = is_split};
	return frame_add(tree, &key,
			 &(struct export_frame){.text = tree->texts.items[kept].data,
						.mangled = "",
						.image = "",
						.source = "",
						.image_id = TRACE_NONE,
						.is_split = is_split,
						.by = by});
}

/* ---- nodes ---- */

static uint32_t child_of(struct export_tree *tree, uint32_t parent, uint32_t frame)
{
	bool added;
	uint32_t *child = map_add(&tree->children, map_pair(parent, frame), &added);
	if (!added)
		return *child;
	memory_grow(tree->nodes, tree->node_count, tree->node_capacity);
	tree->nodes[tree->node_count] = (struct export_node){.frame = frame, .parent = parent};
	return *child = tree->node_count++;
}

/* The node of a stack's innermost frame, `at` in the names. `root` is the node of its split. */
static uint32_t node_of(struct export_tree *tree, uint32_t root, uint32_t at)
{
	const struct heap_names *names = tree->source->names;
	size_t length = 0;
	uint32_t node = root;
	if (!at)
		return child_of(tree, root, frame_of_text(tree, "[no stack]", false, 0));
	for (; at; at = heap_names_frame(names, at)->parent) {
		const uint32_t *known = map_find(&tree->named, map_pair(root, at));
		if (known) {
			node = *known;
			break;
		}
		memory_grow(tree->path, length, tree->path_capacity);
		tree->path[length++] = at;
	}
	while (length-- > 0) {
		bool added;
		at = tree->path[length];
		node = child_of(tree, node, frame_of(tree, heap_names_frame(names, at)));
		*map_add(&tree->named, map_pair(root, at), &added) = node;
	}
	return node;
}

static uint32_t split_of(struct export_tree *tree, uint32_t by)
{
	const struct heap_window *window = tree->source->window;
	if (window->by == HEAP_BY_NONE)
		return 0;
	char *label = heap_by_text(window, tree->source->table, by);
	const uint32_t frame = frame_of_text(tree, label, true, by);
	free(label);
	return child_of(tree, 0, frame);
}

static bool has_blocks(const struct heap_numbers *numbers)
{
	return numbers->total_count || numbers->outstanding_count || numbers->peak_count ||
	       numbers->outstanding_bytes || numbers->peak_bytes || numbers->total_bytes;
}

uint32_t export_tree_leaf(struct export_tree *tree, const struct heap_cell *cell)
{
	struct action_input *input = tree->report->diff.input;
	const uint64_t key = map_pair(cell->by, cell->site);
	const uint32_t *known = map_find(&tree->leaves, key);
	bool added;
	if (known)
		return *known;
	const uint32_t named = action_site_node(input, &input->sources[0], cell);
	return *map_add(&tree->leaves, key, &added) = node_of(tree, split_of(tree, cell->by), named);
}

static void cell_add(struct export_tree *tree, uint32_t i, const uint64_t *stacks)
{
	uint64_t values[EXPORT_FIGURE_COUNT] = {0};
	const struct heap_window *window = tree->source->window;
	if (!has_blocks(&window->numbers[i]))
		return;
	const uint32_t node = export_tree_leaf(tree, &window->cells[i]);
	for (unsigned figure = 0; figure < EXPORT_FIGURE_COUNT; figure++)
		if (report_source_has_number(tree->source, numbers[figure]))
			values[figure] = report_number_at(&window->numbers[i], numbers[figure]);
	if (stacks)
		export_past_take(tree->report->past, stacks[window->cells[i].site], values);
	for (unsigned figure = 0; figure < EXPORT_FIGURE_COUNT; figure++)
		tree->nodes[node].values[figure] += values[figure];
}

/* Threads of ours have made the cells, in any order. */
static int cell_compare(const void *a, const void *b, void *context)
{
	const struct heap_cell *cells = context;
	const struct heap_cell *one = &cells[*(const uint32_t *)a], *other = &cells[*(const uint32_t *)b];
	const uint64_t left = map_pair(one->by, one->site), right = map_pair(other->by, other->site);
	return left < right ? -1 : left > right;
}

struct heap_range export_range(const struct export_tree *tree)
{
	struct heap_range range = tree->source->window->range;
	const int64_t before = tree->past_ns;
	if (before > range.from_ns)
		range.from_ns = before < range.to_ns ? before : range.to_ns;
	return range;
}

void export_tree_make(struct export_tree *tree, const struct report *report)
{
	*tree = (struct export_tree){.report = report, .source = report_source(report)};
	const struct heap_window *window = tree->source->window;
	uint64_t *stacks = report->past ? export_past_stacks(tree->source) : NULL;
	if (report->past)
		export_past_begin(report->past);
	uint32_t *order = memory_resize(NULL, (size_t)window->cell_count + 1, sizeof(*order));
	tree->name_count = heap_names_count(tree->source->names);
	tree->names = memory_zeroed((size_t)tree->name_count + 1, sizeof(*tree->names));
	memory_grow(tree->nodes, tree->node_count, tree->node_capacity);
	tree->nodes[tree->node_count++] = (struct export_node){.frame = frame_of_text(tree, "", false, 0)};
	for (uint32_t i = 0; i < window->cell_count; i++)
		order[i] = i;
	qsort_r(order, window->cell_count, sizeof(*order), cell_compare, window->cells);
	for (uint32_t i = 0; i < window->cell_count; i++)
		cell_add(tree, order[i], stacks);
	free(order);
	free(stacks);
	if (report->past) {
		tree->past_ns = report->past->until_ns;
		report->past->until_ns = window->range.to_ns;
	}
}

void export_tree_fini(struct export_tree *tree)
{
	free(tree->frames);
	free(tree->nodes);
	free(tree->names);
	free(tree->path);
	map_fini(&tree->sources);
	map_fini(&tree->children);
	map_fini(&tree->named);
	map_fini(&tree->leaves);
	intern_fini(&tree->frame_keys);
	intern_fini(&tree->texts);
}

bool export_node_has_blocks(const struct export_node *node)
{
	return node->values[EXPORT_TOTAL_COUNT] || node->values[EXPORT_OUTSTANDING_COUNT] ||
	       node->values[EXPORT_PEAK_COUNT];
}

static uint32_t place_end(const struct export_tree *tree, uint32_t node)
{
	for (uint32_t parent; export_tree_frame(tree, node)->is_inlined && (parent = tree->nodes[node].parent) &&
			      !export_tree_frame(tree, parent)->is_split;)
		node = parent;
	return node;
}

static uint32_t place_intern(struct export_places *places, const struct export_tree *tree, uint32_t node, uint32_t last)
{
	struct sink key;
	size_t size;
	sink_to_memory(&key);
	for (uint32_t at = node;; at = tree->nodes[at].parent) {
		sink_bytes(&key, (const char *)&tree->nodes[at].frame, sizeof(tree->nodes[at].frame));
		if (at == last)
			break;
	}
	char *bytes = sink_take(&key, &size);
	const uint32_t number = 1 + intern_bytes(&places->keys, bytes, size);
	free(bytes);
	return number;
}

struct export_place export_place_of(struct export_places *places, const struct export_tree *tree, uint32_t node)
{
	if (!places->known)
		places->known = memory_zeroed(tree->node_count, sizeof(*places->known));
	struct export_place place = {.number = places->known[node], .last = place_end(tree, node)};
	if (!place.number) {
		const uint32_t known = places->keys.count;
		place.number = places->known[node] = place_intern(places, tree, node, place.last);
		place.is_new = place.number > known;
	}
	return place;
}

void export_places_fini(struct export_places *places)
{
	intern_fini(&places->keys);
	free(places->known);
}

const char *export_command(const struct export_tree *tree)
{
	const struct trace_dictionary *dictionary = trace_dictionary(tree->source->trace);
	const char *command = dictionary->process_count ? dictionary->processes[0].command : NULL;
	return command ? text_shown(command) : "";
}

uint32_t export_pid(const struct export_tree *tree)
{
	const struct trace_dictionary *dictionary = trace_dictionary(tree->source->trace);
	return dictionary->process_count ? dictionary->processes[0].pid : 0;
}

const struct trace_mapping **export_mappings(const struct export_tree *tree)
{
	const struct trace_dictionary *dictionary = trace_dictionary(tree->source->trace);
	const struct trace_mapping **mappings = memory_zeroed((size_t)dictionary->image_count + 1, sizeof(*mappings));
	for (uint32_t i = dictionary->mapping_count; i-- > 0;)
		if (dictionary->mappings[i].image < dictionary->image_count)
			mappings[dictionary->mappings[i].image] = &dictionary->mappings[i];
	return mappings;
}

char *export_build_id(const struct trace_image *image)
{
	char *digits = memory_resize(NULL, 2 * (size_t)image->build_id_size + 1, 1);
	digits_of_bytes(digits, image->build_id, image->build_id_size);
	return digits;
}
