/* SPDX-License-Identifier: MIT */
/* xheap heap: reports over the allocations of a trace. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "action/report.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "cli/analysis.h"
#include "cli/filter_options.h"
#include "cli/formats.h"

enum { PART_MAX = 16, TOP_DEFAULT = 10000, SAVE_BYTES = 1 << 16 };
enum { HEAP_AGAIN = -1 }; /* in place of a status: the index is damaged, and nothing has been shown */

struct heap_options {
	struct filter_options filter;
	struct input input;
	const char *output;
	struct {
		const struct action *action;
		const struct action_sort *sort;
	} parts[PART_MAX];
	unsigned part_count;
	bool is_inclusive;
	uint64_t top;
	int format;
	bool with_lines, without_default_cull, is_timed, is_ignored;
	enum heap_by by;
	struct heap_cull cull;
	const char **cull_lists; /* files */
	size_t cull_list_count, cull_list_capacity;
	struct heap_patterns callers;
	const char *after_action; /* the word behind an action, which is no sort key of it; NULL: there was none */
};

/* ---- what to show ---- */

/* A sort key may follow, also with a dash, or behind "-s", as the documents write it: "-frames -st", "-frames -s st".
 * An "s" by itself, which they allow, is the key that the action has anyway. */
static const struct action_sort *take_sort(struct words *words)
{
	const char *word = options_peek(words);
	if (word && !strcasecmp(word, "-s") && words->next + 1 < words->end && action_sort_find(words->next[1])) {
		words->next += 2;
		return action_sort_find(words->next[-1]);
	}
	const struct action_sort *sort = word ? action_sort_find(word + (*word == '-')) : NULL;
	if (sort || (word && !strcasecmp(word + (*word == '-'), "s")))
		words->next++;
	return sort;
}

static int add_part(struct heap_options *options, const struct action *action, const struct action_sort *sort)
{
	unsigned at = 0;
	while (at < options->part_count && options->parts[at].action != action)
		at++;
	if (at == options->part_count)
		options->part_count++;
	options->parts[at].action = action;
	options->parts[at].sort = sort ? sort : action_sort_find(action->sort);
	return 0;
}

static int set_action(void *context, struct words *words, int number)
{
	struct heap_options *options = context;
	const struct action *action = action_table[number];
	const struct action_sort *sort = action->groups ? take_sort(words) : NULL;
	if (action->groups && !sort)
		options->after_action = options_peek(words);
	return add_part(options, action, sort);
}

/* A word behind -frames, so the key may come behind it. */
static int set_inclusive(void *context, struct words *words, int number)
{
	struct heap_options *options = context;
	const struct action_sort *sort = take_sort(words);
	options->is_inclusive = true;
	return sort ? add_part(options, action_table[number], sort) : 0;
}

static int set_callers(void *context, struct words *words, int number)
{
	struct heap_options *options = context;
	const char *word = options_value(words, "callers");
	if (!word || filter_add_pattern(&options->callers, "callers", word))
		return CLI_FAILED;
	return add_part(options, action_table[number], take_sort(words));
}

/* A mistyped key reads as a FILE. */
static int set_input(void *context, char *word)
{
	struct heap_options *options = context;
	if (word == options->after_action && (options->input.path || access(word, F_OK) != 0))
		return cli_fail("\"%s\" is no FILE%s, and no key to sort by, which are: %s", word,
				options->input.path ? " when one is named already" : "", action_sort_keys());
	return input_take_path(&options->input, word);
}

static int set_path(void *context, struct words *words, int number)
{
	(void)number;
	const char *word = options_value(words, "i");
	return word ? set_input(context, (char *)word) : CLI_FAILED;
}

/* ---- frames ---- */

/* The options around these filters. */
static struct heap_options *heap_options_of(struct filter_options *filter)
{
	return (struct heap_options *)((char *)filter - offsetof(struct heap_options, filter));
}

static int take_cull_frame(void *context, const char *word)
{
	struct heap_options *options = heap_options_of(context);
	return filter_add_pattern(&options->cull.frames, "cullFrames", word);
}

static int take_cull_list(void *context, const char *word)
{
	struct heap_options *options = heap_options_of(context);
	struct diag diag = {""};
	memory_grow(options->cull_lists, options->cull_list_count, options->cull_list_capacity);
	options->cull_lists[options->cull_list_count++] = word;
	return heap_patterns_add_file(&options->cull.frames, word, &diag) ? cli_fail("-cullLists: %s", diag.text) : 0;
}

static int set_cull(void *context, struct words *words, int number)
{
	struct filter_options *filter = &((struct heap_options *)context)->filter;
	return number ? filter_take_list(filter, words, "cullLists", take_cull_list)
		      : filter_take_list(filter, words, "cullFrames", take_cull_frame);
}

