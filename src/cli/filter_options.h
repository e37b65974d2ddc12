/* SPDX-License-Identifier: MIT */
/** The options that say which allocations count, the same for every command: the words of query/filter_words.h. */
#ifndef XHEAP_CLI_FILTER_OPTIONS_H
#define XHEAP_CLI_FILTER_OPTIONS_H

#include "cli/option_parser.h"
#include "query/filter_words.h"

/** A command's context begins with it. */
struct filter_options {
	const char *command; /**< for messages that show the right line */
	struct filter_request asked;
};

/** Begin without any filter. */
void filter_options_init(struct filter_options *options, const char *command);

/** Free what the options hold. */
void filter_options_fini(struct filter_options *options);

/* Rows of a table of options, each with a comma behind it. */
/* clang-format off */
#define FILTER_ROW(id, name) {name, filter_set, FILTER_WORD_##id},
#define FILTER_ROW_ALL(id, name) FILTER_ROW(id, name)
#define FILTER_ROW_REPORT(id, name)
#define FILTER_LISTING_ROW(id, name, values, taker, usage, help) FILTER_ROW_##taker(id, name)
#define FILTER_REPORT_ROW(id, name, values, taker, usage, help) FILTER_ROW(id, name)
/* clang-format on */

/** The rows of commands that list, and of those that make reports. */
#define FILTER_OPTIONS FILTER_WORDS(FILTER_LISTING_ROW) FILTER_OTHER_NAMES(FILTER_ROW)
#define FILTER_REPORT_OPTIONS FILTER_WORDS(FILTER_REPORT_ROW) FILTER_OTHER_NAMES(FILTER_ROW)

/** Take the values of a word; `number` is its enum filter_word_id. Return 0, or CLI_FAILED after a message. */
int filter_set(void *context, struct words *words, int number);

/** Call take with each word of a list, up to the next option or --; at least one. Return 0, or CLI_FAILED
    after a message. */
int filter_take_list(struct filter_options *options, struct words *words, const char *option,
		     int (*take)(void *context, const char *word));

/** Add a frame that was typed. Return 0, or CLI_FAILED after a message. */
int filter_add_pattern(struct heap_patterns *patterns, const char *option, const char *word);

/** Read the range that was asked for; *range stays as it is when there was none. Return 0, or CLI_FAILED after a
    message. */
int filter_range(const struct filter_options *options, const struct trace *trace, struct heap_range *range);

/** Prepare the filter with the trace. Return CLI_OK; CLI_NO when nothing matches what is required, CLI_FAILED; both
    after a message. */
int filter_prepare(struct filter_options *options, const struct heap_table *table, struct heap_names *names);

/** Name the patterns that match no frame of the trace. Return true when none of them does. */
bool filter_report_patterns(const struct heap_patterns *patterns, const char *option, struct heap_names *names);

#endif
