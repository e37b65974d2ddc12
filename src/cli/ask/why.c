/* SPDX-License-Identifier: MIT */
/* xheap why: the resident memory of a process, to the page. */
#include <stdlib.h>
#include <strings.h>

#include "action/why/why.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/filter_options.h"
#include "cli/formats.h"
#include "cli/input.h"
#include "cli/layout_options.h"

enum { ROWS = 5 };

struct why_options {
	struct filter_options filter; /* of which only -at counts */
	struct input input;
	struct layout_options layout;
	struct why_question question;
	const char *output;
	uint32_t live_pid;
	bool has_moment; /* -at was given */
	int format;
};

/* ---- the command line ---- */

static int take_operand(void *context, char *word)
{
	return input_take_path(&((struct why_options *)context)->input, word);
}

static int take_moment(void *context, struct words *words, int number)
{
	struct why_options *options = context;
	struct diag diag = {""};
	const char *word = options_value(words, "at");
	(void)number;
	if (!word)
		return CLI_FAILED;
	bool is_peak = strcasecmp(word, "peak") == 0;
	options->has_moment = true;
	options->question.which = is_peak                        ? ACCOUNT_LARGEST
				  : strcasecmp(word, "end") == 0 ? ACCOUNT_LAST
								 : ACCOUNT_NEAREST;
	if (options->question.which != ACCOUNT_NEAREST)
		return 0;
	return filter_word_take(&options->filter.asked, &filter_words[FILTER_WORD_AT], 0, (char *)word, &diag)
		       ? cli_fail("%s", diag.text)
		       : 0;
}

static int options_settle(struct why_options *options)
{
	bool is_live = options->live_pid || options->input.session;
	if (options->live_pid && options->input.path)
		return cli_fail("-p names a process: leave out FILE and -session");
	if (options->live_pid && options->question.pid)
		return cli_fail("-pid is of a FILE or a session, and -p names a process already");
	if (options->live_pid && input_take_process(&options->input, options->live_pid))
		return CLI_FAILED;
	if (options->live_pid)
		options->question.pid = options->live_pid;
	if (!options->has_moment)
		options->question.which = is_live ? ACCOUNT_LAST : ACCOUNT_LARGEST;
	return 0;
}

/* ---- the answer ---- */

struct why_answer {
	const struct why_options *options;
	struct analysis analysis;
	struct why why;
};

static int answer_make(void *context, struct diag *diag)
{
	struct why_answer *answer = context;
	const struct heap_moment *moment = &answer->analysis.sources[0].filter->moment;
	struct why_question question = answer->options->question;
	question.time_ns = moment->at.time_ns;
	action_input_settle(&answer->analysis.input);
	return why_make(&answer->why, &answer->analysis.input, &question, diag);
}

static void answer_undo(void *context)
{
	why_fini(&((struct why_answer *)context)->why);
}

static void answer_write(void *context, struct sink *out)
{
	struct why_answer *answer = context;
	(answer->options->format == REPORT_JSON ? why_json : why_text)(&answer->why, out);
}

static int trace_show(struct why_options *options, char *path)
{
	struct heap_cull cull = {.with_entries = false};
	const struct window_word word = {.path = path};
	struct why_answer answer = {.options = options};
	const struct cli_answer shown = {.make = answer_make,
					 .undo = answer_undo,
					 .write = answer_write,
					 .context = &answer,
					 .output = options->output,
					 .is_text = options->format == REPORT_TEXT};
	struct analysis_request request = asking_request(&word, 1);
	request.asked = &options->filter.asked;
	request.cull = &cull;
	request.session = options->input.session;
	request.layout = layout_options_settle(&options->layout, options->output != NULL);
	heap_cull_use_default(&cull);
	int status = asking_show(&answer.analysis, &request, &shown);
	heap_cull_fini(&cull);
	return status;
}

#define AT(member) OPTION_AT(struct why_options, member)
static const struct option why_rows[] = {
	{"p", .type = VALUE_NUMBER, AT(live_pid), .value = "PID", .least = 1, .most = INT32_MAX,
	 .help = "this process, as it is now: a session has to record it"},
	{"pid", .type = VALUE_NUMBER, AT(question.pid), .value = "PID", .least = 1, .most = INT32_MAX,
	 .help = "the process of the trace (default: the largest one, or with -at end, the last one read)"},
	{"at", .type = VALUE_TAKEN, .take = take_moment, .value = "P",
	 .help = "peak: at the largest reading (default); end: at the last one (default with -p and -session); or the "
		 "reading nearest to a time or a position"},
	{"top", .type = VALUE_NUMBER, AT(question.top), .value = "N", .least = 1, .most = UINT32_MAX, .initial = ROWS,
	 .help = "at most N stacks and heaps of each kind (default: 5)"},
	{.type = VALUE_END},
};
static const struct option input_rows[] = {INPUT_SESSION_OPTION, {.type = VALUE_END}};
static const struct option output_rows[] = {
	FORMAT_OPTION(struct why_options, format, report_formats_without_csv),
	{"o", .type = VALUE_TEXT, AT(output), .value = "FILE", .help = "write the answer to FILE"},
	{.type = VALUE_END},
};
static const struct option_group why_groups[] = {
	{why_rows, 0, false},
	{output_rows, 0, false},
	{layout_rows, offsetof(struct why_options, layout), false},
	{input_rows, offsetof(struct why_options, input), false},
	{analysis_rows, 0, false},
	{NULL, 0, false},
};
static const struct option_grammar grammar = {.command = "why", .groups = why_groups, .dashes = "-"};

static int why_run(int argc, char **argv)
{
	struct why_options options = {.format = REPORT_TEXT, .question.top = ROWS};
	char *path = NULL;
	int status = CLI_FAILED;
	filter_options_init(&options.filter, "why");
	if (!options_parse(&grammar, argc, argv, &options, take_operand, NULL) && !options_settle(&options))
		path = cli_trace_path(options.input.path);
	if (options.format != REPORT_TEXT)
		asking_be_silent();
	if (path)
		status = trace_show(&options, path);
	free(path);
	filter_options_fini(&options.filter);
	input_fini(&options.input);
	return status;
}

const struct command command_why = {
	.name = "why",
	.usage = "[FILE | -p PID | -session NAME]",
	.summary = "account for the resident memory of a process, to the page",
	.run = why_run,
	.options = &grammar,
	.help = "Each resident byte is in one class: live blocks and their rounding; free memory on pages that few\n"
		"blocks keep (pinned), with the stacks that made these; free memory inside heaps, by whether\n"
		"malloc_trim(0) would return it; caches of threads; what other allocators keep; stacks, code and "
		"files,\n"
		"shared memory, the recorder. The classes sum to what the kernel counts as resident.\n\n"
		"The pages are those of a reading, which a recording takes at rising maxima, at its end, and when it\n"
		"is asked. Without FILE: the newest xheap.*.xht here.\n\n"
		"Examples:\n  xheap why xheap.server.4711.xht\n"
		"  xheap why -p $(pidof server)\n"
		"  xheap why xheap.server.4711.xht -at end -format json\n",
};
