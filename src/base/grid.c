/* SPDX-License-Identifier: MIT */
#include "base/grid.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

void grid_row(struct grid *grid)
{
	assert(grid->columns > 0);
	if (grid->row_count >= grid->capacity) {
		grid->capacity = memory_capacity(grid->capacity, grid->row_count + 1);
		grid->cells = memory_resize(grid->cells, grid->capacity * grid->columns, sizeof(*grid->cells));
		grid->details = memory_resize(grid->details, grid->capacity, sizeof(*grid->details));
	}
	for (unsigned i = 0; i < grid->columns; i++)
		grid->cells[grid->row_count * grid->columns + i] = NULL;
	grid->details[grid->row_count++] = NULL;
	grid->filled = 0;
}

void grid_cell(struct grid *grid, const char *text)
{
	assert(grid->filled < grid->columns);
	char *copy = arena_text(&grid->arena, text);
	/* A cell is one line, and no text of a traced program steers the terminal. */
	if (copy)
		text_make_harmless(copy);
	grid->cells[(grid->row_count - 1) * grid->columns + grid->filled++] = copy;
}

void grid_detail(struct grid *grid, const char *lines)
{
	assert(grid->row_count > 0);
	grid->details[grid->row_count - 1] = arena_text(&grid->arena, lines);
}

void grid_columns(struct grid *grid, unsigned columns, const char *const *titles)
{
	assert(columns <= GRID_COLUMNS_MAX);
	grid->columns = columns;
	grid_row(grid);
	for (unsigned i = 0; i < columns; i++) {
		grid->is_right[i] = *titles[i] == '>';
		grid_cell(grid, titles[i] + grid->is_right[i]);
	}
}

/* ---- the widths of columns ---- */

enum { GAP = 2, TEXT_LEAST = 8, WIDTH_STEP = 10 };

/* How wide the columns are printed. */
struct grid_fit {
	unsigned widths[GRID_COLUMNS_MAX];
	bool is_left_out[GRID_COLUMNS_MAX];
	unsigned whole; /* the width that would show all columns; 0: any width will do */
};

static unsigned cell_width(const char *text)
{
	return text ? text_width(text) : 0;
}

/* A name of fewer columns than this says nothing; on a wide line names get more room before numbers do. */
static unsigned text_least(const struct grid *grid)
{
	unsigned share = grid->layout.width * 2 / 5;
	return share > TEXT_LEAST ? share : TEXT_LEAST;
}

/* The columns that are printed, the gaps between them, and the indent; texts as short as they may be, if `is_least`. */
static unsigned fit_sum(const struct grid *grid, const struct grid_fit *fit, unsigned indent, bool is_least)
{
	unsigned sum = indent, least = text_least(grid);
	bool is_first = true;
	for (unsigned i = 0; i < grid->columns; i++) {
		if (fit->is_left_out[i])
			continue;
		sum += is_first ? 0 : GAP;
		sum += is_least && grid->is_text[i] && fit->widths[i] > least ? least : fit->widths[i];
		is_first = false;
	}
	return sum;
}

/* Leave out the column of the highest rank, of these the last one. Return false if none may be. */
static bool fit_leave_out(const struct grid *grid, struct grid_fit *fit)
{
	unsigned worst = grid->columns;
	for (unsigned i = 0; i < grid->columns; i++)
		if (!fit->is_left_out[i] && grid->rank[i] &&
		    (worst == grid->columns || grid->rank[i] >= grid->rank[worst]))
			worst = i;
	if (worst == grid->columns)
		return false;
	fit->is_left_out[worst] = true;
	return true;
}

/* Shorten texts, the widest one first, until the line fits. */
static void fit_shorten(const struct grid *grid, struct grid_fit *fit, unsigned indent)
{
	for (unsigned sum; (sum = fit_sum(grid, fit, indent, false)) > grid->layout.width;) {
		unsigned widest = grid->columns, next = TEXT_LEAST, over = sum - grid->layout.width;
		for (unsigned i = 0; i < grid->columns; i++)
			if (grid->is_text[i] && !fit->is_left_out[i] && fit->widths[i] > TEXT_LEAST &&
			    (widest == grid->columns || fit->widths[i] > fit->widths[widest]))
				widest = i;
		if (widest == grid->columns)
			return;
		for (unsigned i = 0; i < grid->columns; i++)
			if (grid->is_text[i] && !fit->is_left_out[i] && fit->widths[i] < fit->widths[widest] &&
			    fit->widths[i] > next)
				next = fit->widths[i];
		unsigned most = fit->widths[widest] - next > 1 ? fit->widths[widest] - next : 1;
		fit->widths[widest] -= over < most ? over : most;
	}
}

static void grid_fit(const struct grid *grid, struct grid_fit *fit, unsigned indent)
{
	*fit = (struct grid_fit){.whole = 0};
	for (size_t i = 0; i < grid->row_count * grid->columns; i++) {
		unsigned width = cell_width(grid->cells[i]);
		if (width > fit->widths[i % grid->columns])
			fit->widths[i % grid->columns] = width;
	}
	if (!grid->layout.width || grid->layout.has_full_names)
		return;
	fit->whole = fit_sum(grid, fit, indent, true);
	while (fit_sum(grid, fit, indent, true) > grid->layout.width && fit_leave_out(grid, fit))
		;
	fit_shorten(grid, fit, indent);
}

