/* SPDX-License-Identifier: MIT */
/*
 * A grid is as wide as the cells of its first rows, so that a long one begins at once. Rows are read as texts,
 * ROWS_READ at a time, or fewer with little memory. In later rows a wider cell pushes the rest of its line, and a
 * member that no row had before begins the grid anew, with a header that has it.
 */
#include "dx/print/print_grid.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/text_width.h"
#include "dx/model/debugger.h"
#include "dx/model/stack_frames.h"
#include "dx/print/print.h"
#include "dx/print/print_tree.h"
#include "trace/trace.h"

enum { COLUMNS_MAX = 64, TEXT_WIDTH_LEAST = 12, COLUMN_EXTRA = 3 /* the separator and its blanks */ };
enum { ROWS_READ = 256, TEXTS_SHARE = 16 /* of the memory of the query, for their texts */ };

struct grid_column {
	const char *name;
	unsigned widest, least; /* of its cells; least: of its numbers, which are never shortened; texts may be */
	unsigned full, width;   /* full: with the title; width: on a terminal, less if that has no room */
	bool is_expandable;     /* some value has members or elements */
	bool is_position;       /* some value is a position */
	bool is_minor;          /* left out before all others */
	bool is_left_out;       /* the terminal has no room for it */
	uint32_t rank;          /* of a class's members: the place in its table */
};

struct grid_cell {
	const char *text; /* NULL: the row lacks the member */
	unsigned width;
	bool may_be_cut;
};

struct grid_row {
	struct grid_cell label, short_label; /* short_label: without "[object Object]" */
	struct grid_cell *cells;             /* of the columns that were there when it was read */
	unsigned count;
};

struct grid_print {
	struct dx_query *query;
	const struct dx_layout *layout;
	struct sink *out;
	struct grid_column columns[COLUMNS_MAX];
	unsigned count, shown_count;  /* shown_count: of the last header */
	unsigned places[COLUMNS_MAX]; /* columns from left to right */
	unsigned widest_index, widest_label, widest_short;
	unsigned label_least; /* of indices and of numbers */
	unsigned label_width; /* on a terminal it may be less than the widest */
	unsigned whole_width; /* of the grid with all columns */
	bool has_short_labels;
	bool has_cut; /* there are more members than columns */
	bool has_more;
	uint64_t passed;
	struct dx_arena texts; /* of the rows */
	size_t text_bytes;
	struct grid_row rows[ROWS_READ];
	unsigned row_count;
	struct grid_cell cells[COLUMNS_MAX]; /* of the row that is read */
};

/* A stack has a line of a grid for more than itself: its caller stands for it, unless it is asked for raw. */
static struct dx_value shown_value(const struct grid_print *print, const struct dx_value *value)
{
	return print->layout->specifier.is_raw ? *value : dx_stack_folded(print->query, value);
}

static const char *value_text(const struct grid_print *print, const struct dx_value *value)
{
	const struct dx_value shown = shown_value(print, value);
	return dx_specifier_text(print->query, &shown, &print->layout->specifier);
}

static const char *label_of(const struct grid_print *print, const struct dx_element *element, bool is_short)
{
	const struct dx_value index = shown_value(print, &element->index);
	const char *label = dx_label(print->query, &index, print->layout);
	const char *text = value_text(print, &element->value);
	bool says_nothing = element->value.kind == DX_OBJECT && !element->value.class->show;
	if (element->value.kind == DX_SEQUENCE || element->value.kind == DX_ABSENT ||
	    (is_short && says_nothing && *label))
		text = "";
	if (element->value.kind == DX_POSITION || !*text)
		return *text ? dx_format(print->query->arena, "%s : %s", label, text) : label;
	return *label ? dx_format(print->query->arena, "%s : %s", label, text) : text;
}

/* Columns keep their numbers. From left to right, members have the order of their class, whichever object has one
   first. */
static struct grid_column *column_of(struct grid_print *print, const char *name, uint32_t rank)
{
	for (unsigned i = 0; i < print->count; i++)
		if (print->columns[i].name == name || !strcmp(print->columns[i].name, name))
			return &print->columns[i];
	if (print->count == COLUMNS_MAX) {
		print->has_cut = true;
		return NULL;
	}
	unsigned at = print->count, number = print->count++;
	for (; at && print->columns[print->places[at - 1]].rank > rank; at--)
		print->places[at] = print->places[at - 1];
	print->places[at] = number;
	print->columns[number] = (struct grid_column){.name = name, .rank = rank};
	return &print->columns[number];
}

static bool is_text(const struct dx_value *value)
{
	return value->kind == DX_TEXT || value->kind == DX_ERROR || (value->kind == DX_OBJECT && value->class->show);
}

