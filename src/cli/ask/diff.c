/* SPDX-License-Identifier: MIT */
/* xheap diff: what changed between two traces, two windows of one, or several runs of each. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "action/actions/action_table.h"
#include "action/actions/stacks.h"
#include "action/diff/diff.h"
#include "action/diff/diff_words.h"
#include "action/report/stack_view.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/heap_options.h"
#include "cli/cli.h"
#include "cli/formats.h"

/* ---- how much the numbers may grow ---- */

/* What --fail-above and --fail-frames ask for. Zero it. */
struct diff_limits {
	const char *word; /* as typed; NULL: there is no limit */
	struct diff_limit limit;
	struct heap_patterns frames; /* whose stacks have the limit, too */
};

static void say_growth(const struct diff_limits *limits, const struct action_sort *sort, const char *what,
		       const struct diff_change *change)
{
	const enum action_number number = action_sort_number(sort);
	cli_say("%s%s%s grew from %s to %s (%s), by more than %s", what ? what : "", what ? ": " : "", sort->title,
		diff_text_amount(number, change->sides[DIFF_A].mean).data,
		diff_text_amount(number, change->sides[DIFF_B].mean).data,
		*diff_text_percent(change).data ? diff_text_percent(change).data : "new", limits->word);
}

static int compare_ranks(const void *a, const void *b)
{
	const struct action_row *one = *(const struct action_row *const *)a,
				*other = *(const struct action_row *const *)b;
	return one->rank != other->rank ? (one->rank > other->rank ? -1 : 1) : 0;
}

/* Keep the rows of stacks that have one of the limited frames and grew by too much; return how many. */
static size_t keep_grown(struct diff_limits *limits, const struct diff *diff, const struct action_sort *sort,
			 struct action_rows *rows)
{
	size_t kept = 0;
	for (size_t i = 0; i < rows->count; i++) {
		struct action_row *row = rows->rows[i];
		const struct diff_change change = diff_of_row(diff, row, action_sort_number(sort));
		if (action_stack_matches(diff->input, row->group, &limits->frames) &&
		    diff_is_above(&change, &limits->limit))
			rows->rows[kept++] = row;
	}
	if (kept)
		qsort(rows->rows, kept, sizeof(*rows->rows), compare_ranks);
	return kept;
}

/* Return how many stacks with one of the limited frames grew by too much, after a message about each of the first. */
static size_t judge_stacks(struct diff_limits *limits, const struct diff *diff, const struct action_sort *sort)
{
	enum { SAID_MAX = 10 };
	struct action_rows stacks;
	struct diff_counts counts;
	diff_rows_make(&stacks, &counts, diff, &action_stacks, sort, 0);
	heap_patterns_settle(&limits->frames, action_names(diff->input));
	const size_t grown = keep_grown(limits, diff, sort, &stacks);
	for (size_t i = 0; i < grown && i < SAID_MAX; i++) {
		const struct action_row *row = stacks.rows[i];
		const struct diff_change change = diff_of_row(diff, row, action_sort_number(sort));
		uint32_t node = stack_view_user_node(diff->input, row->group);
		const struct heap_names *names = action_names(diff->input);
		char *label = action_label(diff->input, heap_names_name(names, heap_names_frame(names, node)->name));
		say_growth(limits, sort, label, &change);
		free(label);
	}
	if (grown > SAID_MAX)
		cli_say("and %zu more stacks", grown - SAID_MAX);
	action_rows_fini(&stacks);
	return grown;
}

/* Return CLI_NO after messages if the total of the sort's number, or a stack that is limited, too, grew by too much;
   else CLI_OK. */
static int diff_limits_judge(struct diff_limits *limits, const struct diff *diff, const struct action_sort *sort)
{
	if (!limits->word)
		return CLI_OK;
	const struct diff_change change = diff_of_totals(diff, action_sort_number(sort));
	bool is_above = diff_is_above(&change, &limits->limit);
	if (is_above)
		say_growth(limits, sort, NULL, &change);
	if (limits->frames.count) {
		is_above |= judge_stacks(limits, diff, sort) > 0;
		asking_check_patterns(&limits->frames, "-fail-frames", action_names(diff->input));
	}
	return is_above ? CLI_NO : CLI_OK;
}

enum { TOP_TEXT = 25 };

struct diff_options {
	struct heap_options heap;
	struct window_word *words; /* A's, then B's */
	size_t word_count, word_capacity;
	size_t separated; /* words before the "--" between the sides; 0: there was none */
	bool has_top;
	enum diff_basis basis;
	double factor;
	struct diff_limits limits;
};

/* ---- the command line ---- */

