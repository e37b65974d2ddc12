/* SPDX-License-Identifier: MIT */
#include "action/report/stack_view.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/style.h"
#include "base/text.h"
#include "query/library_frames.h"

enum { LABEL_BYTES = 64, LABELS_MAX = 3 };

/* What one line shows: a frame, or a run of frames that is folded. */
struct line {
	uint32_t node;  /* the innermost one */
	uint32_t count; /* of frames; more than one: folded */
	bool is_via;    /* it was called by the frame of the line before */
};

struct lines {
	struct line *items;
	size_t count, capacity;
};

static const struct heap_name *name_of(const struct heap_names *names, uint32_t node)
{
	return heap_names_name(names, heap_names_frame(names, node)->name);
}

static uint32_t caller(const struct heap_names *names, uint32_t node)
{
	return heap_names_frame(names, node)->parent;
}

static bool is_library(struct action_input *input, uint32_t node)
{
	return heap_cull_folds(input->cull, action_names(input), node);
}

uint32_t stack_view_user_node(struct action_input *input, uint32_t node)
{
	return heap_cull_user_node(input->cull, action_names(input), node);
}

static void add_line(struct lines *lines, uint32_t node, uint32_t count, bool is_via)
{
	memory_grow(lines->items, lines->count, lines->capacity);
	lines->items[lines->count++] = (struct line){node, count, is_via};
}

/* The number of library frames from the node on, up to the node `end` if that is not 0. */
static uint32_t run_length(struct action_input *input, uint32_t node, uint32_t end)
{
	uint32_t count = 0;
	for (; node && node != end && is_library(input, node); node = caller(action_names(input), node))
		count++;
	return count;
}

static uint32_t skip(const struct heap_names *names, uint32_t node, uint32_t count)
{
	assert(node);
	while (count-- > 0)
		node = caller(names, node);
	return node;
}

/* The lines of a stack. A stack without any frame of the user's is shown as it is. */
static void make_lines(struct lines *lines, struct action_input *input, uint32_t node)
{
	const struct heap_names *names = action_names(input);
	uint32_t user = stack_view_user_node(input, node), before = run_length(input, node, user);
	bool is_open = input->layout.has_all_frames || !user || is_library(input, user);
	uint32_t at = node;
	if (!is_open && before) {
		add_line(lines, user, 1, false);
		add_line(lines, node, before, true);
		at = caller(names, user);
	}
	while (at) {
		uint32_t run = is_open ? 1 : run_length(input, at, 0), count = run > 1 ? run : 1;
		add_line(lines, at, count, false);
		at = skip(names, at, count);
	}
}

/* ---- printing ---- */

/* Where a line is printed. */
struct stack_printer {
	const struct stack_view *view;
	struct sink *out;
	struct arena arena;
	const char *image; /* of the line before; NULL: none */
};

/* The columns that are left behind `used` ones of a line; as many as there may be without a width. */
static unsigned room_of(const struct stack_printer *printer, unsigned used)
{
	const struct text_layout *layout = &printer->view->input->layout;
	if (!layout->width || layout->has_full_names)
		return UINT32_MAX;
	return layout->width > used + 1 ? layout->width - used : 1;
}

static void print_fitting(struct stack_printer *printer, const char *text, unsigned used)
{
	sink_text(printer->out, text_fit(&printer->arena, text_shown(text), room_of(printer, used),
					 printer->view->input->layout.has_unicode));
}

/* File and line, with a file's name of at most so many columns. */
static const char *place_text(struct stack_printer *printer, const struct heap_frame *frame, unsigned file_columns)
{
	if (!printer->view->has_places || !frame->file)
		return "";
	const char *file = text_fit(&printer->arena, text_shown(text_file_name(frame->file)), file_columns,
				    printer->view->input->layout.has_unicode);
	return frame->line ? arena_format(&printer->arena, "  %s:%" PRIu32, file, frame->line)
			   : arena_format(&printer->arena, "  %s", file);
}

/* What stands behind a name: whether the function is inlined, and where it is. Where there is no room for all, the name
   keeps half of it. */
