/* SPDX-License-Identifier: MIT */
/** Rows of cells: aligned columns for people, or CSV by RFC 4180. */
#ifndef XHEAP_BASE_GRID_H
#define XHEAP_BASE_GRID_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/sink.h"
#include "base/style.h"
#include "base/text_width.h"

enum { GRID_COLUMNS_MAX = 32 };

/** A table under construction. Zero it to begin. Without a layout, lines have any width. With one, texts lose their
    middle, and columns are left out if that is not enough; numbers stay whole. */
struct grid {
	struct arena arena;
	const char **cells;   /**< `columns` for each row, NULL: absent */
	const char **details; /**< one for each row: lines printed below it, or NULL */
	size_t row_count, capacity;
	unsigned columns;
	unsigned filled;                     /**< cells of the last row */
	bool is_right[GRID_COLUMNS_MAX];     /**< columns aligned to the right */
	bool is_colored;                     /**< rows are for a terminal */
	enum style styles[GRID_COLUMNS_MAX]; /**< of columns, if is_colored */
	struct text_layout layout;
	bool is_of_terminal;                 /**< the command has no -width: the terminal decides what is left out */
	bool is_text[GRID_COLUMNS_MAX];      /**< the column may be shortened */
	unsigned rank[GRID_COLUMNS_MAX];     /**< columns of the highest rank are left out first; 0: never */
	const char *names[GRID_COLUMNS_MAX]; /**< what to call the column when it is left out; NULL: its title */
};

/** Set the columns' titles; a '>' before a title aligns its column to the right. */
void grid_columns(struct grid *grid, unsigned columns, const char *const *titles);

/** Begin a row. */
void grid_row(struct grid *grid);

/** Add the row's next cell: a copy of the text, made harmless (base/text.h). */
void grid_cell(struct grid *grid, const char *text);

/** Set the lines to print below the row, each with its line feed; copied. */
void grid_detail(struct grid *grid, const char *lines);

/** Print with aligned columns and `indent` spaces before each row. The first line says which columns are left out, if
    any are. */
void grid_print(const struct grid *grid, struct sink *out, unsigned indent);

/** Free the cells. */
void grid_fini(struct grid *grid);

/** Write a text as a CSV field: harmless, quoted where necessary. A text that a spreadsheet would take as a formula
    gets a ' before it. Not for numbers. */
void csv_field(struct sink *out, const char *text);

#endif