/* A "--" before the first FILE ends a list; behind it, it ends side A. */
static int take_operand(void *context, char *word)
{
	struct diff_options *options = context;
	struct diag diag = {""};
	if (!strcmp(word, "--")) {
		if (options->separated)
			return cli_fail("a second -- behind FILEs: there are two sides, A -- B");
		options->separated = options->word_count;
		return 0;
	}
	memory_grow(options->words, options->word_count, options->word_capacity);
	if (window_word_parse(&options->words[options->word_count], word, &diag))
		return cli_fail("%s: %s", word, diag.text);
	options->word_count++;
	return 0;
}

static int take_top(void *context, const char *word, struct diag *why)
{
	struct diff_options *options = context;
	options->has_top = true;
	return text_parse_count(word, &options->heap.top) ? 0 : diag_fail(why, EINVAL, "not a number");
}

static int take_basis(void *context, const char *word, struct diag *why)
{
	struct diff_options *options = context;
	char *end;
	options->factor = strtod(word, &end);
	options->basis = !strcmp(word, "time") ? DIFF_BY_TIME : !strcmp(word, "count") ? DIFF_BY_COUNT : DIFF_BY_FACTOR;
	bool is_factor = *word && !*end && isfinite(options->factor) && options->factor > 0;
	return options->basis != DIFF_BY_FACTOR || is_factor
		       ? 0
		       : diag_fail(why, EINVAL, "neither time, count, nor a factor above 0");
}

static int take_limit(void *context, const char *word, struct diag *why)
{
	struct diff_options *options = context;
	options->limits.word = word;
	return diff_limit_parse(&options->limits.limit, word, why);
}

static int take_limited_frame(void *context, const char *word)
{
	struct filter_options *filter = context;
	struct diff_options *options = (struct diff_options *)((char *)filter - offsetof(struct heap_options, filter));
	return filter_add_pattern(&options->limits.frames, "fail-frames", word);
}

static int take_limited(void *context, struct words *words, int number)
{
	(void)number;
	struct diff_options *options = context;
	struct filter_request *asked = &options->heap.filter.asked;
	int status = filter_take_list(&options->heap.filter, words, "fail-frames", take_limited_frame);
	/* It is no filter for the report to repeat. */
	if (!status)
		free(asked->notes[--asked->note_count].text);
	return status;
}

static const struct option action_rows[] = {
	{.type = VALUE_TITLE, .help = "Actions, several at once; KEY is the number whose change sorts the rows:"},
	{"stacks", ACTION_OPTION("[KEY]", ACTION_STACKS), .help = "one row for each distinct stack (the default)"},
	{"frames", ACTION_OPTION("[KEY]", ACTION_FRAMES), .help = "one row for each function that asked for memory"},
	{"inclusive", .type = VALUE_TAKEN, .take = heap_take_inclusive, .number = ACTION_FRAMES,
	 .help = "with -frames: one row for each function anywhere on the stacks"},
	{"image", .others = "images", ACTION_OPTION("[KEY]", ACTION_IMAGE),
	 .help = "one row for each executable or library of these functions"},
	{"tree", ACTION_OPTION("[KEY]", ACTION_TREE), .help = "callers and callees, from the starts of the threads"},
	{"callers", .type = VALUE_TAKEN, .take = heap_take_callers, .number = ACTION_CALLERS, .value = "FUNCTION [KEY]",
	 .help = "the callers of a function, and their callers"},
	{"totals", ACTION_OPTION("[KEY]", ACTION_TOTALS), .help = "only the totals"},
	{"by", .type = VALUE_CHOICE, OPTION_AT(struct diff_options, heap.by), .value = "WHAT",
	 .choices = heap_by_choices, .help = "split rows by"},
	{"top", .type = VALUE_PARSED, .parse = take_top, .value = "N",
	 .help = "the first N rows of each action (default 25 in text, else 10000)"},
	{.type = VALUE_TITLE, .help = "Comparison:"},
	{"normalise", .others = "normalize", .type = VALUE_PARSED, .parse = take_basis, .value = "BASIS",
	 .help = "make the sides comparable: time (all runs as long as A's), count (as many allocations), or a "
		 "factor for B's numbers"},
	{"fail-above", .others = "failAbove", .type = VALUE_PARSED, .parse = take_limit, .value = "LIMIT",
	 .help = "exit with status 1 if the total of the first action's KEY grows by more than LIMIT: 5%, 100 or 64K"},
	{"fail-frames", .others = "failFrames", .type = VALUE_TAKEN, .take = take_limited, .value = "F...",
	 .help = "with -fail-above: also if a stack with one of these frames does"},
	{.type = VALUE_TITLE, .help = "Filters, for both sides; an allocation passes all of them:"},
	{.type = VALUE_END},
};