static const char *rest_of(struct stack_printer *printer, uint32_t node, const char *name, unsigned used)
{
	enum { FILE_COLUMNS = 16 };
	static const char inlined[] = " [inlined]";
	const struct heap_frame *frame = heap_names_frame(action_names(printer->view->input), node);
	unsigned room = room_of(printer, used), width = text_width(name);
	const char *place = place_text(printer, frame, UINT32_MAX), *mark = frame->is_inlined ? inlined : "";
	width = width < room / 2 ? width : room / 2;
	if (text_width(place) + strlen(mark) > room - width)
		place = place_text(printer, frame, FILE_COLUMNS);
	if (text_width(place) + strlen(mark) > room - width)
		mark = "";
	if (text_width(place) > room - width)
		place = "";
	return arena_format(&printer->arena, "%s%s", mark, place);
}

static void print_frame(struct stack_printer *printer, uint32_t node, unsigned used)
{
	const struct stack_view *view = printer->view;
	const struct heap_name *name = name_of(action_names(view->input), node);
	bool is_full = view->input->layout.has_full_names;
	/* With lines in names (-lines) the place behind the name has the line. */
	bool is_same = printer->image && name->image && name->symbol && !strcmp(printer->image, name->image);
	const char *text = is_full   ? name->text
			   : is_same ? name->short_symbol
			   : name->image && name->symbol
				   ? arena_format(&printer->arena, "%s!%s", name->image, name->short_symbol)
				   : name->short_text;
	const char *rest = rest_of(printer, node, text_shown(text), used);
	bool is_colored = view->input->is_colored && *rest;
	print_fitting(printer, text, used + text_width(rest));
	sink_format(printer->out, "%s%s%s", style_begin(is_colored, STYLE_QUIET), rest,
		    style_end(is_colored, STYLE_QUIET));
	printer->image = name->image;
}

static bool has_label(char labels[LABELS_MAX][LABEL_BYTES], unsigned count, const char *label)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(labels[i], label))
			return true;
	return false;
}

/* "[5 frames of std, libc]" */
static void print_fold(struct stack_printer *printer, const struct line *line, unsigned used)
{
	const struct heap_names *names = action_names(printer->view->input);
	char labels[LABELS_MAX][LABEL_BYTES], label[LABEL_BYTES];
	unsigned count = 0;
	bool has_more = false;
	uint32_t at = line->node;
	for (uint32_t i = 0; i < line->count; i++, at = caller(names, at)) {
		library_label(name_of(names, at), label, sizeof(label));
		if (has_label(labels, count, label))
			continue;
		has_more |= count == LABELS_MAX;
		if (count < LABELS_MAX)
			strcpy(labels[count++], label);
	}
	struct sink text;
	sink_to_memory(&text);
	sink_format(&text, "[%" PRIu32 " frame%s of ", line->count, line->count == 1 ? "" : "s");
	for (unsigned i = 0; i < count; i++)
		sink_format(&text, "%s%s", i ? ", " : "", labels[i]);
	sink_text(&text, has_more ? ", ...]" : "]");
	char *words = sink_take(&text, NULL);
	print_fitting(printer, words, used);
	free(words);
	printer->image = NULL;
}

static void print_line(struct stack_printer *printer, const struct line *line)
{
	const char *via = line->is_via ? "  via " : "", *image = printer->image;
	unsigned indent = printer->view->indent, used = indent + (unsigned)strlen(via);
	sink_format(printer->out, "%*s%s", (int)indent, "", via);
	if (line->count > 1)
		print_fold(printer, line, used);
	else
		print_frame(printer, line->node, used);
	if (line->is_via)
		printer->image = image;
	sink_put(printer->out, '\n');
}

/* The frames of the lines that are not shown. */
static uint32_t frames_from(const struct lines *lines, size_t from)
{
	uint32_t count = 0;
	for (size_t i = from; i < lines->count; i++)
		count += lines->items[i].count;
	return count;
}

void stack_view_print(const struct stack_view *view, uint32_t node, struct sink *out)
{
	struct stack_printer printer = {.view = view, .out = out};
	struct lines lines = {.count = 0};
	heap_names_shorten(action_names(view->input));
	make_lines(&lines, view->input, node);
	size_t shown = view->lines_max && lines.count > view->lines_max ? view->lines_max - 1 : lines.count;
	for (size_t i = 0; i < shown; i++)
		print_line(&printer, &lines.items[i]);
	if (!lines.count)
		sink_format(out, "%*s[no stack]\n", (int)view->indent, "");
	if (shown < lines.count)
		sink_format(out, "%*s[%" PRIu32 " more frames]\n", (int)view->indent, "", frames_from(&lines, shown));
	free(lines.items);
	arena_fini(&printer.arena);
}