/* ---- words of the documented tool without a meaning here ---- */

/* Symbols are always used. */
static int set_symbols(void *context, struct words *words, int number)
{
	static const char *const more[] = {"cacheonly", "verbose", "dbghelplog"};
	(void)context, (void)number;
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
		if (options_peek(words) && !strcasecmp(options_peek(words), more[i]))
			words->next++;
	return 0;
}

static int set_tool_action(void *context, struct words *words, int number)
{
	(void)context, (void)number;
	const char *word = options_value(words, "a");
	if (word && strcasecmp(word, "heap") != 0)
		return cli_fail("-a: \"%s\" is another command's work; this one is heap", word);
	return word ? 0 : CLI_FAILED;
}

enum {
	ACTION_STACKS,
	ACTION_FRAMES,
	ACTION_INCLUSIVE,
	ACTION_IMAGE,
	ACTION_HEAPS,
	ACTION_TREE,
	ACTION_CALLERS,
	ACTION_CHAINS,
	ACTION_TOTALS
};
#define AT(member) OPTION_AT(struct heap_options, member)
#define ACTION(word, place) .type = VALUE_TAKEN, .take = set_action, .number = (place), .value = (word)

static const struct option_choice by_choices[] = {
#define X(id, name) {name, NULL, HEAP_BY_##id, NULL},
	HEAP_BYS(X)
#undef X
		{NULL, NULL, 0, NULL},
};

/* The numbers of actions are places in action_table. */
/* clang-format off */
static const struct option action_rows[] = {
	{.type = VALUE_TITLE, .help = "Actions, several at once; KEY sorts the rows:"},
	{"stacks", ACTION("[KEY]", ACTION_STACKS), .help = "one row for each distinct stack (the default)"},
	{"frames", ACTION("[KEY]", ACTION_FRAMES), .help = "one row for each function that asked for memory"},
	{"inclusive", .type = VALUE_TAKEN, .take = set_inclusive, .number = ACTION_FRAMES,
	 .help = "with -frames: one row for each function anywhere on the stacks"},
	{"image", .others = "images", ACTION("[KEY]", ACTION_IMAGE),
	 .help = "one row for each executable or library of these functions"},
	{"heaps", ACTION("[KEY]", ACTION_HEAPS), .help = "one row for each heap, with its extents"},
	{"tree", ACTION("[KEY]", ACTION_TREE), .help = "callers and callees, from the starts of the threads"},
	{"callers", .type = VALUE_TAKEN, .take = set_callers, .number = ACTION_CALLERS, .value = "FUNCTION [KEY]",
	 .help = "the callers of a function, and their callers"},
	{"chains", ACTION("[KEY]", ACTION_CHAINS), .help = "blocks that grew by realloc: steps, factor, bytes copied"},
	{"totals", ACTION(NULL, ACTION_TOTALS), .help = "only the totals"},
	{"by", .type = VALUE_CHOICE, AT(by), .value = "WHAT", .choices = by_choices, .help = "split rows by"},
	{"top", .type = VALUE_NUMBER, AT(top), .value = "N", .least = 1, .most = UINT64_MAX, .initial = TOP_DEFAULT,
	 .help = "the first N rows of each action"},
	{.type = VALUE_TITLE, .help = "Filters; an allocation passes all of them:"},
	{.type = VALUE_END},
};

static const struct option frame_rows[] = {
	{.type = VALUE_TITLE, .help = "Frames:"},
	{"cullFrames", .type = VALUE_TAKEN, .take = set_cull, .value = "F...",
	 .help = "remove these functions from the inner end of stacks, as those of the built-in list"},
	{"cullLists", .others = "cullList", .type = VALUE_TAKEN, .take = set_cull, .number = 1, .value = "FILE...",
	 .help = "remove the functions that are named in these files, one on a line"},
	{"noDefaultCull", .type = VALUE_ON, AT(without_default_cull), .help = "do not use the built-in list"},
	{"lines", .type = VALUE_ON, AT(with_lines), .help = "one row for each line of a call in a function"},
	{.type = VALUE_TITLE, .help = "Output:"},
	{.type = VALUE_END},
};

static const struct option input_rows[] = {INPUT_SESSION_OPTION, {.type = VALUE_END}};

static const struct option output_rows[] = {
	FORMAT_OPTION(struct heap_options, format, report_formats),
	{"o", .type = VALUE_TEXT, AT(output), .value = "FILE", .help = "write the report to FILE"},
	{"timing", .type = VALUE_ON, AT(is_timed), .help = "print on standard error how long each step took"},
	{.type = VALUE_END},
};

