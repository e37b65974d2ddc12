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
	assert(columns <= sizeof(grid->is_right) / sizeof(*grid->is_right));
	grid->columns = columns;
	grid_row(grid);
	for (unsigned i = 0; i < columns; i++) {
		grid->is_right[i] = *titles[i] == '>';
		grid_cell(grid, titles[i] + grid->is_right[i]);
	}
}

/* Return the characters of a UTF-8 text, approximately its width. */
static int grid_width(const char *text)
{
	int width = 0;
	for (; text && *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

static void grid_print_row(const struct grid *grid, const char *const *cells, const int *widths, struct sink *out,
			   unsigned indent)
{
	int pending = (int)indent;
	for (unsigned i = 0; i < grid->columns; i++) {
		int fill = widths[i] - grid_width(cells[i]);
		if (grid->is_right[i])
			pending += fill;
		if (cells[i] && *cells[i]) {
			sink_format(out, "%*s%s%s%s", pending, "", style_begin(grid->is_colored, grid->styles[i]),
				    cells[i], style_end(grid->is_colored, grid->styles[i]));
			pending = 0;
		}
		pending += (grid->is_right[i] ? 0 : fill) + 2;
	}
	sink_put(out, '\n');
}

void grid_print(const struct grid *grid, struct sink *out, unsigned indent)
{
	int widths[sizeof(grid->is_right) / sizeof(*grid->is_right)] = {0};
	for (size_t i = 0; i < grid->row_count * grid->columns; i++) {
		int width = grid_width(grid->cells[i]);
		if (width > widths[i % grid->columns])
			widths[i % grid->columns] = width;
	}
	for (size_t row = 0; row < grid->row_count; row++) {
		grid_print_row(grid, &grid->cells[row * grid->columns], widths, out, indent);
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
		sink_format(out, "%s%s", is_formula ? "'" : "", text);
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
