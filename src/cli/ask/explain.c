/* SPDX-License-Identifier: MIT */
/* xheap explain: what happened to the memory at an address, or how a process came to its end. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "action/explain/explanation.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/filter_options.h"
#include "cli/formats.h"
#include "cli/input.h"
#include "cli/layout_options.h"

struct explain_options {
	struct filter_options filter; /* of which only -at has a row */
	struct input input;
	struct layout_options layout;
	struct explain_question question;
	const char *output, *core;
	uint32_t pid, live_pid;
	int format;
};

/* ---- the command line ---- */

/* Whether the word is an address: 0x and digits, or six hexadecimal digits and more that are no file. */
static bool is_address(const char *word)
{
	enum { DIGITS_LEAST = 6 };
	bool has_prefix = word[0] == '0' && (word[1] == 'x' || word[1] == 'X');
	const char *digits = has_prefix ? word + 2 : word;
	size_t count = strspn(digits, "0123456789abcdefABCDEF");
	return !digits[count] && (has_prefix ? count > 0 : count >= DIGITS_LEAST && access(word, F_OK));
}

static int take_address(struct explain_options *options, const char *word)
{
	errno = 0;
	options->question.address = strtoull(word, NULL, 16);
	options->question.has_address = true;
	return errno ? cli_fail("%s: an address has at most 16 digits", word) : 0;
}

static int take_file(struct explain_options *options, char *word)
{
	if (!corefile_is_one(word))
		return input_take_path(&options->input, word);
	if (options->core)
		return cli_fail("%s: one core at a time, and %s is named already", word, options->core);
	options->core = word;
	return 0;
}

/* FILE, a core, ADDRESS and POSITION, each of which may be left out. */
static int take_operand(void *context, char *word)
{
	struct explain_options *options = context;
	struct diag diag = {""};
	if (!options->question.has_address)
		return is_address(word) ? take_address(options, word) : take_file(options, word);
	if (options->filter.asked.moment)
		return cli_fail("%s: one ADDRESS and one POSITION at a time", word);
	return filter_word_take(&options->filter.asked, &filter_words[FILTER_WORD_AT], 0, word, &diag)
		       ? cli_fail("%s", diag.text)
		       : 0;
}

static int options_settle(struct explain_options *options)
{
	if (options->live_pid && (options->input.path || options->core))
		return cli_fail("-p: it takes the place of FILE");
	if (options->live_pid && options->pid)
		return cli_fail("-p and -pid: one process at a time");
	if (options->live_pid && input_take_process(&options->input, options->live_pid))
		return CLI_FAILED;
	options->question.pid = options->live_pid ? options->live_pid : options->pid;
	if (options->core && !options->input.path)
		return cli_fail("%s: a core needs the trace of its process: -trace FILE", options->core);
	if (options->core && options->pid)
		return cli_fail("-pid: the core says which process it is of");
	if (options->filter.asked.moment && !options->question.has_address)
		return cli_fail("-at: the ADDRESS is missing: xheap explain FILE ADDRESS -at P");
	return 0;
}

/* ---- the answer ---- */

struct explain_answer {
	const struct explain_options *options;
	struct analysis analysis;
	struct explanation explanation;
};

static int answer_make(void *context, struct diag *diag)
{
	struct explain_answer *answer = context;
	const struct heap_moment *moment = &answer->analysis.sources[0].filter->moment;
	struct explain_question question = answer->options->question;
	question.symbols = opened_trace_symbols(answer->analysis.opened[0]);
	question.at = moment->is_asked ? &moment->at : NULL;
	action_input_settle(&answer->analysis.input);
	return explanation_make(&answer->explanation, &answer->analysis.input, &question, diag);
}

static void answer_undo(void *context)
{
	explanation_fini(&((struct explain_answer *)context)->explanation);
}

static void answer_write(void *context, struct sink *out)
{
	struct explain_answer *answer = context;
	(answer->options->format == REPORT_JSON ? explanation_json : explanation_text)(&answer->explanation, out);
}

