/* SPDX-License-Identifier: MIT */
/* xheap diff: what changed between two traces, two windows of one, or several runs of each. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "action/actions/action_table.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/ask/analysis.h"
#include "cli/ask/diff_limits.h"
#include "cli/ask/heap_options.h"
#include "cli/formats.h"
#include "export/collapsed.h"
#include "export/report.h"
#include "query/window_word.h"

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

/* clang-format off */
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
/* clang-format on */

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
		return cli_fail("diff: two FILEs are needed, or two windows of one: xheap diff A B, "
				"xheap diff A@T1..T2 A@T3..T4");
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
	if (heap->format != REPORT_TEXT)
		analysis_be_silent();
	if (!heap->top)
		return cli_fail("-top 0: no row would be shown; -totals shows only the totals");
	if (options->limits.frames.count && !options->limits.word)
		return cli_fail("-fail-frames: the limit is missing: -fail-above LIMIT");
	for (size_t i = 0; i < options->word_count; i++)
		if (window_word_is_part(&options->words[i]) && heap->filter.asked.range.words[0])
			return cli_fail("-range and a window of %s exclude each other", options->words[i].path);
	return 0;
}

/* ---- the sources ---- */

/* A trace that one or several sources are of. */
struct diff_trace {
	struct analysis analysis;
	struct stat status;
};

/* A source, with what belongs to it alone. */
struct diff_source {
	unsigned trace;
	struct heap_filter filter;
	struct heap_window window;
};

struct diff_input {
	struct diff_options *options;
	struct diff_trace *traces;
	struct diff_source *own;
	unsigned trace_count;
	struct action_source *sources;
	unsigned source_count;
};

/* One trace for all words that name it. */
static int trace_of(struct diff_input *comparing, const char *path, unsigned *number)
{
	struct stat status;
	if (stat(path, &status))
		return cli_fail("cannot open %s: %s", path, strerror(errno));
	for (*number = 0; *number < comparing->trace_count; ++*number) {
		const struct stat *known = &comparing->traces[*number].status;
		if (known->st_dev == status.st_dev && known->st_ino == status.st_ino)
			return CLI_OK;
	}
	struct diff_trace *trace = &comparing->traces[*number];
	int opened = *number ? analysis_open_beside(&trace->analysis, path, &comparing->traces[0].analysis)
			     : analysis_open(&trace->analysis, path, comparing->options->heap.with_lines);
	if (opened != CLI_OK)
		return CLI_FAILED;
	trace->status = status;
	comparing->trace_count++;
	return CLI_OK;
}

static int sources_open(struct diff_input *comparing)
{
	const struct heap_options *heap = &comparing->options->heap;
	/* Before the first trace is read, which may get an index. */
	for (size_t i = 0; i < comparing->options->word_count && heap->output; i++)
		if (heap_options_check_output(heap, comparing->options->words[i].path))
			return CLI_FAILED;
	for (size_t i = 0; i < comparing->options->word_count; i++) {
		struct diff_source *own = &comparing->own[i];
		if (trace_of(comparing, comparing->options->words[i].path, &own->trace) != CLI_OK)
			return CLI_FAILED;
		comparing->sources[i] = analysis_source(&comparing->traces[own->trace].analysis, &own->filter);
		comparing->sources[i].path = comparing->options->words[i].path;
		comparing->sources[i].window = &own->window;
	}
	return CLI_OK;
}

static void sources_close(struct diff_input *comparing)
{
	while (comparing->trace_count > 0)
		analysis_close(&comparing->traces[--comparing->trace_count].analysis);
	free(comparing->traces);
	free(comparing->sources);
	free(comparing->own);
}

