/* SPDX-License-Identifier: MIT */
/** The options that choose which allocations count, the same for every command: the words of
    query/filter_words.h. */
#ifndef XHEAP_CLI_FILTER_OPTIONS_H
#define XHEAP_CLI_FILTER_OPTIONS_H

#include "cli/option_parser.h"
#include "query/filter_words.h"

/** Where the options store their values. */
struct filter_options {
	const char *command; /**< for messages that show the right line */
	struct filter_request asked;
};

/** Begin without any filter. `command` is for messages. */
void filter_options_init(struct filter_options *options, const char *command);

/** Free the filters. */
void filter_options_fini(struct filter_options *options);

/** The options, which store in a struct filter_options: the time, the moment of commands that read one trace, the
    others, and one that only reports have, since listings have all blocks. */
extern const struct option filter_range_rows[], filter_moment_rows[], filter_rows[], filter_report_rows[];

/** The groups of a command that reads one trace and whose struct has its filters at `offset`. */
#define FILTER_OPTION_GROUPS(offset) \
	{filter_range_rows, offset, false}, {filter_moment_rows, offset, false}, {filter_rows, offset, false}, \
	{ \
		filter_report_rows, offset, false \
	}

/** Call `take` with each word of a list, which ends at the next option or --, and has one word at least. 0, or
    CLI_FAILED after a message. */
int filter_take_list(struct filter_options *options, struct words *words, const char *option,
		     int (*take)(void *context, const char *word));

/** Add a frame that was typed. 0, or CLI_FAILED after a message. */
int filter_add_pattern(struct heap_patterns *patterns, const char *option, const char *word);

#endif
