/* SPDX-License-Identifier: MIT */
/* xheap report: the first answer to where the memory went, on a screen. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "action/summary/summary.h"
#include "action/summary/summary_json.h"
#include "action/summary/summary_text.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/answer_lines.h"
#include "cli/ask/filter_options.h"
#include "cli/ask/view_file.h"
#include "cli/formats.h"
#include "cli/image/image_notes.h"
#include "cli/input.h"
#include "cli/layout_options.h"
#include "server/alone/alone_file.h"
#include "trace/trace.h"

enum {
	TOP_DEFAULT = 5,
	LINES_MOST = 40,
	EARLY_PEAK_EVENTS = 1000000,
	REPORT_HTML = 100 /* the page of xheap view: no format of others */
};

static const struct option_choice formats[] = {
	{"text", NULL, REPORT_TEXT, NULL},
	{"json", NULL, REPORT_JSON, NULL},
	{"html", NULL, REPORT_HTML, NULL},
	{NULL, NULL, 0, NULL},
};

struct report_options {
	struct filter_options filter;
	struct input input;
	struct layout_options layout;
	const char *output;
	uint64_t top;
	int format;
	int64_t short_ns;
	bool has_more, has_top, without_default_cull;
};

static int set_path(void *context, char *word)
{
	return input_take_path(&((struct report_options *)context)->input, word);
}

static int parse_short(void *context, const char *word, struct diag *why)
{
	int64_t *short_ns = &((struct report_options *)context)->short_ns;
	if (text_parse_time(word, short_ns) && *short_ns > 0)
		return 0;
	return diag_fail(why, EINVAL, "\"%s\" is no time above zero: write 10us, 1ms", text_shown(word));
}

/* ---- the question ---- */

/* On a terminal, the peak is there at once, until the report is: all blocks of a large trace are surveyed for
   seconds. */
static void peak_show(struct analysis *analysis)
{
	const struct trace_dictionary *dictionary = analysis->sources[0].table->dictionary;
	unsigned width = cli_terminal_width(STDERR_FILENO);
	if (isatty(STDERR_FILENO) != 1 || dictionary->event_count < EARLY_PEAK_EVENTS)
		return;
	char *line = answer_peak_line(&analysis->input, width > 1 ? width - 1 : 0);
	cli_progress("%s", line);
	free(line);
}

struct report_answer {
	struct report_options *options;
	struct analysis analysis;
	struct summary summary;
	bool is_by_object; /* each of Python's objects counts, though nobody asked for that */
};

static void answer_settle(void *context)
{
	struct report_answer *answer = context;
	answer->is_by_object = asking_count_objects(&answer->options->filter.asked, answer->analysis.opened[0]->table);
}

static int answer_make(void *context, struct diag *diag)
{
	struct report_answer *answer = context;
	const struct report_options *options = answer->options;
	const struct filter_request *asked = &options->filter.asked;
	const struct summary_plan plan = {.short_ns = options->short_ns,
					  .top = options->top,
					  .filters = asked->notes,
					  .filter_count = asked->note_count,
					  .has_range = asked->range.words[0] != NULL,
					  .is_filtered = asked->note_count > 0 && !answer->is_by_object,
					  .is_by_object = answer->is_by_object,
					  .is_kept = true,
					  .is_screen = options->format == REPORT_TEXT && !options->has_more};
	(void)diag;
	if (options->format == REPORT_TEXT)
		peak_show(&answer->analysis);
	summary_make(&answer->summary, &answer->analysis.input, &plan);
	return 0;
}

static void answer_undo(void *context)
{
	summary_fini(&((struct report_answer *)context)->summary);
}

static void answer_write(void *context, struct sink *out)
{
	struct report_answer *answer = context;
	const struct report_options *options = answer->options;
	const struct summary_view view = {
		.lines = options->has_more || options->layout.has_all_frames ? 0 : LINES_MOST,
		.has_top = options->has_top};
	if (options->format == REPORT_JSON)
		summary_json(&answer->summary, out);
	else
		summary_text(&answer->summary, &view, out);
}