/* The range of a source, and the filter that all share, prepared with its table. */
static int source_prepare(struct diff_input *comparing, unsigned i)
{
	struct diff_options *options = comparing->options;
	struct filter_options *filter = &options->heap.filter;
	struct action_source *source = &comparing->sources[i];
	struct heap_range range = {0, source->table->duration_ns};
	const int64_t start_ns = trace_dictionary(source->trace)->start_realtime_ns;
	struct diag diag = {""};
	if (filter_range(filter, source->trace, &range))
		return CLI_FAILED;
	if (window_word_resolve(&options->words[i], start_ns, &range, &diag) ||
	    filter_word_resolve(&filter->asked, &filter_words[FILTER_WORD_WINDOW], start_ns,
				&filter->asked.filter.window, &diag))
		return cli_fail("%s: %s", source->path, diag.text);
	filter->asked.filter.is_partial = filter->asked.range.words[0] || window_word_is_part(&options->words[i]) ||
					  (options->heap.by != HEAP_BY_NONE && options->heap.by != HEAP_BY_PROCESS);
	if (heap_filter_prepare_shared(&comparing->own[i].filter, &filter->asked.filter, source->table, source->names,
				       &diag))
		return cli_fail("%s: %s", source->path, diag.text);
	if (heap_options_check_sample(&options->heap, source))
		return CLI_FAILED;
	struct report_part parts[PART_MAX];
	for (unsigned k = 0; k < options->heap.part_count; k++)
		parts[k] = (struct report_part){.action = options->heap.parts[k].action,
						.sort = options->heap.parts[k].sort};
	if (report_check(parts, options->heap.part_count, source->table, source->filter, range, options->heap.by,
			 &diag))
		return cli_fail("%s: %s", source->path, diag.text);
	heap_window_make(&comparing->own[i].window, source->table, source->filter, range, options->heap.by, false);
	return CLI_OK;
}

/* Patterns are settled by the names of all sources, so that they mean the same on both sides. */
static void sources_name(struct diff_input *comparing)
{
	const struct heap_filter *filter = &comparing->options->heap.filter.asked.filter;
	if (!filter->required.count && !filter->required_of_free.count)
		return;
	for (unsigned i = 0; i < comparing->source_count; i++)
		heap_names_name_sites(comparing->sources[i].names, comparing->sources[i].table);
}

static int sources_prepare(struct diff_input *comparing)
{
	struct filter_options *filter = &comparing->options->heap.filter;
	struct heap_names *names = comparing->sources[0].names;
	int status = CLI_OK;
	sources_name(comparing);
	for (unsigned i = 0; i < comparing->source_count && status == CLI_OK; i++)
		status = source_prepare(comparing, i);
	if (status != CLI_OK)
		return status;
	bool is_missing = filter_report_patterns(&filter->asked.filter.required, "requireFrames", names);
	is_missing |= filter_report_patterns(&filter->asked.filter.required_of_free, "requireFreeFrames", names);
	return is_missing ? CLI_NO : CLI_OK;
}

static void sources_end(struct diff_input *comparing)
{
	for (unsigned i = 0; i < comparing->source_count; i++) {
		heap_window_fini(&comparing->own[i].window);
		heap_filter_fini_shared(&comparing->own[i].filter);
		memset(&comparing->own[i].filter, 0, sizeof(comparing->own[i].filter));
	}
}

/* ---- all of it ---- */

struct diff_printing {
	struct report *report;
	enum report_format format;
};

static void print(void *context, struct sink *out, bool is_colored)
{
	struct diff_printing *printing = context;
	printing->report->diff.input->is_colored = is_colored;
	report_write(printing->report, printing->format, out);
}

static int report_print(struct diff_input *comparing, struct report *report)
{
	const struct heap_options *heap = &comparing->options->heap;
	const struct symbols **symbols = memory_zeroed(comparing->trace_count, sizeof(*symbols));
	struct diff_printing printing = {report, (enum report_format)heap->format};
	for (unsigned i = 0; i < comparing->trace_count; i++)
		symbols[i] = comparing->traces[i].analysis.symbols;
	int status = heap_print(heap, symbols, comparing->trace_count, print, &printing);
	free(symbols);
	return status;
}

/* Return the trace whose index is damaged, or trace_count. */
static unsigned damaged_trace(const struct diff_input *comparing)
{
	unsigned i = 0;
	while (i < comparing->trace_count && analysis_is_good(comparing->traces[i].analysis.table))
		i++;
	return i;
}

