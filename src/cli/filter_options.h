/* SPDX-License-Identifier: MIT */
/** The options that say which allocations count, the same for every command. */
#ifndef XHEAP_CLI_FILTER_OPTIONS_H
#define XHEAP_CLI_FILTER_OPTIONS_H

#include "action/report.h"
#include "cli/option_parser.h"
#include "query/filter.h"

/** Two times as typed: a wall clock's can only be read when the trace is open. */
struct moments {
	const char *words[2];
};

/** A command's context begins with it. */
struct filter_options {
	const char *command; /**< for messages that show the right line */
	struct moments range, window;
	struct heap_filter filter;
	struct report_filter *notes; /**< the options as typed, for the report */
	size_t note_count, note_capacity;
};

void filter_options_init(struct filter_options *options, const char *command);
void filter_options_fini(struct filter_options *options);

/** Rows of a table of options. */
#define FILTER_OPTIONS \
	{"range", filter_set_range, 0}, {"window", filter_set_window, 0}, {"size", filter_set_size, 0}, \
		{"lifetime", filter_set_lifetime, 0}, {"closed", filter_set_closed, 0}, \
		{"requireFrames", filter_set_frames, 0}, {"requireFreeFrames", filter_set_frames, 1}, \
		{"pids", filter_set_numbers, 0}, {"pid", filter_set_numbers, 0}, {"threads", filter_set_numbers, 1}, \
		{"thread", filter_set_numbers, 1}, \
	{ \
		"heap", filter_set_heap, 0 \
	}

int filter_set_range(void *context, struct words *words, int number);
int filter_set_window(void *context, struct words *words, int number);
int filter_set_size(void *context, struct words *words, int number);
int filter_set_lifetime(void *context, struct words *words, int number);
int filter_set_closed(void *context, struct words *words, int number);
int filter_set_frames(void *context, struct words *words, int number);
int filter_set_numbers(void *context, struct words *words, int number);
int filter_set_heap(void *context, struct words *words, int number);
/** a report's only: listings have all blocks */
int filter_set_innermost(void *context, struct words *words, int number);

/** Call take with each word of a list, which goes on to the next option or --; at least one. 0, or CLI_FAILED after a
    message. */
int filter_take_list(struct filter_options *options, struct words *words, const char *option,
		     int (*take)(void *context, const char *word));

/** Add a frame that was typed. 0, or CLI_FAILED after a message. */
int filter_add_pattern(struct heap_patterns *patterns, const char *option, const char *word);

/** The range that was asked for; *range stays as it is when there was none. 0, or CLI_FAILED after a message. */
int filter_range(const struct filter_options *options, const struct trace *trace, struct heap_range *range);

/** Prepare the filter with the trace. CLI_OK; CLI_NO when nothing matches what is required, CLI_FAILED; both after a
    message. */
int filter_prepare(struct filter_options *options, const struct heap_table *table, struct heap_names *names);

/** Tell of patterns that match no frame of the trace. True when none of them does. */
bool filter_report_patterns(const struct heap_patterns *patterns, const char *option, struct heap_names *names);

#endif
