/* SPDX-License-Identifier: MIT */
/* xheap dump: all that is in a trace, row by row: events in the order of their times, or one of the dictionaries. */
#include "cli/ask/dump.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/early_end.h"
#include "action/report/losses.h"
#include "base/sink.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "cli/ask/analysis_options.h"
#include "cli/ask/dump_rows.h"
#include "cli/formats.h"
#include "cli/input.h"
#include "export/compression.h"
#include "export/export.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum {
	SUBJECT_EVENTS,
	SUBJECT_STACKS,
	SUBJECT_IMAGES,
	SUBJECT_PROCESSES,
	SUBJECT_ALLOCATIONS,
	SUBJECT_MEMORY,
	SUBJECT_MAPPINGS
};
static const struct dump_subject *const subjects[] = {
	[SUBJECT_EVENTS] = &dump_events,           [SUBJECT_STACKS] = &dump_stacks,
	[SUBJECT_IMAGES] = &dump_images,           [SUBJECT_PROCESSES] = &dump_processes,
	[SUBJECT_ALLOCATIONS] = &dump_allocations, [SUBJECT_MEMORY] = &dump_memory,
	[SUBJECT_MAPPINGS] = &dump_mappings,
};

static int set_subject(void *context, struct words *words, int number)
{
	(void)words;
	((struct dump_options *)context)->subject = number;
	return 0;
}

static int set_path(void *context, char *word)
{
	return input_take_path(&((struct dump_options *)context)->input, word);
}

/* Where the rows go: standard output, or a file that is there whole or not at all. */
struct dump_output {
	struct cli_output standard;
	struct whole_file file;
	struct sink sink; /* of the file */
	struct compression *compression;
	bool has_file;
};

static int output_open(struct dump_output *output, const struct dump_options *options, const char *path)
{
	enum { SAVE_BYTES = 1 << 16 };
	struct diag diag = {""};
	output->has_file = options->output != NULL;
	if (!output->has_file) {
		cli_output_open(&output->standard, options->format == REPORT_TEXT);
		return CLI_OK;
	}
	int error = asking_check_output(options->output, path, &diag);
	int kind = error ? error : compression_of(options->output, false, &diag);
	error = kind < 0 ? kind : whole_file_open_as_is(&output->file, options->output, 0666, &diag);
	if (error)
		return cli_fail("%s", diag.text);
	sink_to_fd(&output->sink, output->file.fd, SAVE_BYTES);
	output->compression = compression_new((enum compression_kind)kind, &output->sink);
	return CLI_OK;
}

static int output_close(struct dump_output *output, bool is_whole)
{
	struct diag diag = {""};
	if (!output->has_file)
		return cli_output_close(&output->standard);
	compression_end(output->compression);
	int error = sink_end(&output->sink);
	if (error)
		diag_fail(&diag, -error, "cannot write %s: %s", output->file.path, strerror(-error));
	if (error || !is_whole)
		whole_file_abandon(&output->file);
	else
		error = whole_file_commit(&output->file, &diag);
	return error ? cli_fail("%s", diag.text) : CLI_OK;
}

/* Say how a trace ends that has no end of its own. */
static void say_end(const char *path, const struct trace_dictionary *dictionary)
{
	struct sink text;
	sink_to_memory(&text);
	losses_text_end(&text, path, dictionary);
	char *words = sink_take(&text, NULL);
	cli_say("%s %s", path, words);
	free(words);
}

static int dump_show(struct dump_options *options, struct opened_trace *opened)
{
	struct diag diag = {""};
	struct dump_output output;
	struct heap_range range = {INT64_MIN, INT64_MAX};
	const char *path = opened->path;
	const struct trace *trace = opened->trace;
	const struct dump_subject *subject = subjects[options->subject];
	if (subject == &dump_stacks &&
	    (trace_has_python(trace_dictionary(trace)) || trace_has_jit(trace_dictionary(trace))))
		subject = &dump_managed_stacks;
	const struct analysis_caller caller = asking_caller();
	if (analysis_range(&options->filter.asked, trace, true, &range, &diag))
		return cli_fail("%s", diag.text);
	analysis_tell_outside(&options->filter.asked.filter, range, trace, &caller);
	int status = output_open(&output, options, path);
	if (status != CLI_OK)
		return status;
	struct dump dump = {
		.options = options,
		.opened = opened,
		.path = path,
		.trace = trace,
		.columns = subject->columns,
		.column_count = subject->count,
		.format = options->format,
		.range = range,
		.out = output.has_file ? compression_sink(output.compression) : &output.standard.sink,
		.row = {.dictionary = trace_dictionary(trace), .listed = {.dictionary = trace_dictionary(trace)}}};
	if (!dump.columns)
		dump_list_columns(&dump, subject->source);
	if (options->subject == SUBJECT_STACKS && !options->has_whole_stacks)
		dump.column_count--;
	if (options->subject == SUBJECT_MEMORY && !dump.row.dictionary->resident_count)
		dump.column_count = DUMP_MEMORY_PLAIN_COLUMNS;
	if (!dump.row.dictionary->is_complete)
		say_end(path, dump.row.dictionary);
	early_end_text(cli_stderr(), dump.row.dictionary, "xheap: ");
	if (options->subject == SUBJECT_ALLOCATIONS)
		losses_text_earlier(cli_stderr(), dump.row.dictionary, "xheap: ");
	if (dump.row.dictionary->fold_count &&
	    (options->subject == SUBJECT_EVENTS || options->subject == SUBJECT_ALLOCATIONS))
		cli_say("%s: %s events are folded: blocks that ended among them are not listed; xheap info shows the "
			"time",
			path, text_count(dump.row.dictionary->folded_count).data);
	dump_write_header(&dump);
	int error = subject->run(&dump, &diag);
	status = output_close(&output, !error);
	/* Above 0: said already. */
	return error > 0 ? error : error ? cli_fail("%s: %s", path, diag.text) : status;
}

