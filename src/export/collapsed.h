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

#include "export/report.h"

/** Name the stacks of all sources: all files are known then that names are read from. */
void collapsed_name(struct action_input *input);

/**
 * Write the lines of the number that sorts the report's first part, with short names of functions, or with images and
 * whole names if the input's layout has them; in the order of their frames from outside in. Stacks without the number
 * have no line. The numbers of all lines add up to those of the totals, of runs to their mean. A split of the window is
 * the outermost frame. Frames have no ';', no line feed, and no space before a number at their end, which readers take
 * for a number of the line.
 */
void report_collapsed(const struct report *report, struct sink *out);

#endif