static int trace_show(struct report_options *options, char *path)
{
	struct heap_cull cull = {.with_entries = false};
	const struct window_word word = {.path = path};
	struct report_answer answer = {.options = options};
	const struct cli_answer shown = {.settle = answer_settle,
					 .make = answer_make,
					 .undo = answer_undo,
					 .write = answer_write,
					 .context = &answer,
					 .output = options->output,
					 .is_text = options->format == REPORT_TEXT};
	struct analysis_request request = asking_request(&word, 1);
	request.asked = &options->filter.asked;
	request.cull = &cull;
	request.session = options->input.session;
	request.asks_packages = true;
	request.layout = layout_options_settle(&options->layout, options->output != NULL);
	if (!options->without_default_cull)
		heap_cull_use_default(&cull);
	int status = asking_show(&answer.analysis, &request, &shown);
	heap_cull_fini(&cull);
	return status;
}

/* ---- the page ---- */

/* The page has all allocations: a filter is chosen there. */
static int page_write(const struct report_options *options, const char *path)
{
	const char *const paths[] = {path};
	const struct view_file view = {options->output, paths, 1, 0, ALONE_FILE_MOST};
	const struct filter_request *asked = &options->filter.asked;
	if (asked->note_count || asked->range.words[0] || options->has_more)
		return cli_fail("-format html takes neither filters nor -more: the page has all of it");
	return view_file_save(&view);
}

/* ---- the command ---- */

#define AT(member) OPTION_AT(struct report_options, member)
static const struct option report_rows[] = {
	{"top", .type = VALUE_NUMBER, AT(top), .value = "N", .least = 1, .most = UINT32_MAX,
	 .help = "N stacks of each list, on any number of lines (default: at most 5)"},
	{"more", .type = VALUE_ON, AT(has_more), .help = "all lists, on as many lines as they take"},
	{"shortLived", .type = VALUE_PARSED, .parse = parse_short, .value = "TIME",
	 .help = "blocks that are freed in less time are short-lived (default: 10us)"},
	{"noDefaultCull", .type = VALUE_ON, AT(without_default_cull), .help = "do not use the built-in list"},
	{.type = VALUE_TITLE, .help = "Filters; an allocation passes all of them:"},
	{.type = VALUE_END},
};
static const struct option input_rows[] = {INPUT_SESSION_OPTION, {.type = VALUE_END}};
static const struct option output_rows[] = {
	{.type = VALUE_TITLE, .help = "Output:"},
	FORMAT_OPTION(struct report_options, format, formats),
	{"o", .type = VALUE_TEXT, AT(output), .value = "FILE", .help = "write the report to FILE"},
	{.type = VALUE_END},
};
static const struct option_group report_groups[] = {{report_rows, 0, false},
						    FILTER_OPTION_GROUPS(offsetof(struct report_options, filter)),
						    {output_rows, 0, false},
						    {layout_rows, offsetof(struct report_options, layout), false},
						    {input_rows, offsetof(struct report_options, input), false},
						    {analysis_rows, 0, false},
						    {NULL, 0, false}};
static const struct option_grammar grammar = {.command = "report", .groups = report_groups, .dashes = "-"};

static int report_run(int argc, char **argv)
{
	struct report_options options = {.format = REPORT_TEXT, .short_ns = SUMMARY_SHORT_NS};
	int status = CLI_FAILED;
	filter_options_init(&options.filter, "report");
	if (options_parse(&grammar, argc, argv, &options, set_path, NULL)) {
		status = CLI_FAILED;
	} else if (options.has_more && options.format == REPORT_JSON) {
		status = cli_fail("-more is for text: -format json has all lists");
	} else {
		if (options.format != REPORT_TEXT)
			asking_be_silent();
		options.has_top = options.top != 0;
		options.top = options.has_top ? options.top : TOP_DEFAULT;
		char *path = cli_trace_path(options.input.path);
		status = !path                           ? CLI_FAILED
			 : options.format == REPORT_HTML ? page_write(&options, path)
							 : trace_show(&options, path);
		image_say_what_is_on();
		free(path);
	}
	filter_options_fini(&options.filter);
	input_fini(&options.input);
	return status;
}

const struct command command_report = {
	.name = "report",
	.usage = "[FILE | -session NAME] [FILTER...]",
	.summary = "the first answer: the peak, what grows, what is worth a look",
	.run = report_run,
	.options = &grammar,
	.help = "One screen shows the peak with its stacks, the stacks that grow, at most five findings, each with\n"
		"the command that shows its evidence, the live memory over time, and the processes.\n\n"
		"Without FILE: the newest xheap.*.xht here.\n\n"
		"Example:\n  xheap report xheap.jq.4711.xht\n",
};
