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

enum { PART_MAX = 16, TOP_DEFAULT = 10000, SAVE_BYTES = 1 << 16 };
enum { HEAP_AGAIN = -1 }; /* in place of a status: the index is damaged, and nothing has been shown */

struct heap_options {
	struct filter_options filter; /* first: its options are given this */
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
	bool with_lines, without_default_cull, is_timed;
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

static int set_by(void *context, struct words *words, int number)
{
	(void)number;
	struct heap_options *options = context;
	const char *word = options_value(words, "by");
	if (word && !(options->by = heap_by_find(word)))
		return cli_fail("-by: \"%s\" is none of %s", word, heap_by_names());
	return word ? 0 : CLI_FAILED;
}

static int set_top(void *context, struct words *words, int number)
{
	(void)number;
	struct heap_options *options = context;
	const char *word = options_value(words, "top");
	if (word && !text_parse_count(word, &options->top))
		return cli_fail("-top: \"%s\" is no number of rows", word);
	return word ? 0 : CLI_FAILED;
}

static int set_format(void *context, struct words *words, int number)
{
	(void)number;
	struct heap_options *options = context;
	const char *word = options_value(words, "format");
	if (word && (options->format = report_format_find(word)) < 0)
		return cli_fail("-format: \"%s\" is none of %s", word, report_format_names());
	return word ? 0 : CLI_FAILED;
}

static int set_timing(void *context, struct words *words, int number)
{
	(void)words, (void)number;
	((struct heap_options *)context)->is_timed = true;
	return 0;
}

static int set_lines(void *context, struct words *words, int number)
{
	(void)words, (void)number;
	((struct heap_options *)context)->with_lines = true;
	return 0;
}

static int set_output(void *context, struct words *words, int number)
{
	(void)number;
	struct heap_options *options = context;
	options->output = options_value(words, "o");
	return options->output ? 0 : CLI_FAILED;
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

static int set_session(void *context, struct words *words, int number)
{
	(void)number;
	return input_take_session(&((struct heap_options *)context)->input, words);
}

static int set_path(void *context, struct words *words, int number)
{
	(void)number;
	const char *word = options_value(words, "i");
	return word ? set_input(context, (char *)word) : CLI_FAILED;
}

/* ---- frames ---- */

static int take_cull_frame(void *context, const char *word)
{
	struct heap_options *options = context;
	return filter_add_pattern(&options->cull.frames, "cullFrames", word);
}

static int take_cull_list(void *context, const char *word)
{
	struct heap_options *options = context;
	struct diag diag = {""};
	memory_grow(options->cull_lists, options->cull_list_count, options->cull_list_capacity);
	options->cull_lists[options->cull_list_count++] = word;
	return heap_patterns_add_file(&options->cull.frames, word, &diag) ? cli_fail("-cullLists: %s", diag.text) : 0;
}

static int set_cull(void *context, struct words *words, int number)
{
	return number ? filter_take_list(context, words, "cullLists", take_cull_list)
		      : filter_take_list(context, words, "cullFrames", take_cull_frame);
}

static int set_no_default_cull(void *context, struct words *words, int number)
{
	(void)words, (void)number;
	((struct heap_options *)context)->without_default_cull = true;
	return 0;
}

/* ---- words of the documented tool that ask for nothing here ---- */

static int set_nothing(void *context, struct words *words, int number)
{
	(void)context, (void)words, (void)number;
	return 0;
}

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
/* The numbers of actions are places in action_table. */
static const struct option heap_option_table[] = {
	{"stacks", set_action, ACTION_STACKS},
	{"frames", set_action, ACTION_FRAMES},
	{"inclusive", set_inclusive, ACTION_FRAMES},
	{"image", set_action, ACTION_IMAGE},
	{"images", set_action, ACTION_IMAGE},
	{"heaps", set_action, ACTION_HEAPS},
	{"tree", set_action, ACTION_TREE},
	{"callers", set_callers, ACTION_CALLERS},
	{"chains", set_action, ACTION_CHAINS},
	{"totals", set_action, ACTION_TOTALS},
	{"by", set_by, 0},
	{"top", set_top, 0},
	{"format", set_format, 0},
	{"lines", set_lines, 0},
	FILTER_REPORT_OPTIONS{"cullFrames", set_cull, 0},
	{"cullLists", set_cull, 1},
	{"cullList", set_cull, 1},
	{"noDefaultCull", set_no_default_cull, 0},
	{"i", set_path, 0},
	{"session", set_session, 0},
	{"o", set_output, 0},
	{"timing", set_timing, 0},
	{"a", set_tool_action, 0},
	{"symbols", set_symbols, 0},
	{"quiet", set_nothing, 0},
	{"tle", set_nothing, 0},
	{"tti", set_nothing, 0},
};

/* ---- the report ---- */

static int report_print(const struct heap_options *options, struct report *report)
{
	struct cli_output output;
	cli_output_open(&output, options->format == REPORT_TEXT);
	report->input->is_colored = output.is_colored;
	report_write(report, (enum report_format)options->format, &output.sink);
	return cli_output_close(&output);
}

/* By now it is known which files were read for names. */
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

static int parts_settle(struct heap_options *options)
{
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

/* A report must not replace the trace, its index, or a list of frames. */
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
	struct heap_options options = {.top = TOP_DEFAULT};
	filter_options_init(&options.filter, "heap");
	int status = CLI_FAILED;
	if (!options_parse(argc, argv, heap_option_table, sizeof(heap_option_table) / sizeof(*heap_option_table),
			   &options, set_input) &&
	    !parts_settle(&options))
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
	.help = "Actions, several at once; KEY sorts the rows:\n"
		"  -stacks [KEY]         one row per distinct stack (the default)\n"
		"  -frames [KEY]         one row per function that asked for memory\n"
		"  -inclusive            with -frames: per function anywhere on the stacks\n"
		"  -image [KEY]          one row per executable or library of those functions\n"
		"  -heaps [KEY]          one row per heap, with its extents\n"
		"  -tree [KEY]           who called whom, from the threads' starts\n"
		"  -callers FUNCTION [KEY] who called it, and who called these\n"
		"  -chains [KEY]         blocks that grew by realloc: steps, factor, bytes copied\n"
		"  -totals               only the totals\n"
		"  -by WHAT              split rows by process, thread, heap, size, lifetime, time or class\n"
		"  -top N                the first N rows of each (10000)\n"
		"Filters; an allocation has to pass all:\n" FILTER_HELP "Frames:\n"
		"  -cullFrames F...      take these off the innermost end of stacks, as the functions of the built-in "
		"list are\n"
		"  -cullLists FILE...    take off those of the files, one a line\n"
		"  -noDefaultCull        leave the built-in list out\n"
		"  -lines                a function has a frame for each line of its calls\n"
		"Output:\n"
		"  -session NAME         in place of FILE: what this session has recorded up to now\n"
		"  -format FORMAT        text, csv or json\n"
		"  -o FILE               write there\n"
		"  -timing               print on standard error how long each step took\n"
		"As the documented tool has them: -i FILE, -a heap, -symbols, -quiet, -tle, -tti, and -s KEY\n\n"
		"KEY: so soc outstanding size, count; st stc total size, count; src realloc count;\n"
		"     sp spc size, count at the peak; stt temporary count. The default is so.\n"
		"F:   image!, image!symbol, symbol or image+0xOFFSET, in any case, with * and ?. Lists end at the next "
		"option or --.\n"
		"Without FILE: the newest xheap.*.xht here.\n\n"
		"Example:\n  xheap heap xheap.jq.4711.xht -frames st -top 20 -requireFrames jq!parse* -size 1K 1M\n",
};
