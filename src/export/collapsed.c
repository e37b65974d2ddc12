/* SPDX-License-Identifier: MIT */
#include "export/collapsed.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/report_columns.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/export.h"
#include "query/by.h"

/* A frame of a collapsed stack. Frames of one text and one parent are one: names that differ for xheap only may read
   alike, and readers add such lines up. */
struct collapsed_frame {
	uint32_t text, parent;
	uint32_t first, next; /* its first child, and its parent's next one; HEAP_NONE: none */
	long double values[DIFF_SIDES];
};

struct collapsed {
	const struct report *report;
	struct action_input *input;
	enum action_number number;
	struct intern texts;
	uint32_t *text_of_name; /* by name: 1 + its text, or 0 */
	uint32_t name_count;
	struct map children; /* (parent, text) -> frame */
	struct collapsed_frame *frames;
	uint32_t frame_count;
	size_t frame_capacity;
	struct map frame_of_node; /* (split, node of the names) -> 1 + frame */
	uint32_t *path;           /* room for the longest stack */
	size_t path_capacity;
};

/* ---- texts ---- */

/* A number at the end, behind a space, reads as a number of the line. */
static void hide_number(char *text)
{
	char *space = strrchr(text, ' ');
	if (space && strspn(space + 1, "0123456789.") == strlen(space + 1))
		*space = '_';
}

static uint32_t text_intern(struct collapsed *collapsed, const char *name)
{
	char *text = text_make_harmless(action_copy(name)), *begin = text;
	size_t length = strlen(text);
	for (char *at = text; *at; at++)
		if (*at == ';')
			*at = ':';
	while (length > 0 && text[length - 1] == ' ')
		text[--length] = 0;
	begin += strspn(begin, " ");
	hide_number(begin);
	uint32_t id = intern_text(&collapsed->texts, *begin ? begin : "[no name]");
	free(text);
	return id;
}

static uint32_t name_text(struct collapsed *collapsed, uint32_t name)
{
	if (name >= collapsed->name_count) {
		const uint32_t count = heap_names_count(action_names(collapsed->input));
		assert(name < count);
		collapsed->text_of_name =
			memory_resize(collapsed->text_of_name, count, sizeof(*collapsed->text_of_name));
		memset(&collapsed->text_of_name[collapsed->name_count], 0,
		       (count - collapsed->name_count) * sizeof(*collapsed->text_of_name));
		collapsed->name_count = count;
	}
	uint32_t *text = &collapsed->text_of_name[name];
	if (!*text) {
		const struct heap_name *from = heap_names_name(action_names(collapsed->input), name);
		const char *brief = from->short_symbol ? from->short_symbol : from->text;
		*text = 1 + text_intern(collapsed, collapsed->input->layout.has_full_names ? from->text : brief);
	}
	return *text - 1;
}

/* ---- the tree ---- */

static uint32_t child_of(struct collapsed *collapsed, uint32_t parent, uint32_t text)
{
	bool added;
	uint32_t *child = map_add(&collapsed->children, map_pair(parent, text), &added);
	if (!added)
		return *child;
	*child = collapsed->frame_count;
	memory_grow(collapsed->frames, collapsed->frame_count, collapsed->frame_capacity);
	collapsed->frames[collapsed->frame_count++] = (struct collapsed_frame){
		.text = text, .parent = parent, .first = HEAP_NONE, .next = collapsed->frames[parent].first};
	return collapsed->frames[parent].first = *child;
}

static void path_add(struct collapsed *collapsed, size_t length, uint32_t item)
{
	memory_grow(collapsed->path, length, collapsed->path_capacity);
	collapsed->path[length] = item;
}

/* The frame of a stack's innermost node. `root` is the frame of its split. */
static uint32_t frame_of(struct collapsed *collapsed, uint32_t split, uint32_t root, uint32_t node)
{
	const struct heap_names *names = action_names(collapsed->input);
	size_t length = 0;
	uint32_t frame = root;
	if (!node)
		return child_of(collapsed, root, text_intern(collapsed, "[no stack]"));
	for (uint32_t at = node; at; at = heap_names_frame(names, at)->parent) {
		const uint32_t *known = map_find(&collapsed->frame_of_node, map_pair(split, at));
		if (known) {
			frame = *known - 1;
			break;
		}
		path_add(collapsed, length++, at);
	}
	while (length-- > 0) {
		bool added;
		const uint32_t at = collapsed->path[length];
		frame = child_of(collapsed, frame, name_text(collapsed, heap_names_frame(names, at)->name));
		*map_add(&collapsed->frame_of_node, map_pair(split, at), &added) = frame + 1;
	}
	return frame;
}

