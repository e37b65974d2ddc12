/* SPDX-License-Identifier: MIT */
/** The options of commands that report over allocations: actions, frames, output. heap.c has the functions. */
#ifndef XHEAP_CLI_HEAP_OPTIONS_H
#define XHEAP_CLI_HEAP_OPTIONS_H

#include "cli/ask/filter_options.h"
#include "cli/input.h"
#include "cli/layout_options.h"
#include "export/report.h"
#include "query/window_word.h"

enum { PART_MAX = 16, HEAP_TOP_DEFAULT = 10000 };

struct heap_options {
	struct filter_options filter;
	struct input input;
	struct layout_options layout;
	const char *output;
	struct report_part parts[PART_MAX];
	unsigned part_count;
	bool is_inclusive;
	bool has_keyed_totals; /**< -totals takes a sort key, too */
	uint64_t top;          /**< of heap: HEAP_TOP_DEFAULT without the option */
	int format;
	bool with_lines, without_default_cull, with_default_cull, is_reversed;
	bool is_timed, is_ignored;
	bool has_map; /**< the map of pages in place of actions */
	enum heap_by by;
	struct heap_cull cull;
	const char **cull_lists; /**< files */
	size_t cull_list_count, cull_list_capacity;
	struct heap_patterns callers;
	const char *after_action; /**< the word behind an action, which is no sort key of it; NULL: there was none */
};

/** `take` of options that choose an action, by its number. */
int heap_take_action(void *options, struct words *words, int number);
int heap_take_inclusive(void *options, struct words *words, int number);
int heap_take_callers(void *options, struct words *words, int number);

/** A row whose option chooses an action. */
#define ACTION_OPTION(word, place) .type = VALUE_TAKEN, .take = heap_take_action, .number = (place), .value = (word)

/** The values of -by. */
extern const struct option_choice heap_by_choices[];

/** Options about frames. */
extern const struct option heap_frame_rows[];

/** Refuse options that exclude each other, and fill in what was not asked for. 0, or CLI_FAILED after a message. */
int heap_options_settle(struct heap_options *options);

/** Free all that the options own. */
void heap_options_fini(struct heap_options *options);

/** How sources are compared. */
struct heap_comparison {
	unsigned runs; /**< of side A; the other sources are runs of B */
	enum diff_basis basis;
	double factor; /**< of DIFF_BY_FACTOR */
	/** Return CLI_OK, or another exit status after messages. Called when the report is printed. */
	int (*judge)(void *context, const struct diff *diff);
	void *context;
};

/** Answer the options: print a report over a trace, or one that compares several (comparison; else NULL), to the file
    that was asked for, or to standard output. CLI_OK, or another exit status after messages. */
int heap_show(struct heap_options *options, const struct window_word *words, unsigned count,
	      const struct heap_comparison *comparison);

#endif
