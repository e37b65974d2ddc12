/* SPDX-License-Identifier: MIT */
/**
 * Collapsed stacks, which flame graphs are made from: a line for each stack, its frames with ';' between them, a space,
 * and a number.
 *
 *     main;parse;malloc 4096          of one source
 *     main;parse;malloc 4096 8192     of two sides: one's number, then the other's
 */
#ifndef XHEAP_EXPORT_COLLAPSED_H
#define XHEAP_EXPORT_COLLAPSED_H

#include "action/report/report_rows.h"

enum { COLLAPSED_COLUMNS = 2 };

/** What a source adds to: a column, by a factor. */
struct collapsed_side {
	unsigned column;
	long double factor;
};

struct collapsed_choice {
	enum action_number number;
	bool is_reversed; /**< the innermost frame first; else the outermost one */
	unsigned columns;
	const struct collapsed_side *sides; /**< one for each source */
};

/** Name the stacks of all sources: all files are known then that names are read from. */
void collapsed_name(struct action_input *input);

/**
 * Write the lines, with short names of functions, or with images and whole names if the input's layout has them; in the
 * order of their frames from outside in. Stacks without the number have no line. The numbers of
 * all lines add up to those of the totals. A split of the window is the outermost frame. Frames have no ';', no line
 * feed, and no space before a number at their end, which readers take for a number of the line.
 */
void collapsed_write(struct action_input *input, const struct collapsed_choice *choice, struct sink *out);

#endif
