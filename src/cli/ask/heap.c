/* SPDX-License-Identifier: MIT */
/* xheap heap: reports over the allocations of a trace. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "action/actions/action_table.h"
#include "action/report/caveats.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/heap_map.h"
#include "cli/ask/heap_options.h"
#include "cli/formats.h"
#include "cli/input.h"
#include "cli/layout_options.h"
#include "export/compression.h"
#include "export/export.h"
#include "os/monotonic.h"
#include "query/by.h"
#include "query/folded.h"

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

int heap_take_action(void *context, struct words *words, int number)
{
	struct heap_options *options = context;
	const struct action *action = action_table[number];
	const bool takes_key = action->groups || options->has_keyed_totals;
	const struct action_sort *sort = takes_key ? take_sort(words) : NULL;
	if (takes_key && !sort)
		options->after_action = options_peek(words);
	return add_part(options, action, sort);
}

/* A word behind -frames, so the key may come behind it. */
int heap_take_inclusive(void *context, struct words *words, int number)
{
	struct heap_options *options = context;
	const struct action_sort *sort = take_sort(words);
	options->is_inclusive = true;
	return sort ? add_part(options, action_table[number], sort) : 0;
}

int heap_take_callers(void *context, struct words *words, int number)
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
	if (word != options->after_action || (!options->input.path && !access(word, F_OK)))
		return input_take_path(&options->input, word);
	const char *nearest = action_sort_nearest(word);
	char *keys = action_sort_keys();
	cli_fail("\"%s\" is no KEY%s%s; the keys are: %s%s", word, nearest ? "; the nearest is " : "",
		 nearest ? nearest : "", keys, options->input.path ? "" : "; and there is no FILE of that name");
	free(keys);
	return CLI_FAILED;
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
	if (heap_cull_use_list(&options->cull, word))
		return 0;
	if (!strchr(word, '/') && access(word, F_OK) != 0) {
		char nearest[CULL_NAME_BYTES] = "", names[CULL_NAMES_BYTES];
		bool has_nearest = heap_cull_nearest_list(word, nearest);
		heap_cull_list_names(names);
		return cli_fail("-cullLists: \"%s\" is no file, and no list%s%s; the lists are: %s", word,
				has_nearest ? "; the nearest is " : "", nearest, names);
	}
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

#define AT(member) OPTION_AT(struct heap_options, member)
#define ACTION ACTION_OPTION

const struct option_choice heap_by_choices[] = {
#define X(id, name) {name, NULL, HEAP_BY_##id, NULL},
	HEAP_BYS(X)
#undef X
		{NULL, NULL, 0, NULL},
};

static const struct option action_rows[] = {
	{.type = VALUE_TITLE, .help = "Actions, several at once; KEY sorts the rows:"},
	{"stacks", ACTION("[KEY]", ACTION_STACKS), .help = "one row for each distinct stack (the default)"},
	{"frames", ACTION("[KEY]", ACTION_FRAMES), .help = "one row for each function that asked for memory"},
	{"inclusive", .type = VALUE_TAKEN, .take = heap_take_inclusive, .number = ACTION_FRAMES,
	 .help = "with -frames: one row for each function anywhere on the stacks"},
	{"image", .others = "images", ACTION("[KEY]", ACTION_IMAGE),
	 .help = "one row for each executable or library of these functions"},
	{"heaps", ACTION("[KEY]", ACTION_HEAPS), .help = "one row for each heap, with its extents"},
	{"tree", ACTION("[KEY]", ACTION_TREE), .help = "callers and callees, from the starts of the threads"},
	{"callers", .type = VALUE_TAKEN, .take = heap_take_callers, .number = ACTION_CALLERS, .value = "FUNCTION [KEY]",
	 .help = "the callers of a function, and their callers"},
	{"chains", ACTION("[KEY]", ACTION_CHAINS), .help = "blocks that grew by realloc: steps, factor, bytes copied"},
	{"totals", ACTION(NULL, ACTION_TOTALS), .help = "only the totals"},
	{"map", .type = VALUE_ON, AT(has_map),
	 .help = "the pages that blocks lie in at the moment -at P, or at the end: how full they are, and whose"},
	{"by", .type = VALUE_CHOICE, AT(by), .value = "WHAT", .choices = heap_by_choices, .help = "split rows by"},
	{"top", .type = VALUE_NUMBER, AT(top), .value = "N", .least = 1, .most = UINT64_MAX,
	 .initial = HEAP_TOP_DEFAULT, .help = "the first N rows of each action"},
	{.type = VALUE_TITLE, .help = "Filters; an allocation passes all of them:"},
	{.type = VALUE_END},
};