/* The columns that a cell takes at least: a number is whole, a text may lose a part. */
static unsigned least_width(const struct dx_value *value, const char *text)
{
	unsigned width = text_width(text);
	return is_text(value) && width > TEXT_WIDTH_LEAST ? TEXT_WIDTH_LEAST : width;
}

static bool is_expandable(const struct dx_value *value)
{
	return value->kind == DX_OBJECT || value->kind == DX_SEQUENCE || value->kind == DX_POSITION;
}

/* The text as it is shown, with at most as many characters as a cell may have. */
static const char *cell_cut(const struct grid_print *print, const char *text)
{
	unsigned most = (unsigned)print->layout->cell_width;
	text = text_shown(text);
	if (!most || text_width(text) <= most)
		return text;
	struct arena arena = {0};
	const char *cut = text_fit_start(&arena, text, most, false);
	text = dx_copy_text(print->query->arena, cut, strlen(cut));
	arena_fini(&arena);
	return text;
}

static const char *cell_text(const struct grid_print *print, const struct dx_value *value)
{
	const char *text = value->kind == DX_SEQUENCE                        ? "{...}"
			   : value->kind == DX_OBJECT && !value->class->show ? "{...}"
									     : value_text(print, value);
	return cell_cut(print, text);
}

static void widen(unsigned *width, unsigned least)
{
	*width = least > *width ? least : *width;
}

/* ---- rows ---- */

static struct grid_cell cell_make(struct grid_print *print, const char *text, bool may_be_cut)
{
	size_t length = strlen(text);
	print->text_bytes += length;
	return (struct grid_cell){dx_copy_text(&print->texts, text, length), text_width(text), may_be_cut};
}

/* A label is "INDEX : VALUE", or one of both. */
static void read_label(struct grid_print *print, const struct dx_element *element, struct grid_row *row)
{
	bool may_be_cut = is_text(&element->value) || is_text(&element->index);
	const struct dx_value shown = shown_value(print, &element->index);
	const char *index = cell_cut(print, dx_label(print->query, &shown, print->layout));
	unsigned index_width = text_width(index), index_least = least_width(&element->index, index);
	row->label = cell_make(print, cell_cut(print, label_of(print, element, false)), may_be_cut);
	row->short_label = cell_make(print, cell_cut(print, label_of(print, element, true)), may_be_cut);
	widen(&print->widest_index, index_width);
	widen(&print->widest_label, row->label.width);
	widen(&print->widest_short, row->short_label.width);
	bool is_only_index = row->short_label.width == index_width;
	unsigned least = is_only_index ? 0 : row->short_label.width - index_width;
	if (least > TEXT_WIDTH_LEAST && is_text(&element->value))
		least = TEXT_WIDTH_LEAST;
	widen(&print->label_least, least + index_least);
}

/* Of two members of a name, the first one counts. */
static void read_cell(struct grid_print *print, struct grid_column *column, const struct dx_value *value)
{
	assert(column < print->columns + print->count);
	struct grid_cell *cell = &print->cells[column - print->columns];
	if (cell->text)
		return;
	const char *text = cell_text(print, value);
	*cell = cell_make(print, text, is_text(value));
	column->is_expandable |= is_expandable(value);
	column->is_position |= value->kind == DX_POSITION;
	widen(&column->widest, cell->width);
	widen(&column->least, least_width(value, text));
}

static void read_row(struct grid_print *print, const struct dx_element *element)
{
	const struct dx_value *object = &element->value;
	uint32_t count = object->kind == DX_OBJECT || object->kind == DX_POSITION ? dx_member_count(object) : 0;
	assert(print->row_count < ROWS_READ);
	struct grid_row *row = &print->rows[print->row_count++];
	memset(print->cells, 0, sizeof(print->cells));
	read_label(print, element, row);
	for (uint32_t i = 0; i < count && !print->query->is_stopped; i++) {
		struct dx_mark mark = dx_mark(print->query->arena);
		struct dx_value value;
		unsigned flags;
		const char *name = dx_shown_at(print->query, object, i, print->layout, true, &flags, &value);
		struct grid_column *column = name ? column_of(print, name, i) : NULL;
		if (column) {
			column->is_minor |= (flags & DX_MEMBER_MINOR) != 0;
			read_cell(print, column, &value);
		}
		dx_release(print->query->arena, mark);
	}
	row->count = print->count;
	row->cells = dx_new(&print->texts, struct grid_cell, row->count + 1);
	memcpy(row->cells, print->cells, row->count * sizeof(*row->cells));
}