static const struct option tool_rows[] = {
	{"i", .type = VALUE_TAKEN, .take = set_path},
	{"a", .type = VALUE_TAKEN, .take = set_tool_action},
	{"symbols", .type = VALUE_TAKEN, .take = set_symbols},
	{"quiet", .type = VALUE_ON, AT(is_ignored)},
	{"tle", .type = VALUE_ON, AT(is_ignored)},
	{"tti", .type = VALUE_ON, AT(is_ignored)},
	{.type = VALUE_END},
};
/* clang-format on */

static const struct option_group heap_groups[] = {
	{action_rows, 0, false},
	{filter_range_rows, offsetof(struct heap_options, filter), false},
	{filter_rows, offsetof(struct heap_options, filter), false},
	{filter_report_rows, offsetof(struct heap_options, filter), false},
	{frame_rows, 0, false},
	{input_rows, offsetof(struct heap_options, input), false},
	{output_rows, 0, false},
	{tool_rows, 0, false},
	{NULL, 0, false},
};
static const struct option_grammar grammar = {
	.command = "heap", .groups = heap_groups, .dashes = "-", .print_notes = formats_print_keys};

/* ---- the report ---- */

static int report_print(const struct heap_options *options, struct report *report)
{
	struct cli_output output;
	cli_output_open(&output, options->format == REPORT_TEXT);
	report->input->is_colored = output.is_colored;
	report_write(report, (enum report_format)options->format, &output.sink);
	return cli_output_close(&output);
}

/* The rows are made, so all files are known that names were read from. */
static int report_save(const struct heap_options *options, const struct report *report, const struct symbols *symbols,
		       struct diag *diag)
{
	struct whole_file file;
	struct stat status;
	if (!stat(options->output, &status) && symbols_read_file(symbols, &status))
		return diag_fail(diag, EINVAL, "cannot write %s: it is one of the files that are read",
				 options->output);
	int error = whole_file_open(&file, options->output, 0666, diag);
	if (error)
		return error;
	struct sink out;
	sink_to_fd(&out, file.fd, SAVE_BYTES);
	report_write(report, (enum report_format)options->format, &out);
	error = sink_end(&out);
	if (!error)
		return whole_file_commit(&file, diag);
	whole_file_abandon(&file);
	return diag_fail(diag, -error, "cannot write %s: %s", options->output, strerror(-error));
}

static int report_show(const struct heap_options *options, struct report *report, const struct symbols *symbols)
{
	struct diag diag = {""};
	if (!options->output)
		return report_print(options, report);
	return report_save(options, report, symbols, &diag) ? cli_fail("%s", diag.text) : CLI_OK;
}

static void parts_take(const struct heap_options *options, struct report_part parts[PART_MAX])
{
	for (unsigned i = 0; i < options->part_count; i++)
		parts[i] = (struct report_part){.action = options->parts[i].action, .sort = options->parts[i].sort};
}

/* Nothing is shown of what a damaged index answers. */
static int parts_show(const struct heap_options *options, struct action_input *input, const struct analysis *analysis)
{
	const struct action_source *source = &input->sources[0];
	struct report_part parts[PART_MAX];
	for (unsigned i = 0; i < options->part_count && source->table->sample_bytes; i++)
		if (options->parts[i].action == &action_chains ||
		    (options->parts[i].sort && !strcmp(options->parts[i].sort->key, "stt")))
			return cli_fail("%s is a sample: %s needs every event", source->path,
					options->parts[i].action == &action_chains ? "-chains" : "stt");
	if (source->table->sample_bytes && options->filter.asked.filter.nesting == HEAP_NESTING_INNERMOST)
		return cli_fail(
			"%s is a sample: -innermost needs every event, since blocks that others lie in may be missing",
			source->path);
	struct report report = {.input = input,
				.parts = parts,
				.part_count = options->part_count,
				.has_range = options->filter.asked.range.words[0] != NULL,
				.filters = options->filter.asked.notes,
				.filter_count = options->filter.asked.note_count};
	parts_take(options, parts);
	report_make(&report, options->top);
	int status = analysis_is_good(source->table) ? report_show(options, &report, analysis->symbols) : HEAP_AGAIN;
	report_fini(&report);
	return status;
}

static int input_show(struct heap_options *options, struct action_input *input, const struct analysis *analysis)
{
	struct action_source *source = &input->sources[0];
	struct heap_window window;
	struct heap_range range = {0, source->table->duration_ns};
	if (filter_range(&options->filter, source->trace, &range))
		return CLI_FAILED;
	options->filter.asked.filter.is_partial =
		options->filter.asked.range.words[0] || (options->by != HEAP_BY_NONE && options->by != HEAP_BY_PROCESS);
	int status = filter_prepare(&options->filter, source->table, source->names);
	if (status != CLI_OK)
		return status;
	struct report_part parts[PART_MAX];
	struct diag diag = {""};
	parts_take(options, parts);
	if (report_check(parts, options->part_count, source->table, source->filter, range, options->by, &diag))
		return cli_fail("%s: %s", source->path, diag.text);
	heap_window_make(&window, source->table, source->filter, range, options->by, false);
	source->window = &window;
	status = parts_show(options, input, analysis);
	heap_window_fini(&window);
	if (status == CLI_OK && filter_report_patterns(&options->callers, "callers", source->names))
		status = CLI_NO;
	return status;
}