/* Folded stacks need no rows. */
static void rows_make(const struct diff_options *options, struct report *report)
{
	if (options->heap.format == REPORT_FOLDED)
		collapsed_name(report->diff.input);
	else
		report_make(report, options->heap.top);
}

static int report_show(struct diff_input *comparing, struct action_input *input)
{
	struct diff_options *options = comparing->options;
	struct report_part parts[PART_MAX] = {0};
	long double *scales = memory_zeroed(comparing->source_count, sizeof(*scales));
	struct diag diag = {""};
	struct report report = {.diff = {.input = input,
					 .runs = {(unsigned)options->separated,
						  comparing->source_count - (unsigned)options->separated}},
				.parts = parts,
				.part_count = options->heap.part_count,
				.filters = options->heap.filter.asked.notes,
				.filter_count = options->heap.filter.asked.note_count,
				.basis = options->basis,
				.is_reversed = options->heap.is_reversed};
	for (unsigned i = 0; i < report.part_count; i++)
		parts[i] = (struct report_part){.action = options->heap.parts[i].action,
						.sort = options->heap.parts[i].sort};
	int status = diff_scales(scales, &report.diff, options->basis, options->factor, &diag)
			     ? cli_fail("-normalise: %s", diag.text)
			     : CLI_OK;
	if (status == CLI_OK && options->basis != DIFF_AS_IS)
		report.diff.scales = scales;
	if (status == CLI_OK)
		rows_make(options, &report);
	/* Nothing is shown of what a damaged index answers. */
	if (status == CLI_OK && damaged_trace(comparing) == comparing->trace_count) {
		status = report_print(comparing, &report);
		status = status == CLI_OK
				 ? diff_limits_judge(&options->limits, &report.diff, options->heap.parts[0].sort)
				 : status;
	}
	/* The function of -callers need not be on both sides. */
	if (status == CLI_OK && filter_report_patterns(&options->heap.callers, "callers", action_names(input)))
		status = CLI_NO;
	report_fini(&report);
	free(scales);
	return status;
}

static int comparing_show(struct diff_input *comparing)
{
	struct heap_options *heap = &comparing->options->heap;
	int status;
	for (;;) {
		struct action_input input = {.sources = comparing->sources,
					     .source_count = comparing->source_count,
					     .asks_packages = true,
					     .cull = &heap->cull,
					     .callers_of = &heap->callers,
					     .layout = layout_options_settle(&heap->layout, heap->output != NULL)};
		input.layout.has_all_frames |= heap->without_default_cull;
		status = sources_prepare(comparing);
		if (status == CLI_OK)
			status = report_show(comparing, &input);
		action_input_fini(&input);
		sources_end(comparing);
		unsigned damaged = damaged_trace(comparing);
		if (damaged == comparing->trace_count)
			return status;
		if (analysis_mend(&comparing->traces[damaged].analysis) != CLI_OK)
			return CLI_FAILED;
		for (unsigned i = 0; i < comparing->source_count; i++)
			comparing->sources[i].table = comparing->traces[comparing->own[i].trace].analysis.table;
	}
}

static int options_show(struct diff_options *options)
{
	const unsigned count = (unsigned)options->word_count;
	struct diff_input comparing = {.options = options,
				       .traces = memory_zeroed(count, sizeof(*comparing.traces)),
				       .own = memory_zeroed(count, sizeof(*comparing.own)),
				       .sources = memory_zeroed(count, sizeof(*comparing.sources)),
				       .source_count = count};
	int status = sources_open(&comparing) == CLI_OK ? comparing_show(&comparing) : CLI_FAILED;
	sources_close(&comparing);
	return status;
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
		"left out. Several runs of each side stand around a --: each number then is the mean of the runs.\n"
		"Exit status: 0, or 1 if a number grew by more than -fail-above, 2 for an error.\n\n"
		"Examples:\n  xheap diff before.xht after.xht -frames so\n"
		"  xheap diff server.xht@0..60s server.xht@60s..120s\n"
		"  xheap diff old1.xht old2.xht -- new1.xht new2.xht -frames st -fail-above 5%\n",
};