/* Read the next rows. False: there are no more behind them. */
static bool read_rows(struct grid_print *print, struct dx_iterator *iterator)
{
	const struct dx_layout *layout = print->layout;
	size_t most_bytes = print->query->budget.limit_bytes / TEXTS_SHARE;
	struct dx_element element;
	dx_arena_fini(&print->texts);
	print->row_count = 0;
	print->text_bytes = 0;
	for (; print->row_count < ROWS_READ && print->text_bytes < most_bytes && !print->out->error; print->passed++) {
		struct dx_mark step = dx_mark(print->query->arena);
		if (!dx_next(print->query, iterator, &element))
			return false;
		print->has_more = layout->specifier.has_count && print->passed >= layout->skip &&
				  print->passed - layout->skip >= layout->specifier.count;
		if (print->has_more)
			return false;
		if (print->passed >= layout->skip)
			read_row(print, &element);
		dx_release(print->query->arena, step);
	}
	return !print->out->error;
}

/* Indices and positions grow: leave room for the trace's last ones. */
static void widen_for_later_rows(struct grid_print *print)
{
	const struct trace_dictionary *dictionary = print->query->session->dictionary;
	const struct dx_value index = dx_number(dictionary->event_count),
			      position = dx_position(dictionary->duration_ns, 1);
	unsigned width = text_width(dx_label(print->query, &index, print->layout));
	if (width > print->widest_index) {
		width -= print->widest_index;
		print->widest_label += width;
		print->widest_short += width;
		print->label_least += width;
	}
	width = text_width(dx_position_text(print->query->arena, &position));
	for (unsigned i = 0; i < print->count; i++)
		if (print->columns[i].is_position) {
			widen(&print->columns[i].widest, width);
			widen(&print->columns[i].least, width);
		}
}

/* ---- lines ---- */

static void put_text(const struct grid_print *print, const char *text, unsigned columns, unsigned width)
{
	sink_text(print->out, text);
	for (; columns < width; columns++)
		sink_put(print->out, ' ');
}

/* On a terminal a text that is too wide is shortened. Any other cell pushes the rest of its line. */
static void put_cell(const struct grid_print *print, const struct grid_cell *cell, unsigned width)
{
	if (!cell->may_be_cut || cell->width <= width || !print->layout->width) {
		put_text(print, cell->text ? cell->text : "", cell->width, width);
		return;
	}
	struct arena arena = {0};
	const char *text = text_fit(&arena, cell->text, width, false);
	put_text(print, text, text_width(text), width);
	arena_fini(&arena);
}

static const char *title_of(const struct grid_print *print, const struct grid_column *column)
{
	return column->is_expandable ? dx_format(print->query->arena, "(+) %s", column->name) : column->name;
}

static void put_row(const struct grid_print *print, const struct grid_row *row)
{
	static const struct grid_cell none = {.text = NULL};
	sink_text(print->out, "= ");
	put_cell(print, print->has_short_labels ? &row->short_label : &row->label, print->label_width);
	for (unsigned i = 0; i < print->count; i++) {
		unsigned number = print->places[i];
		if (print->columns[number].is_left_out)
			continue;
		sink_text(print->out, " - ");
		put_cell(print, number < row->count ? &row->cells[number] : &none, print->columns[number].width);
	}
	sink_text(print->out, " =\n");
}

static unsigned total_width(const struct grid_print *print)
{
	unsigned width = 2 + print->label_width + 2;
	for (unsigned i = 0; i < print->count; i++)
		width += print->columns[i].is_left_out ? 0 : print->columns[i].width + COLUMN_EXTRA;
	return width;
}

static void put_rule(const struct grid_print *print)
{
	for (unsigned width = total_width(print); width > 0; width--)
		sink_put(print->out, '=');
	sink_put(print->out, '\n');
}

static void put_header(const struct grid_print *print)
{
	put_rule(print);
	sink_text(print->out, "= ");
	put_text(print, "", 0, print->label_width);
	for (unsigned i = 0; i < print->count; i++) {
		const struct grid_column *column = &print->columns[print->places[i]];
		if (column->is_left_out)
			continue;
		sink_text(print->out, " = ");
		const char *title = title_of(print, column);
		title = text_width(title) > column->width ? column->name : title;
		const struct grid_cell cell = {title, text_width(title), true};
		put_cell(print, &cell, column->width);
	}
	sink_text(print->out, " =\n");
	put_rule(print);
}

static bool is_too_wide(const struct grid_print *print)
{
	return print->layout->width && total_width(print) > print->layout->width;
}

/* Narrow the widest cell that may be narrower. False: there is none. */
static bool narrow_widest(struct grid_print *print)
{
	unsigned *widest = print->label_width > print->label_least ? &print->label_width : NULL;
	for (unsigned i = 0; i < print->count; i++) {
		struct grid_column *column = &print->columns[print->places[i]];
		if (!column->is_left_out && column->width > column->least && (!widest || column->width > *widest))
			widest = &column->width;
	}
	if (widest)
		--*widest;
	return widest != NULL;
}