static int dump_file(struct dump_options *options)
{
	struct opened_trace *opened;
	char *path = cli_trace_path(options->input.path);
	int status = path ? asking_open_trace(&opened, path) : CLI_FAILED;
	if (status == CLI_OK) {
		status = dump_show(options, opened);
		opened_trace_release(opened);
	}
	free(path);
	return status;
}

#define SUBJECT(place) .type = VALUE_TAKEN, .take = set_subject, .number = (place)

static const struct option dump_option_rows[] = {
	{"events", SUBJECT(SUBJECT_EVENTS), .help = "every heap call in the order of time (the default)"},
	{"allocations", SUBJECT(SUBJECT_ALLOCATIONS),
	 .help = "every block: where and when it began and ended, and which call freed it; takes the filters of xheap "
		 "heap"},
	{"stacks", SUBJECT(SUBJECT_STACKS),
	 .help = "the tree of stacks, a row for each frame: events name its stack_id, and parent_id is the row of the "
		 "caller"},
	{"wholeStacks", .type = VALUE_ON, OPTION_AT(struct dump_options, has_whole_stacks),
	 .help = "with -stacks: the text of the whole stack in each row"},
	{"images", SUBJECT(SUBJECT_IMAGES), .help = "which file was mapped where, in which process"},
	{"processes", SUBJECT(SUBJECT_PROCESSES), .help = "processes and how they ended"},
	{"memory", SUBJECT(SUBJECT_MEMORY),
	 .help = "the resident memory of each process, whenever it had changed, and at rising maxima by kind of "
		 "mapping"},
	{"mappings", SUBJECT(SUBJECT_MAPPINGS), .help = "the largest mappings of each process at these maxima"},
	FORMAT_OPTION(struct dump_options, format, report_formats_of_lists),
	{"o", .type = VALUE_TEXT, OPTION_AT(struct dump_options, output), .value = "FILE",
	 .help = "write the rows to FILE"},
	{.type = VALUE_END},
};

static const struct option_group dump_groups[] = {
	{dump_option_rows, 0, false},
	{filter_range_rows, offsetof(struct dump_options, filter), false},
	{filter_moment_rows, offsetof(struct dump_options, filter), false},
	{filter_rows, offsetof(struct dump_options, filter), true},
	{analysis_rows, 0, false},
	{NULL, 0, false},
};
static const struct option_grammar grammar = {.command = "dump", .groups = dump_groups, .dashes = "-"};

static int dump_run(int argc, char **argv)
{
	struct dump_options options = {.subject = 0};
	filter_options_init(&options.filter, "dump");
	options.filter.asked.filter.nesting = HEAP_NESTING_ALL;
	int status = options_parse(&grammar, argc, argv, &options, set_path, NULL);
	if (!status && options.filter.asked.note_count && options.subject != SUBJECT_ALLOCATIONS)
		status = cli_fail("-%s is for -allocations", options.filter.asked.notes[0].name);
	if (!status && options.has_whole_stacks && options.subject != SUBJECT_STACKS)
		status = cli_fail("-wholeStacks is for -stacks");
	if (!status)
		status = dump_file(&options);
	filter_options_fini(&options.filter);
	return status;
}

const struct command command_dump = {
	.name = "dump",
	.usage = "[FILE] [-events|-allocations|-stacks|-images|-processes|-memory] [OPTIONS]",
	.summary = "print all that a trace holds",
	.run = dump_run,
	.options = &grammar,
	.help = "JSON is one object on each line; a value that is absent has no key.\n"
		"Without FILE: the newest xheap.*.xht here.\n\n"
		"Example:\n  xheap dump xheap.jq.4711.xht -range 0 10ms -format csv\n",
};