static const struct option output_rows[] = {
	FORMAT_OPTION(struct diff_options, heap.format, report_formats),
	{"reverse", .type = VALUE_ON, OPTION_AT(struct diff_options, heap.is_reversed),
	 .help = "with -format folded: the innermost frame first"},
	{"o", .type = VALUE_TEXT, OPTION_AT(struct diff_options, heap.output), .value = "FILE",
	 .help = "write the report to FILE"},
	{.type = VALUE_END},
};

static const struct option_group groups[] = {
	{action_rows, 0, false},
	{filter_range_rows, offsetof(struct diff_options, heap.filter), false},
	{filter_rows, offsetof(struct diff_options, heap.filter), false},
	{filter_report_rows, offsetof(struct diff_options, heap.filter), false},
	{heap_frame_rows, offsetof(struct diff_options, heap), false},
	{output_rows, 0, false},
	{layout_rows, offsetof(struct diff_options, heap.layout), false},
	{analysis_rows, 0, false},
	{NULL, 0, false},
};
static const struct option_grammar grammar = {
	.command = "diff", .groups = groups, .dashes = "-", .takes_separator = true, .print_notes = formats_print_keys};

static int sides_settle(struct diff_options *options)
{
	if (options->word_count < 2)
		return cli_fail("diff: two FILEs are needed, or two windows or moments of one: "
				"xheap diff A B, xheap diff A@T1..T2 A@T3..T4, xheap diff A@=T1 A@=T2");
	if (options->separated == options->word_count)
		return cli_fail("diff: a FILE is missing behind --");
	if (!options->separated && options->word_count > 2)
		return cli_fail("diff: %zu FILEs: write -- between the runs of A and those of B: "
				"xheap diff A1 A2 -- B1 B2",
				options->word_count);
	if (!options->separated)
		options->separated = 1;
	return 0;
}

static int options_settle(struct diff_options *options)
{
	struct heap_options *heap = &options->heap;
	if (sides_settle(options) || heap_options_settle(heap))
		return CLI_FAILED;
	if (!options->has_top)
		heap->top = heap->format == REPORT_TEXT ? TOP_TEXT : HEAP_TOP_DEFAULT;
	if (!heap->top)
		return cli_fail("-top 0: no row would be shown; -totals shows only the totals");
	if (options->limits.frames.count && !options->limits.word)
		return cli_fail("-fail-frames: the limit is missing: -fail-above LIMIT");
	for (size_t i = 0; i < options->word_count; i++)
		if (window_word_is_part(&options->words[i]) && heap->filter.asked.range.words[0])
			return cli_fail("-range and a %s of %s exclude each other",
					options->words[i].moment ? "moment" : "window", options->words[i].path);
	return 0;
}

/* ---- all of it ---- */

static int judge(void *context, const struct diff *diff)
{
	struct diff_options *options = context;
	return diff_limits_judge(&options->limits, diff, options->heap.parts[0].sort);
}

static int options_show(struct diff_options *options)
{
	const struct heap_comparison comparison = {.runs = (unsigned)options->separated,
						   .basis = options->basis,
						   .factor = options->factor,
						   .judge = judge,
						   .context = options};
	return heap_show(&options->heap, options->words, (unsigned)options->word_count, &comparison);
}

static int diff_run(int argc, char **argv)
{
	struct diff_options options = {
		.heap = {.format = REPORT_TEXT, .top = HEAP_TOP_DEFAULT, .has_keyed_totals = true}, .factor = 1};
	filter_options_init(&options.heap.filter, "diff");
	int status = CLI_FAILED;
	if (!options_parse(&grammar, argc, argv, &options, take_operand, NULL) && !options_settle(&options))
		status = options_show(&options);
	heap_options_fini(&options.heap);
	heap_patterns_fini(&options.limits.frames);
	for (size_t i = 0; i < options.word_count; i++)
		window_word_fini(&options.words[i]);
	free(options.words);
	return status;
}

const struct command command_diff = {
	.name = "diff",
	.usage = "A B [ACTION...] [FILTER...], or A... -- B...",
	.summary = "show what changed between two traces, windows or sets of runs",
	.run = diff_run,
	.options = &grammar,
	.help = "A and B: a FILE, or FILE@T1..T2 for the time from T1 to T2, with the times of -range; T1 or T2 may "
		"be\n"
		"left out. FILE@=T stands for the blocks that were live at T, as heap -at T has them. Several runs of "
		"each side stand around a --: each number then is the mean of the runs.\n"
		"Exit status: 0, or 1 if a number grew by more than -fail-above, 2 for an error.\n\n"
		"Examples:\n  xheap diff before.xht after.xht -frames so\n"
		"  xheap diff server.xht@0..60s server.xht@60s..120s\n"
		"  xheap diff server.xht@=60s server.xht@=120s -frames\n"
		"  xheap diff old1.xht old2.xht -- new1.xht new2.xht -frames st -fail-above 5%\n",
};