/* Minor columns go first, then those at the end. The last one stays. */
static bool leave_out(struct grid_print *print)
{
	struct grid_column *last = NULL;
	unsigned left = 0;
	for (unsigned i = 0; i < print->count; i++) {
		struct grid_column *column = &print->columns[print->places[i]];
		left += !column->is_left_out;
		if (!column->is_left_out && (!last || !last->is_minor || column->is_minor))
			last = column;
	}
	if (left < 2)
		return false;
	last->is_left_out = true;
	return true;
}

/* On a terminal: labels become short, texts shorter, and columns that then have no room are left out. A number is whole
   or left out. */
static void narrow(struct grid_print *print)
{
	print->whole_width = total_width(print);
	print->has_short_labels = is_too_wide(print);
	if (print->has_short_labels)
		print->label_width = print->widest_short;
	for (unsigned i = 0; i < print->count; i++) /* titles lose their mark, not their names */
		widen(&print->columns[i].least, text_width(print->columns[i].name));
	while (is_too_wide(print) && (narrow_widest(print) || leave_out(print)))
		;
}

/* Columns that are left out make room, which shortened texts get back. */
static void widen_again(struct grid_print *print)
{
	bool has_grown = true;
	while (print->layout->width && has_grown) {
		has_grown = false;
		for (unsigned i = 0; i < print->count; i++) {
			struct grid_column *column = &print->columns[print->places[i]];
			if (column->is_left_out || column->width >= column->full ||
			    total_width(print) >= print->layout->width)
				continue;
			column->width++;
			has_grown = true;
		}
		if (print->label_width < print->widest_short && total_width(print) < print->layout->width) {
			print->label_width++;
			has_grown = true;
		}
	}
}

/* Give each column its width, from the rows that were read. */
static void lay_out(struct grid_print *print)
{
	for (unsigned i = 0; i < print->count; i++) {
		struct grid_column *column = &print->columns[i];
		column->full = column->widest;
		widen(&column->full, text_width(title_of(print, column)));
		column->width = column->full;
		column->is_left_out = false;
	}
	print->label_width = print->widest_label;
	print->shown_count = print->count;
	narrow(print);
	widen_again(print);
}

static void put_left_out(const struct grid_print *print)
{
	const struct text_layout layout = {.width = print->layout->width};
	struct sink line;
	unsigned count = 0;
	sink_to_memory(&line);
	for (unsigned i = 0; i < print->count; i++)
		if (print->columns[print->places[i]].is_left_out)
			sink_format(&line, "%s%s", count++ ? ", " : "(columns left out: ",
				    text_shown(print->columns[print->places[i]].name));
	sink_format(&line, "; %u columns, or a pipe, show them)", print->whole_width);
	char *text = sink_take(&line, NULL);
	if (count)
		text_wrap(print->out, text, &layout);
	free(text);
}

static void put_rows(struct grid_print *print, const struct dx_sequence *sequence)
{
	struct dx_iterator *iterator = dx_open(print->query, sequence);
	bool is_first = true, has_rows = true;
	while (has_rows) {
		has_rows = read_rows(print, iterator);
		if (print->query->is_stopped)
			return;
		if (is_first && !print->row_count) {
			sink_text(print->out, "(no elements)\n");
			return;
		}
		if (is_first && has_rows)
			widen_for_later_rows(print);
		if (is_first || print->count != print->shown_count) {
			lay_out(print);
			put_header(print);
		}
		for (unsigned i = 0; i < print->row_count; i++)
			put_row(print, &print->rows[i]);
		if (is_first)
			sink_flush(print->out);
		is_first = false;
	}
	put_rule(print);
	if (print->has_more && print->layout->width)
		sink_format(print->out, "[...] dx -g -c %llu shows what follows\n", (unsigned long long)print->passed);
	else if (print->has_more)
		sink_text(print->out, "[...]\n");
	put_left_out(print);
	if (print->has_cut)
		sink_text(print->out, "[more columns than 64: Select() some]\n");
}

void dx_print_grid(struct dx_query *query, const char *text, const struct dx_value *value,
		   const struct dx_layout *layout, struct sink *out)
{
	struct dx_value sequence;
	if (!dx_elements(query, value, &sequence)) {
		dx_print_tree(query, text, value, layout, out);
		return;
	}
	struct grid_print *print = memory_zeroed(1, sizeof(*print));
	struct dx_mark mark = dx_mark(query->arena);
	print->query = query;
	print->layout = layout;
	print->out = out;
	dx_arena_init(&print->texts, &query->budget);
	put_rows(print, sequence.sequence);
	dx_release(query->arena, mark);
	dx_arena_fini(&print->texts);
	free(print);
}
