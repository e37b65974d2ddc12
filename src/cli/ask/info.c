/* SPDX-License-Identifier: MIT */
/* xheap info: what is in a trace. */
#include <stddef.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/ask/info.h"
#include "cli/ask/info_json.h"
#include "cli/ask/info_text.h"
#include "cli/formats.h"
#include "cli/image/image.h"
#include "cli/input.h"
#include "cli/layout_options.h"
#include "cli/option_parser.h"
#include "match/match.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

struct info_options {
	struct input input;
	struct layout_options layout;
	int format;
};

const char *const info_kind_words[] = {
#define X(id, action, word) word,
	EVENT_KINDS(X)
#undef X
};

static int set_path(void *context, char *word)
{
	return input_take_path(&((struct info_options *)context)->input, word);
}

static int info_read(struct info *info, const struct trace *trace, struct diag *diag)
{
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	bool has_forks = false;
	info->dictionary = dictionary;
	info->process_events = memory_zeroed(dictionary->process_count, sizeof(*info->process_events));
	info->process_threads = memory_zeroed(dictionary->process_count, sizeof(*info->process_threads));
	for (uint32_t i = 0; i < trace_block_count(trace); i++) {
		struct trace_block head;
		trace_block_head(trace, i, &head);
		info->process_events[dictionary->threads[head.thread].process] += head.count;
	}
	for (uint32_t i = 0; i < dictionary->thread_count; i++)
		info->process_threads[dictionary->threads[i].process] += dictionary->threads[i].tid != TRACE_TID_NONE;
	if (dictionary->resident_count)
		info->residents = resident_list(dictionary);
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		has_forks |= dictionary->processes[i].forked_from != TRACE_NONE;
	return has_forks ? heap_table_build(&info->table, trace, NULL, diag) : 0;
}

static int info_show(struct info_options *options, const char *path)
{
	struct diag diag = {""};
	struct trace *trace;
	struct cli_output output;
	struct info info = {.path = path, .layout = layout_options_settle(&options->layout, false)};
	if (trace_open(&trace, path, &diag))
		return cli_fail("%s", diag.text);
	int status = info_read(&info, trace, &diag) ? cli_fail("%s: %s", path, diag.text) : CLI_OK;
	if (status == CLI_OK) {
		cli_output_open(&output, options->format == REPORT_TEXT);
		(options->format == REPORT_JSON ? info_json : info_text)(&info, &output.sink);
		status = cli_output_close(&output);
	}
	heap_table_free(info.table);
	free(info.process_events);
	free(info.process_threads);
	free(info.residents);
	trace_close(trace);
	return status;
}

static const struct option info_rows[] = {
	FORMAT_OPTION(struct info_options, format, report_formats_without_csv),
	{.type = VALUE_END},
};
static const struct option_group info_groups[] = {
	{info_rows, 0, false},
	{layout_info_rows, offsetof(struct info_options, layout), false},
	{NULL, 0, false},
};
static const struct option_grammar grammar = {.command = "info", .groups = info_groups, .dashes = "-"};

static int info_run(int argc, char **argv)
{
	struct info_options options = {.format = REPORT_TEXT};
	if (options_parse(&grammar, argc, argv, &options, set_path, NULL))
		return CLI_FAILED;
	char *path = cli_trace_path(options.input.path);
	int status = path ? info_show(&options, path) : CLI_FAILED;
	image_say_what_is_on();
	free(path);
	return status;
}

const struct command command_info = {
	.name = "info",
	.usage = "[FILE] [OPTIONS]",
	.summary = "describe a trace and its recording",
	.run = info_run,
	.options = &grammar,
	.help = "The answer has counts of events and losses, the processes and how they ended, the session's options,\n"
		"and what tracing cost.\n"
		"Without FILE: the newest xheap.*.xht here.\n\n"
		"Example:\n  xheap info xheap.jq.4711.xht -format json\n",
};
