/* SPDX-License-Identifier: MIT */
/*
 * A grid as wide as its cells needs all cells before its first line. It goes through the elements twice instead of
 * keeping them: first for the columns and their widths, then for the rows.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/text_width.h"
#include "dx/print.h"

enum { COLUMNS_MAX = 64, TEXT_WIDTH_LEAST = 12, COLUMN_EXTRA = 3 /* the separator and its blanks */ };

struct grid_column {
	const char *name;
	unsigned width, least; /* least: of its numbers, which are never shortened; texts may be */
	bool is_expandable;    /* some value has members or elements */
	bool is_minor;         /* left out before all others */
	bool is_left_out;      /* the terminal has no room for it */
	uint32_t rank;         /* of a class's members: the place in its table */
};

struct grid_print {
	struct dx_query *query;
	const struct dx_layout *layout;
	struct sink *out;
	struct grid_column columns[COLUMNS_MAX];
	unsigned count;
	unsigned label_width, short_width; /* short_width: of labels without "[object Object]" */
	unsigned label_least;              /* of indices and of numbers */
	unsigned whole_width;              /* of the grid with all columns */
	bool has_short_labels;
	bool has_cut; /* there are more members than columns */
};

static const char *label_of(const struct grid_print *print, const struct dx_element *element, bool is_short)
{
	const char *label = dx_label(print->query, &element->index, print->layout);
	const char *text = dx_specifier_text(print->query, &element->value, &print->layout->specifier);
	bool says_nothing = element->value.kind == DX_OBJECT && !element->value.class->show;
	if (element->value.kind == DX_SEQUENCE || (is_short && says_nothing && *label))
		text = "";
	if (element->value.kind == DX_POSITION || !*text)
		return *text ? dx_format(print->query->arena, "%s : %s", label, text) : label;
	return *label ? dx_format(print->query->arena, "%s : %s", label, text) : text;
}

