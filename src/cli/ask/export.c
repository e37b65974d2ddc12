/* SPDX-License-Identifier: MIT */
/* xheap export: a trace in the format of another tool. */
#include <unistd.h>

#include "action/actions/action_table.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/heap_options.h"
#include "cli/cli.h"
#include "cli/formats.h"

enum { FORMAT_NONE = -1 };

/* The report that is exported: of all stacks. */
struct export_options {
	struct heap_options heap;
	bool has_short_names;
};

static int set_input(void *context, char *word)
{
	return input_take_path(&((struct export_options *)context)->heap.input, word);
}

#define AT(member) OPTION_AT(struct export_options, member)

static const struct option export_rows[] = {
	{"format", .type = VALUE_CHOICE, AT(heap.format), .value = "NAME", .choices = export_choices,
	 .initial_help = "none: it has to be named", .help = "the format"},
	{"o", .type = VALUE_TEXT, AT(heap.output), .value = "FILE",
	 .help = "write to FILE, which appears whole or not at all, and compressed if it ends with .gz or .zst; else "
		 "to standard output"},
	{"shortNames", .type = VALUE_ON, AT(has_short_names), .help = "names of functions as reports show them"},
	{"by", .type = VALUE_CHOICE, AT(heap.by), .value = "WHAT", .choices = heap_by_choices,
	 .help = "keep apart: a label of each sample, or the outermost frame"},
	{"timing", .type = VALUE_ON, AT(heap.is_timed), .help = "print on standard error how long each step took"},
	{.type = VALUE_TITLE, .help = "Filters; an allocation passes all of them:"},
	{.type = VALUE_END},
};
static const struct option input_rows[] = {INPUT_SESSION_OPTION, {.type = VALUE_END}};

static const struct option_group export_groups[] = {
	{export_rows, 0, false},
	FILTER_OPTION_GROUPS(offsetof(struct export_options, heap.filter)),
	{heap_frame_rows, offsetof(struct export_options, heap), false},
	{input_rows, offsetof(struct export_options, heap.input), false},
	{analysis_rows, 0, false},
	{NULL, 0, false},
};
static const struct option_grammar grammar = {.command = "export", .groups = export_groups, .dashes = "-"};

static int settle(struct export_options *options)
{
	struct heap_options *heap = &options->heap;
	if (heap->format == FORMAT_NONE)
		return cli_fail("export: -format is missing; xheap help export lists the formats");
	const struct export_format *format = &export_formats[heap->format];
	if (format->flags & EXPORT_BINARY && !heap->output && isatty(STDOUT_FILENO))
		return cli_fail("export: %s is no text for a terminal: write -o FILE", format->name);
	heap->layout.has_full_names = !options->has_short_names;
	heap->with_lines |= (format->flags & EXPORT_LINES) != 0;
	return heap_options_settle(heap);
}

static int export_run(int argc, char **argv)
{
	struct export_options options = {.heap = {.top = HEAP_TOP_DEFAULT, .format = FORMAT_NONE}};
	struct window_word word = {.path = NULL};
	filter_options_init(&options.heap.filter, "export");
	int status = CLI_FAILED;
	if (!options_parse(&grammar, argc, argv, &options, set_input, NULL) && !settle(&options))
		word.path = cli_trace_path(options.heap.input.path);
	if (word.path)
		status = heap_show(&options.heap, &word, 1, NULL);
	window_word_fini(&word);
	heap_options_fini(&options.heap);
	return status;
}

const struct command command_export = {
	.name = "export",
	.usage = "[FILE] -format NAME [-o OUT] [FILTER...]",
	.summary = "write a trace in the format of another tool",
	.run = export_run,
	.options = &grammar,
	.help = "Without FILE: the newest xheap.*.xht here.\n\n"
		"Example:\n  xheap export xheap.jq.4711.xht -format pprof -o jq.pb.gz\n",
};