const struct option heap_frame_rows[] = {
	{.type = VALUE_TITLE, .help = "Frames:"},
	{"cullFrames", .type = VALUE_TAKEN, .take = set_cull, .value = "F...",
	 .help = "remove these functions from the inner end of stacks, as those of the built-in list"},
	{"cullLists", .others = "cullList", .type = VALUE_TAKEN, .take = set_cull, .number = 1, .value = "LIST...",
	 .help = "remove the functions of these lists: allocators, c, containers, rust, or a FILE with one on a line"},
	{"noDefaultCull", .type = VALUE_ON, AT(without_default_cull),
	 .help = "remove nothing else: neither the functions of the built-in lists nor wrappers found in the trace"},
	{"defaultCull", .type = VALUE_ON, AT(with_default_cull),
	 .help = "use the built-in list also in formats of whole stacks"},
	{"lines", .type = VALUE_ON, AT(with_lines), .help = "one row for each line of a call in a function"},
	{.type = VALUE_TITLE, .help = "Output:"},
	{.type = VALUE_END},
};

static const struct option input_rows[] = {INPUT_SESSION_OPTION, {.type = VALUE_END}};

static const struct option output_rows[] = {
	FORMAT_OPTION(struct heap_options, format, report_formats),
	{"reverse", .type = VALUE_ON, AT(is_reversed), .help = "with -format folded: the innermost frame first"},
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

static const struct option_group heap_groups[] = {
	{action_rows, 0, false},
	FILTER_OPTION_GROUPS(offsetof(struct heap_options, filter)),
	{heap_frame_rows, 0, false},
	{input_rows, offsetof(struct heap_options, input), false},
	{analysis_rows, 0, false},
	{output_rows, 0, false},
	{layout_rows, offsetof(struct heap_options, layout), false},
	{tool_rows, 0, false},
	{NULL, 0, false},
};
static const struct option_grammar grammar = {
	.command = "heap", .groups = heap_groups, .dashes = "-", .print_notes = formats_print_keys};

/* ---- the report ---- */

/* Sums say nothing of single blocks, and neither does a sample; remainders of blocks are no blocks. */
static int check_blocks(const struct heap_options *options, const struct analysis *analysis)
{
	const struct export_format *format = &export_formats[options->format];
	const struct opened_trace *opened = analysis->opened[0];
	if (!(format->flags & EXPORT_EACH_BLOCK))
		return CLI_OK;
	if (opened->table->sample_bytes)
		return cli_fail("%s is a sample: %s needs every block", opened->path, format->name);
	if (heap_is_folded(opened->table))
		return cli_fail("%s: blocks that had ended up to %s are folded into sums: %s needs every block",
				opened->path, text_duration(heap_folded_until_ns(opened->table)).data, format->name);
	if (options->filter.asked.filter.nesting == HEAP_NESTING_INNERMOST)
		return cli_fail("-innermost counts what remains of outer blocks: %s needs whole blocks", format->name);
	return CLI_OK;
}

static int check_sample(const struct heap_options *options, const struct analysis *analysis)
{
	const struct opened_trace *sample = asking_sample(analysis);
	if (check_blocks(options, analysis))
		return CLI_FAILED;
	for (unsigned i = 0; i < options->part_count && sample; i++)
		if (options->parts[i].action == &action_chains ||
		    (options->parts[i].sort && !strcmp(options->parts[i].sort->key, "stt")))
			return cli_fail("%s is a sample: %s needs every event", sample->path,
					options->parts[i].action == &action_chains ? "-chains" : "stt");
	return asking_check_innermost(analysis);
}

/* Whether none of the parts has rows. */
static bool has_totals_only(const struct heap_options *options)
{
	for (unsigned i = 0; i < options->part_count; i++)
		if (options->parts[i].action->groups)
			return false;
	return options->part_count > 0;
}

/* Stacks of a format that has all of them are whole: its readers show callers and callees, however many there are. */
static int format_settle(const struct heap_options *options)
{
	const struct export_format *format = &export_formats[options->format];
	const bool has_all_stacks = format->flags & EXPORT_ALL_STACKS;
	if (format->flags & EXPORT_ONE_ACTION && options->part_count > 1)
		return cli_fail("-format %s: one of -stacks, -frames, -image, ... at a time", format->name);
	if (options->with_default_cull && options->without_default_cull)
		return cli_fail("-defaultCull and -noDefaultCull exclude each other");
	if (!has_all_stacks)
		return options->is_reversed ? cli_fail("-reverse is for -format folded") : 0;
	if (options->part_count > 1 || options->parts[0].action != &action_stacks)
		return cli_fail("-format %s has stacks: write -stacks [KEY], and no other action", format->name);
	if (options->top != HEAP_TOP_DEFAULT)
		return cli_fail("-format %s has all stacks, so that their numbers add up to the total: leave out -top",
				format->name);
	return 0;
}

int heap_options_settle(struct heap_options *options)
{
	if (has_totals_only(options) && options->by != HEAP_BY_NONE)
		return cli_fail("-totals has no rows that -by %s could split: add -image or another action",
				heap_by_name(options->by));
	if (options->has_map && heap_map_settle(options))
		return CLI_FAILED;
	if (!options->part_count && !options->has_map)
		add_part(options, &action_stacks, NULL);
	for (unsigned i = 0; options->is_inclusive && i < options->part_count; i++)
		if (options->parts[i].action == &action_frames)
			options->parts[i].action = &action_inclusive;
	for (unsigned i = 0; options->by == HEAP_BY_HEAP && i < options->part_count; i++)
		if (options->parts[i].action->is_by_heap)
			return cli_fail("-by heap: -heaps is by heap already");
	if (format_settle(options))
		return CLI_FAILED;
	/* Other tools show what a function allocated itself, which would be malloc. */
	const struct export_format *format = &export_formats[options->format];
	const bool is_whole = format->flags & EXPORT_ALL_STACKS && !format->tool;
	const bool uses_default = is_whole ? options->with_default_cull : !options->without_default_cull;
	if (uses_default)
		heap_cull_use_default(&options->cull);
	return 0;
}

static bool is_gzip(const struct heap_options *options)
{
	return export_formats[options->format].flags & EXPORT_GZIP;
}

static int check_output(const struct heap_options *options, const char *path)
{
	struct diag diag = {""};
	int error = asking_check_output(options->output, path, &diag);
	error = error ? error
		      : whole_file_check(options->output, options->cull_lists, (unsigned)options->cull_list_count,
					 &diag);
	if (!error && compression_of(options->output, is_gzip(options), &diag) < 0)
		error = -ENOTSUP;
	return error ? cli_fail("%s", diag.text) : CLI_OK;
}

static struct analysis_request request_make(struct heap_options *options, const struct window_word *words,
					    unsigned count)
{
	struct analysis_request request = asking_request(words, count);
	request.asked = &options->filter.asked;
	request.by = options->by;
	request.tells_outside = count == 1 && !(export_formats[options->format].flags & EXPORT_CAVEATS);
	request.parts = options->parts;
	request.part_count = options->part_count;
	request.cull = &options->cull;
	request.callers_of = &options->callers;
	request.session = options->input.session;
	request.with_lines = options->with_lines;
	request.asks_packages = true;
	request.layout = layout_options_settle(&options->layout, options->output != NULL);
	/* Who wants to see malloc does not want it in a fold. */
	request.layout.has_all_frames |= options->without_default_cull;
	return request;
}

/* ---- all of it ---- */

struct heap_answer {
	struct heap_options *options;
	const struct heap_comparison *comparison; /* NULL: none */
	struct analysis analysis;
	long double *scales; /* by source */
	struct report report;
};

static int scales_make(struct heap_answer *answer, struct diag *diag)
{
	const struct heap_comparison *comparison = answer->comparison;
	struct diff *diff = &answer->report.diff;
	int error = diff_scales(answer->scales, diff, comparison->basis, comparison->factor, diag);
	if (error)
		diag_prefix(diag, "-normalise");
	else if (comparison->basis != DIFF_AS_IS)
		diff->scales = answer->scales;
	return error;
}

static int answer_make(void *context, struct diag *diag)
{
	struct heap_answer *answer = context;
	struct heap_options *options = answer->options;
	struct filter_request *asked = &options->filter.asked;
	const struct heap_comparison *comparison = answer->comparison;
	unsigned before = comparison ? comparison->runs : 1;
	answer->report = (struct report){
		.diff = {.input = &answer->analysis.input, .runs = {before, answer->analysis.source_count - before}},
		.parts = options->parts,
		.part_count = options->part_count,
		.basis = comparison ? comparison->basis : DIFF_AS_IS,
		.has_range = !comparison && asked->range.words[0],
		.filters = asked->notes,
		.filter_count = asked->note_count,
		.is_reversed = options->is_reversed,
		/* A report on the terminal shows by itself how far it is. */
		.progress = options->output || !isatty(STDOUT_FILENO) ? asking_show_writing : NULL};
	int error = comparison ? scales_make(answer, diag) : 0;
	if (!error)
		export_prepare(&answer->report, (enum report_format)options->format, options->top);
	return error;
}

static void answer_undo(void *context)
{
	report_fini(&((struct heap_answer *)context)->report);
}

static void print(void *context, struct sink *out, bool is_colored)
{
	struct heap_answer *answer = context;
	answer->analysis.input.is_colored = is_colored;
	export_formats[answer->options->format].write(&answer->report, out);
}

/* What an answer in the format of a tool cannot say: figures, and what the trace lacks. */
static void format_tell(const struct heap_answer *answer)
{
	const struct export_format *format = &export_formats[answer->options->format];
	const uint64_t blocks = answer->analysis.sources[0].window->totals.total_count;
	if (format->lacks) {
		cli_say("%s has no %s", format->name, format->lacks);
		caveats_lines(cli_stderr(), answer->analysis.sources, false);
	}
	if (format->flags & EXPORT_SUMS_MANY && blocks > EXPORT_BLOCKS_MAX)
		cli_say("%s blocks are more than %s takes: it has sums of slices of time, and cannot show what a "
			"selected time has retained; ask for a -range with %s blocks at most",
			text_count(blocks).data, format->name, text_count(EXPORT_BLOCKS_MAX).data);
}

/* A picture of what is left at the end is taken for one of the peak, when nothing says which it is. */
static void peak_tell(const struct heap_answer *answer)
{
	enum { PERCENT = 100, EQUAL_PERCENT = 95 };
	const struct heap_options *options = answer->options;
	const struct export_format *format = &export_formats[options->format];
	const struct heap_window *window = answer->analysis.sources[0].window;
	const struct heap_numbers *totals = &window->totals;
	bool is_folded = options->format == REPORT_FOLDED;
	bool has_other_key = is_folded && options->parts[0].sort != action_sort_find(action_stacks.sort);
	bool is_less = totals->outstanding_bytes / EQUAL_PERCENT < totals->peak_bytes / PERCENT;
	if (answer->comparison || !(format->flags & EXPORT_OF_END) || has_other_key || window->is_moment || !is_less)
		return;
	cli_say("%s: of %s that are not freed; %s%s has the peak, %s", format->name,
		text_bytes(totals->outstanding_bytes).data, is_folded ? "-stacks sp" : "-at ",
		is_folded ? "" : text_exact_time(window->peak_at_ns).data, text_bytes(totals->peak_bytes).data);
}

static int answer_show(struct heap_answer *answer)
{
	const struct heap_options *options = answer->options;
	const struct heap_comparison *comparison = answer->comparison;
	int status = check_sample(options, &answer->analysis);
	status = status ? status : asking_run(&answer->analysis, answer_make, answer_undo, answer);
	if (status != CLI_OK)
		return status;
	const struct answer_form form = {.wants_pager = options->format == REPORT_TEXT, .is_gzip = is_gzip(options)};
	status = asking_print(&answer->analysis, options->output, form, print, answer);
	cli_progress_end();
	if (status == CLI_OK) {
		format_tell(answer);
		peak_tell(answer);
	}
	if (status == CLI_OK && comparison)
		status = comparison->judge(comparison->context, &answer->report.diff);
	/* The function of -callers need not be on both sides. */
	if (status == CLI_OK)
		status = asking_check_patterns(&options->callers, "-callers", action_names(&answer->analysis.input));
	answer_undo(answer);
	return status;
}

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	return (double)(to_ns - from_ns) / 1e9;
}