/* Whether none of the parts has rows. */
static bool has_totals_only(const struct heap_options *options)
{
	for (unsigned i = 0; i < options->part_count; i++)
		if (options->parts[i].action->groups)
			return false;
	return options->part_count > 0;
}

static int parts_settle(struct heap_options *options)
{
	if (has_totals_only(options) && options->by != HEAP_BY_NONE)
		return cli_fail("-totals has no rows that -by %s could split: add -image or another action",
				heap_by_name(options->by));
	if (!options->part_count)
		add_part(options, &action_stacks, NULL);
	for (unsigned i = 0; options->is_inclusive && i < options->part_count; i++)
		if (options->parts[i].action == &action_frames)
			options->parts[i].action = &action_inclusive;
	for (unsigned i = 0; options->by == HEAP_BY_HEAP && i < options->part_count; i++)
		if (options->parts[i].action->is_by_heap)
			return cli_fail("-by heap: -heaps is by heap already");
	if (options->format == REPORT_CSV && options->part_count > 1)
		return cli_fail("-format csv: one of -stacks, -frames, -image, ... at a time");
	if (!options->without_default_cull)
		heap_cull_use_default(&options->cull);
	return 0;
}

/* Refuse to write the report over the trace, its index or a list. */
static int output_check(const struct heap_options *options, const char *path)
{
	char *indexes[ANALYSIS_INDEX_PLACES];
	struct diag diag = {""};
	analysis_index_paths(indexes, path);
	int error = whole_file_check(options->output, &path, 1, &diag);
	error = error ? error
		      : whole_file_check(options->output, (const char *const *)indexes, ANALYSIS_INDEX_PLACES, &diag);
	error = error ? error
		      : whole_file_check(options->output, options->cull_lists, (unsigned)options->cull_list_count,
					 &diag);
	for (unsigned i = 0; i < ANALYSIS_INDEX_PLACES; i++)
		free(indexes[i]);
	return error ? cli_fail("%s", diag.text) : CLI_OK;
}

static int analysis_show(struct heap_options *options, const struct analysis *analysis)
{
	struct action_source source = analysis_source(analysis, &options->filter.asked.filter);
	struct action_input input = {
		.sources = &source, .source_count = 1, .cull = &options->cull, .callers_of = &options->callers};
	source.session = options->input.session;
	int status = input_show(options, &input, analysis);
	action_input_fini(&input);
	return status;
}

static int trace_show(struct heap_options *options, const char *path)
{
	struct analysis analysis;
	if ((options->output && output_check(options, path)) || analysis_open(&analysis, path, options->with_lines))
		return CLI_FAILED;
	int status;
	while ((status = analysis_show(options, &analysis)) == HEAP_AGAIN)
		if (analysis_mend(&analysis) != CLI_OK) {
			status = CLI_FAILED;
			break;
		}
	if (options->is_timed)
		analysis_tell_times(&analysis);
	analysis_close(&analysis);
	return status;
}

static int heap_show(struct heap_options *options)
{
	char *path = cli_trace_path(options->input.path);
	int status = path ? trace_show(options, path) : CLI_FAILED;
	free(path);
	return status;
}

static int heap_run(int argc, char **argv)
{
	struct heap_options options = {.top = TOP_DEFAULT, .format = REPORT_TEXT};
	filter_options_init(&options.filter, "heap");
	int status = CLI_FAILED;
	if (!options_parse(&grammar, argc, argv, &options, set_input, NULL) && !parts_settle(&options))
		status = heap_show(&options);
	filter_options_fini(&options.filter);
	heap_cull_fini(&options.cull);
	free(options.cull_lists);
	heap_patterns_fini(&options.callers);
	input_fini(&options.input);
	return status;
}

const struct command command_heap = {
	.name = "heap",
	.usage = "[FILE] [ACTION...] [FILTER...]",
	.summary = "show where the memory went: allocations by stack, function or image",
	.run = heap_run,
	.options = &grammar,
	.help = "F: image!, image!symbol, symbol or image+0xOFFSET, in any case, with * and ?. A list ends at the "
		"next\n"
		"option or --.\n"
		"Options of the documented tool, which are accepted: -i FILE, -a heap, -symbols, -quiet, -tle, -tti, "
		"-s KEY.\n"
		"Without FILE: the newest xheap.*.xht here.\n\n"
		"Example:\n  xheap heap xheap.jq.4711.xht -frames st -top 20 -requireFrames jq!parse* -size 1K 1M\n",
};