static int trace_show(struct explain_options *options, char *path)
{
	struct diag diag = {""};
	struct heap_cull cull = {.with_entries = false};
	const struct window_word word = {.path = path};
	struct explain_answer answer = {.options = options};
	const struct cli_answer shown = {.make = answer_make,
					 .undo = answer_undo,
					 .write = answer_write,
					 .context = &answer,
					 .output = options->output,
					 .is_text = options->format == REPORT_TEXT};
	struct corefile *core = NULL;
	struct analysis_request request = asking_request(&word, 1);
	request.asked = &options->filter.asked;
	request.cull = &cull;
	request.tells_outside = true;
	/* Two calls of one function may be of two lines. */
	request.with_lines = true;
	request.session = options->input.session;
	request.layout = layout_options_settle(&options->layout, options->output != NULL);
	heap_cull_use_default(&cull);
	int status = CLI_OK;
	if (options->core && corefile_open(&core, options->core, &diag))
		status = cli_fail("%s", diag.text);
	options->question.core = core;
	options->question.core_path = options->core;
	status = status ? status : asking_show(&answer.analysis, &request, &shown);
	heap_cull_fini(&cull);
	corefile_close(core);
	return status;
}

#define AT(member) OPTION_AT(struct explain_options, member)
static int take_trace(void *context, struct words *words, int number)
{
	(void)number;
	const char *word = options_value(words, "trace");
	return word ? input_take_path(&((struct explain_options *)context)->input, (char *)word) : CLI_FAILED;
}

static const struct option explain_rows[] = {
	{"trace", .type = VALUE_TAKEN, .take = take_trace, .value = "FILE",
	 .help = "the trace of the process that a core is of"},
	{"p", .type = VALUE_NUMBER, AT(live_pid), .value = "PID", .least = 1, .most = INT32_MAX,
	 .help = "this process, up to now: a session has to record it"},
	{"pid", .type = VALUE_NUMBER, AT(pid), .value = "PID", .least = 1, .most = INT32_MAX,
	 .help = "the process, if several have used the address or ended by a signal"},
	{.type = VALUE_END},
};
static const struct option input_rows[] = {INPUT_SESSION_OPTION, {.type = VALUE_END}};
static const struct option output_rows[] = {
	FORMAT_OPTION(struct explain_options, format, report_formats_without_csv),
	{"o", .type = VALUE_TEXT, AT(output), .value = "FILE", .help = "write the answer to FILE"},
	{.type = VALUE_END},
};
static const struct option_group explain_groups[] = {
	{explain_rows, 0, false},
	{filter_moment_rows, offsetof(struct explain_options, filter), false},
	{output_rows, 0, false},
	{layout_rows, offsetof(struct explain_options, layout), false},
	{input_rows, offsetof(struct explain_options, input), false},
	{analysis_rows, 0, false},
	{NULL, 0, false},
};
static const struct option_grammar grammar = {.command = "explain", .groups = explain_groups, .dashes = "-"};

static int explain_run(int argc, char **argv)
{
	struct explain_options options = {.format = REPORT_TEXT};
	char *path = NULL;
	int status = CLI_FAILED;
	filter_options_init(&options.filter, "explain");
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

const struct command command_explain = {
	.name = "explain",
	.usage = "[FILE | -p PID | CORE -trace FILE] [ADDRESS [POSITION]]",
	.summary = "explain a crash, or what happened to the memory at an address",
	.run = explain_run,
	.options = &grammar,
	.help = "Without ADDRESS: how a process came to its end by a signal. A double free, a free of what no call\n"
		"returned, and damaged data of the allocator are named, each as certain or likely, with the stacks of\n"
		"the call, of the allocation and of the free before.\n"
		"With CORE, of a process that the trace has: also uses of freed blocks, writes beyond a block, the C\n"
		"library's message, and registers and words of the stack that point into blocks.\n"
		"With ADDRESS: the block that it lies in at POSITION (a time or a position, as -at has it; default: "
		"the\n"
		"end), who allocated and freed it, blocks that were there before and later, and live neighbours.\n\n"
		"Without FILE: the newest xheap.*.xht here.\n\n"
		"Examples:\n  xheap explain xheap.server.4711.xht\n"
		"  xheap explain xheap.server.4711.xht 0x55d8821632a0 12.5s\n",
};
