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

#endif