/* ---- printing ---- */

static void print_left_out(const struct grid *grid, const struct grid_fit *fit, struct sink *out, unsigned indent)
{
	unsigned count = 0, whole = (fit->whole + WIDTH_STEP - 1) / WIDTH_STEP * WIDTH_STEP;
	struct sink line;
	sink_to_memory(&line);
	for (unsigned i = 0; i < grid->columns; i++)
		if (fit->is_left_out[i])
			sink_format(&line, "%s%s", count++ ? ", " : "",
				    grid->names[i]   ? grid->names[i]
				    : grid->cells[i] ? grid->cells[i]
						     : "");
	char *names = sink_take(&line, NULL);
	sink_to_memory(&line);
	sink_format(&line, "%*scolumns left out: %s", (int)indent, "", names);
	if (whole <= TEXT_WIDTH_MAX)
		sink_format(&line, grid->is_of_terminal ? "; %u columns show them" : "; -width %u shows them", whole);
	free(names);
	char *text = sink_take(&line, NULL);
	if (count)
		text_wrap(out, text, &grid->layout);
	free(text);
}

/* The end of the word if it is a number, such as 4711, 0x7f12, #3 or 12.5); else the word's beginning. */
static const char *number_end(const char *word)
{
	const char *at = word + strspn(word, "#([");
	return *at >= '0' && *at <= '9' ? at + strcspn(at, " ") : word;
}

/* The longest part of a text that has no number as a word: [*from, *to). */
static void find_words(const char *text, const char **from, const char **to)
{
	const char *begin = text;
	*from = *to = text;
	for (const char *at = text;;) {
		const char *end = *at ? number_end(at) : at;
		if (!*at || end > at) {
			if (at - begin > *to - *from) {
				*from = begin;
				*to = at;
			}
			begin = end;
		}
		if (!*at)
			return;
		at = end + strcspn(end, " ");
		at += strspn(at, " ");
	}
}

/* Cut a text that has numbers beside names: an id stays whole. */
static const char *fit_words(const struct grid *grid, struct arena *arena, const char *text, unsigned width)
{
	enum { LEAST = 4 };
	const char *from, *to;
	unsigned all = text_width(text);
	find_words(text, &from, &to);
	char *words = arena_format(arena, "%.*s", (int)(to - from), from);
	unsigned rest = all - text_width(words);
	if (all <= width || rest + LEAST > width)
		return text_fit(arena, text, width, grid->layout.has_unicode);
	return arena_format(arena, "%.*s%s%s", (int)(from - text), text,
			    text_fit(arena, words, width - rest, grid->layout.has_unicode), to);
}

/* Blanks at the beginning of a cell stay: they show how deep it is in a tree. */
static const char *fit_cell(const struct grid *grid, struct arena *arena, const char *text, unsigned width)
{
	unsigned blanks = (unsigned)strspn(text, " ");
	if (text_width(text) <= width || blanks >= width)
		return text_fit(arena, text, width, grid->layout.has_unicode);
	return arena_format(arena, "%*s%s", (int)blanks, "", fit_words(grid, arena, text + blanks, width - blanks));
}

static void print_row(const struct grid *grid, const char *const *cells, const struct grid_fit *fit, struct sink *out,
		      unsigned indent)
{
	struct arena arena = {0};
	int pending = (int)indent;
	for (unsigned i = 0; i < grid->columns; i++) {
		if (fit->is_left_out[i])
			continue;
		bool may_be_cut = cells[i] && grid->is_text[i] && fit->whole;
		const char *text = may_be_cut ? fit_cell(grid, &arena, cells[i], fit->widths[i]) : cells[i];
		int fill = (int)fit->widths[i] - (int)cell_width(text);
		if (grid->is_right[i])
			pending += fill;
		if (text && *text) {
			sink_format(out, "%*s%s%s%s", pending, "", style_begin(grid->is_colored, grid->styles[i]), text,
				    style_end(grid->is_colored, grid->styles[i]));
			pending = 0;
		}
		pending += (grid->is_right[i] ? 0 : fill) + GAP;
	}
	sink_put(out, '\n');
	arena_fini(&arena);
}

void grid_print(const struct grid *grid, struct sink *out, unsigned indent)
{
	struct grid_fit fit;
	grid_fit(grid, &fit, indent);
	print_left_out(grid, &fit, out, indent);
	for (size_t row = 0; row < grid->row_count; row++) {
		print_row(grid, &grid->cells[row * grid->columns], &fit, out, indent);
		if (grid->details[row])
			sink_text(out, grid->details[row]);
	}
}

void grid_fini(struct grid *grid)
{
	free(grid->cells);
	free(grid->details);
	arena_fini(&grid->arena);
	*grid = (struct grid){0};
}

void csv_field(struct sink *out, const char *text)
{
	/* A spreadsheet would take it as a formula. */
	bool is_formula = *text && strchr("=+-@\t\r", *text);
	text = text_shown(text);
	if (!text[strcspn(text, ",\"")]) {
		sink_text(out, is_formula ? "'" : "");
		sink_text(out, text);
		return;
	}
	sink_text(out, is_formula ? "\"'" : "\"");
	for (; *text; text++) {
		if (*text == '"')
			sink_put(out, '"');
		sink_put(out, *text);
	}
	sink_put(out, '"');
}