/* Add the numbers of a source to those of its side: the side's mean. */
static void source_add(struct collapsed *collapsed, unsigned i)
{
	const struct diff *diff = &collapsed->report->diff;
	struct action_source *source = &collapsed->input->sources[i];
	const enum diff_side side = i < diff->runs[DIFF_A] ? DIFF_A : DIFF_B;
	const long double factor = (diff->scales ? diff->scales[i] : 1) / diff->runs[side];
	const struct heap_window *window = source->window;
	for (uint32_t k = 0; k < window->cell_count; k++) {
		const struct heap_cell *cell = &window->cells[k];
		const uint64_t value = report_number_at(&window->numbers[k], collapsed->number);
		uint32_t split = 0, root = 0;
		if (!value)
			continue;
		if (window->by != HEAP_BY_NONE) {
			char *label = heap_by_text(window, source->table, cell->by);
			split = text_intern(collapsed, label);
			root = child_of(collapsed, 0, split);
			free(label);
		}
		uint32_t node = action_site_node(collapsed->input, source, cell);
		/* Frames move when there are more of them. */
		const uint32_t frame = frame_of(collapsed, split, root, node);
		collapsed->frames[frame].values[side] += value * factor;
	}
}

/* ---- lines ---- */

static void line_write(struct collapsed *collapsed, uint32_t frame, struct sink *out)
{
	const struct report *report = collapsed->report;
	const long double *values = collapsed->frames[frame].values;
	size_t length = 0;
	if (values[0] == 0 && values[1] == 0)
		return;
	for (uint32_t at = frame; at; at = collapsed->frames[at].parent)
		path_add(collapsed, length++, collapsed->frames[at].text);
	for (size_t i = 0; i < length; i++) {
		const uint32_t text = collapsed->path[report->is_reversed ? i : length - 1 - i];
		if (i)
			sink_put(out, ';');
		sink_bytes(out, collapsed->texts.items[text].data, collapsed->texts.items[text].size);
	}
	for (unsigned i = 0; i < diff_side_count(&report->diff); i++)
		sink_format(out, " %s", text_decimal(values[i]).data);
	sink_put(out, '\n');
}

static int frame_compare(const void *a, const void *b, void *context)
{
	const struct collapsed *collapsed = context;
	const struct collapsed_frame *left = &collapsed->frames[*(const uint32_t *)a],
				     *right = &collapsed->frames[*(const uint32_t *)b];
	return strcmp(collapsed->texts.items[left->text].data, collapsed->texts.items[right->text].data);
}

/* Frames come in the order in which threads of ours found them. */
static void children_sort(struct collapsed *collapsed, uint32_t parent)
{
	size_t count = 0;
	for (uint32_t at = collapsed->frames[parent].first; at != HEAP_NONE; at = collapsed->frames[at].next)
		path_add(collapsed, count++, at);
	if (count < 2)
		return;
	qsort_r(collapsed->path, count, sizeof(*collapsed->path), frame_compare, collapsed);
	uint32_t *link = &collapsed->frames[parent].first;
	for (size_t i = 0; i < count; i++) {
		*link = collapsed->path[i];
		link = &collapsed->frames[collapsed->path[i]].next;
	}
	*link = HEAP_NONE;
}

static void lines_write(struct collapsed *collapsed, struct sink *out)
{
	uint32_t at = 0;
	while (at != HEAP_NONE) {
		line_write(collapsed, at, out);
		children_sort(collapsed, at);
		if (collapsed->frames[at].first != HEAP_NONE) {
			at = collapsed->frames[at].first;
			continue;
		}
		while (at && collapsed->frames[at].next == HEAP_NONE)
			at = collapsed->frames[at].parent;
		at = at ? collapsed->frames[at].next : HEAP_NONE;
	}
}

/* Short names depend on what other names there are. */
void collapsed_name(struct action_input *input)
{
	for (unsigned i = 0; i < input->source_count; i++) {
		struct action_source *source = &input->sources[i];
		for (uint32_t cell = 0; cell < source->window->cell_count; cell++)
			action_site_node(input, source, &source->window->cells[cell]);
	}
	heap_names_shorten(action_names(input));
}

/*
 * Write the lines of the number that sorts the report's first part, with short names of functions, or with images and
 * whole names if the input's layout has them; in the order of their frames from outside in. Stacks without the number
 * have no line. The numbers of all lines add up to those of the totals, of runs to their mean. A split of the window is
 * the outermost frame. Frames have no ';', no line feed, and no space before a number at their end, which readers take
 * for a number of the line.
 */
void report_collapsed(const struct report *report, struct sink *out)
{
	struct collapsed collapsed = {
		.report = report, .input = report->diff.input, .number = action_sort_number(report->parts[0].sort)};
	memory_grow(collapsed.frames, collapsed.frame_count, collapsed.frame_capacity);
	collapsed.frames[collapsed.frame_count++] = (struct collapsed_frame){.first = HEAP_NONE, .next = HEAP_NONE};
	collapsed_name(collapsed.input);
	for (unsigned i = 0; i < collapsed.input->source_count; i++)
		source_add(&collapsed, i);
	lines_write(&collapsed, out);
	free(collapsed.frames);
	free(collapsed.path);
	free(collapsed.text_of_name);
	map_fini(&collapsed.children);
	map_fini(&collapsed.frame_of_node);
	intern_fini(&collapsed.texts);
}
