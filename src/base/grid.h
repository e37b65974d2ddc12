/* SPDX-License-Identifier: MIT */
/** Rows of cells: aligned columns for people, or CSV as RFC 4180 has it. */
#ifndef XHEAP_BASE_GRID_H
#define XHEAP_BASE_GRID_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/sink.h"
#include "base/style.h"

/** Zero it to begin. */
struct grid {
	struct arena arena;
	const char **cells;   /**< `columns` for each row, NULL where absent */
	const char **details; /**< one for each row: lines that follow it, or NULL */
	size_t row_count, capacity;
	unsigned columns;
	unsigned filled;       /**< cells of the last row */
	bool is_right[32];     /**< columns aligned to the right */
	bool is_colored;       /**< rows are for a terminal */
	enum style styles[32]; /**< of columns, where it is */
};

/** Begin with the columns' titles; a '>' before one aligns its column to the right. */
void grid_columns(struct grid *grid, unsigned columns, const char *const *titles);

/** Begin a row. */
void grid_row(struct grid *grid);

/** Add the row's next cell; the text is copied and made harmless (base/text.h). */
void grid_cell(struct grid *grid, const char *text);

/** Set lines to print beneath the row, each with its line feed; copied. */
void grid_detail(struct grid *grid, const char *lines);

/** Print with aligned columns, `indent` spaces before each row. */
void grid_print(const struct grid *grid, struct sink *out, unsigned indent);

/** Free the rows. */
void grid_fini(struct grid *grid);

/** Write a text, not a number, as a CSV field: harmless, quoted if it must be, and with a ' before a text that a
    spreadsheet would take as a formula. */
void csv_field(struct sink *out, const char *text);

#endif