static void tell_times(struct opened_trace *opened)
{
	uint64_t symbols_ns = symbols_spent_ns(opened_trace_symbols(opened)), end_ns = monotonic_now_ns();
	cli_say("timing: opening %.3f s, %s %.3f s, symbols %.3f s, answering %.3f s",
		seconds(opened->begin_ns, opened->opened_ns), opened->index_path ? "index" : "matching",
		seconds(opened->opened_ns, opened->matched_ns), seconds(0, symbols_ns),
		seconds(opened->matched_ns + symbols_ns, end_ns));
}

int heap_show(struct heap_options *options, const struct window_word *words, unsigned count,
	      const struct heap_comparison *comparison)
{
	struct heap_answer answer = {
		.options = options, .comparison = comparison, .scales = memory_zeroed(count, sizeof(*answer.scales))};
	struct analysis_request request = request_make(options, words, count);
	int status = CLI_OK;
	if (options->format != REPORT_TEXT)
		asking_be_silent();
	/* Before the first trace is read, which may get an index. */
	for (unsigned i = 0; i < count && options->output && !status; i++)
		status = check_output(options, words[i].path);
	status = status ? status : asking_open(&answer.analysis, &request);
	if (!status) {
		status = options->has_map ? heap_map_show(options, &answer.analysis) : answer_show(&answer);
		if (options->is_timed)
			tell_times(answer.analysis.opened[0]);
	}
	analysis_close(&answer.analysis);
	free(answer.scales);
	return status;
}

void heap_options_fini(struct heap_options *options)
{
	filter_options_fini(&options->filter);
	heap_cull_fini(&options->cull);
	free(options->cull_lists);
	heap_patterns_fini(&options->callers);
	input_fini(&options->input);
}

static int heap_run(int argc, char **argv)
{
	struct heap_options options = {.top = HEAP_TOP_DEFAULT, .format = REPORT_TEXT};
	struct window_word word = {.path = NULL};
	filter_options_init(&options.filter, "heap");
	int status = CLI_FAILED;
	if (!options_parse(&grammar, argc, argv, &options, set_input, NULL) && !heap_options_settle(&options))
		word.path = cli_trace_path(options.input.path);
	if (word.path)
		status = heap_show(&options, &word, 1, NULL);
	window_word_fini(&word);
	heap_options_fini(&options);
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