static struct grid_column *column_of(struct grid_print *print, const char *name, uint32_t rank)
{
	for (unsigned i = 0; i < print->count; i++)
		if (!strcmp(print->columns[i].name, name))
			return &print->columns[i];
	if (print->count == COLUMNS_MAX) {
		print->has_cut = true;
		return NULL;
	}
	/* Members keep the order of their class, whichever object has one first. */
	unsigned at = print->count++;
	while (at && print->columns[at - 1].rank > rank) {
		print->columns[at] = print->columns[at - 1];
		at--;
	}
	print->columns[at] = (struct grid_column){.name = name, .rank = rank};
	return &print->columns[at];
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

static const char *cell_text(const struct grid_print *print, const struct dx_value *value)
{
	const char *text = value->kind == DX_SEQUENCE ? "{...}"
			   : value->kind == DX_OBJECT && !value->class->show
				   ? "{...}"
				   : dx_specifier_text(print->query, value, &print->layout->specifier);
	text = text_shown(text);
	unsigned most = (unsigned)print->layout->cell_width;
	if (!most || text_width(text) <= most)
		return text;
	struct arena arena = {NULL};
	const char *cut = text_fit_start(&arena, text, most, false);
	text = dx_copy_text(print->query->arena, cut, strlen(cut));
	arena_fini(&arena);
	return text;
}

static void widen(unsigned *width, const char *text)
{
	unsigned columns = text_width(text);
	if (columns > *width)
		*width = columns;
}

static void raise_least(unsigned *least, unsigned width)
{
	*least = width > *least ? width : *least;
}

/* A label is "INDEX : VALUE", or one of both. */
static void measure_label(struct grid_print *print, const struct dx_element *element)
{
	const char *whole = text_shown(label_of(print, element, false)),
		   *shorter = text_shown(label_of(print, element, true)),
		   *index = text_shown(dx_label(print->query, &element->index, print->layout));
	widen(&print->label_width, whole);
	widen(&print->short_width, shorter);
	bool is_only_index = text_width(shorter) == text_width(index);
	unsigned least = is_only_index ? 0 : text_width(shorter) - text_width(index);
	if (least > TEXT_WIDTH_LEAST && is_text(&element->value))
		least = TEXT_WIDTH_LEAST;
	raise_least(&print->label_least, least + least_width(&element->index, index));
}

static void measure(struct grid_print *print, const struct dx_element *element)
{
	const struct dx_value *object = &element->value;
	uint32_t count = object->kind == DX_OBJECT || object->kind == DX_POSITION ? dx_member_count(object) : 0;
	measure_label(print, element);
	for (uint32_t i = 0; i < count; i++) {
		struct dx_value value;
		unsigned flags;
		const char *name = dx_shown_at(print->query, object, i, print->layout, true, &flags, &value);
		if (!name)
			continue;
		struct grid_column *column = column_of(print, name, i);
		if (!column)
			return;
		const char *text = cell_text(print, &value);
		column->is_expandable |= is_expandable(&value);
		column->is_minor |= (flags & DX_MEMBER_MINOR) != 0;
		widen(&column->width, text);
		raise_least(&column->least, least_width(&value, text));
	}
}

static void put_cell(const struct grid_print *print, const char *text, unsigned width)
{
	unsigned columns = text_width(text);
	sink_text(print->out, text);
	for (; columns < width; columns++)
		sink_put(print->out, ' ');
}

static const char *shortened(const struct grid_print *print, const char *text, unsigned width)
{
	if (text_width(text) <= width)
		return text;
	struct arena arena = {NULL};
	const char *cut = text_fit(&arena, text, width, false);
	text = dx_copy_text(print->query->arena, cut, strlen(cut));
	arena_fini(&arena);
	return text;
}

static const char *title_of(const struct grid_print *print, const struct grid_column *column)
{
	return column->is_expandable ? dx_format(print->query->arena, "(+) %s", column->name) : column->name;
}

static void put_row(struct grid_print *print, const struct dx_element *element)
{
	const char *label = text_shown(label_of(print, element, print->has_short_labels));
	sink_text(print->out, "= ");
	put_cell(print, shortened(print, label, print->label_width), print->label_width);
	for (unsigned i = 0; i < print->count; i++) {
		if (print->columns[i].is_left_out)
			continue;
		struct dx_value value = {.kind = DX_ABSENT};
		if (element->value.kind == DX_OBJECT || element->value.kind == DX_POSITION)
			value = dx_shown_member(print->query, &element->value, print->columns[i].name, print->layout);
		sink_text(print->out, " - ");
		put_cell(print, shortened(print, cell_text(print, &value), print->columns[i].width),
			 print->columns[i].width);
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
	put_cell(print, "", print->label_width);
	for (unsigned i = 0; i < print->count; i++) {
		if (print->columns[i].is_left_out)
			continue;
		sink_text(print->out, " = ");
		const char *title = title_of(print, &print->columns[i]);
		title = text_width(title) > print->columns[i].width ? print->columns[i].name : title;
		put_cell(print, shortened(print, title, print->columns[i].width), print->columns[i].width);
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
		struct grid_column *column = &print->columns[i];
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
		struct grid_column *column = &print->columns[i];
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
		print->label_width = print->short_width;
	for (unsigned i = 0; i < print->count; i++) /* titles lose their mark, not their names */
		widen(&print->columns[i].least, print->columns[i].name);
	while (is_too_wide(print) && (narrow_widest(print) || leave_out(print)))
		;
}

/* Columns that are left out make room, which shortened texts get back. */
static void widen_again(struct grid_print *print, const struct grid_print *whole)
{
	bool has_grown = true;
	while (print->layout->width && has_grown) {
		has_grown = false;
		for (unsigned i = 0; i < print->count; i++) {
			struct grid_column *column = &print->columns[i];
			if (column->is_left_out || column->width >= whole->columns[i].width ||
			    total_width(print) >= print->layout->width)
				continue;
			column->width++;
			has_grown = true;
		}
		if (print->label_width < print->short_width && total_width(print) < print->layout->width) {
			print->label_width++;
			has_grown = true;
		}
	}
}

static void put_left_out(const struct grid_print *print)
{
	const struct text_layout layout = {.width = print->layout->width};
	struct sink line;
	unsigned count = 0;
	sink_to_memory(&line);
	for (unsigned i = 0; i < print->count; i++)
		if (print->columns[i].is_left_out)
			sink_format(&line, "%s%s",
				    count++ ? ", " : "(columns left out: ", text_shown(print->columns[i].name));
	sink_format(&line, "; %u columns, or a pipe, show them)", print->whole_width);
	char *text = sink_take(&line, NULL);
	if (count)
		text_wrap(print->out, text, &layout);
	free(text);
}

static bool pass(struct grid_print *print, const struct dx_sequence *sequence,
		 void (*visit)(struct grid_print *print, const struct dx_element *element))
{
	const struct dx_layout *layout = print->layout;
	struct dx_mark mark = dx_mark(print->query->arena);
	struct dx_iterator *iterator = dx_open(print->query, sequence);
	struct dx_element element;
	bool has_more = false;
	for (uint64_t passed = 0; !print->out->error; passed++) {
		struct dx_mark step = dx_mark(print->query->arena);
		if (!dx_next(print->query, iterator, &element))
			break;
		if (layout->specifier.has_count && passed >= layout->skip &&
		    passed - layout->skip >= layout->specifier.count) {
			has_more = true;
			break;
		}
		if (passed >= layout->skip)
			visit(print, &element);
		dx_release(print->query->arena, step);
	}
	dx_release(print->query->arena, mark);
	return has_more;
}

void dx_print_grid(struct dx_query *query, const char *text, const struct dx_value *value,
		   const struct dx_layout *layout, struct sink *out)
{
	struct grid_print print = {.query = query, .layout = layout, .out = out};
	struct dx_value sequence;
	if (!dx_elements(query, value, &sequence)) {
		dx_print_tree(query, text, value, layout, out);
		return;
	}
	pass(&print, sequence.sequence, measure);
	for (unsigned i = 0; i < print.count; i++)
		widen(&print.columns[i].width, title_of(&print, &print.columns[i]));
	const struct grid_print whole = print;
	narrow(&print);
	widen_again(&print, &whole);
	if (query->is_stopped)
		return;
	if (!print.label_width) {
		sink_text(out, "(no elements)\n");
		return;
	}
	put_header(&print);
	bool has_more = pass(&print, sequence.sequence, put_row);
	if (has_more)
		sink_text(out, "[...]\n");
	put_left_out(&print);
	if (print.has_cut)
		sink_text(out, "[more columns than 64: Select() some]\n");
}
