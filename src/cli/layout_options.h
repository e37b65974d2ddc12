/* SPDX-License-Identifier: MIT */
/** The options that lay texts out, the same for every command: -width, -fullNames, -allFrames. */
#ifndef XHEAP_CLI_LAYOUT_OPTIONS_H
#define XHEAP_CLI_LAYOUT_OPTIONS_H

#include <stdio.h>

#include "base/option.h"
#include "base/text_width.h"

/** Where the options store their values. Zero it. */
struct layout_options {
	uint32_t width; /**< 0: not given */
	bool has_full_names, has_all_frames;
};

/** -width, -fullNames and -allFrames, which store in a struct layout_options; those without -allFrames, of outputs that
    have no stacks. */
extern const struct option layout_rows[], layout_info_rows[];

/** Return the columns of the terminal that the descriptor is, from TEXT_WIDTH_MIN to TEXT_WIDTH_MAX; 0: it is none. */
unsigned cli_terminal_width(int fd);

/** Return the columns that a line of help may have: those of the terminal, at most TEXT_WIDTH_DEFAULT. */
unsigned cli_help_width(FILE *out);

/** Return the columns that a line of the output may have: `asked` if it is not 0; those of the terminal, unless the
    output goes to a file; those that COLUMNS says; 100. A terminal has TEXT_WIDTH_MIN to TEXT_WIDTH_MAX for us. */
unsigned cli_width(unsigned asked, bool is_file);

/** Return the layout that the options ask for; is_file: the output goes to a file, and not to standard output. */
struct text_layout layout_options_settle(const struct layout_options *options, bool is_file);

#endif
