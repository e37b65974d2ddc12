/* SPDX-License-Identifier: MIT */
/* xheap report: the first answer to where the memory went, on a screen. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "action/summary/summary.h"
#include "base/whole_file.h"
#include "cli/ask/analysis.h"
#include "cli/ask/filter_options.h"
#include "cli/formats.h"
#include "cli/image/image.h"
#include "cli/layout_options.h"
#include "query/folded.h"

enum { TOP_DEFAULT = 5, LINES_MOST = 40, SAVE_BYTES = 1 << 16 };
enum { REPORT_AGAIN = -1 }; /* in place of a status: the index is damaged, and nothing has been shown */

struct report_options {
	struct filter_options filter;
	struct input input;
	struct layout_options layout;
	const char *output;
	uint64_t top;
	int format;
	int64_t short_ns;
	bool has_more, without_default_cull;
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

/* ---- the output ---- */

static void summary_write(const struct report_options *options, const struct summary *summary, struct sink *out)
{
	const struct summary_view view = {.lines =
						  options->has_more || options->layout.has_all_frames ? 0 : LINES_MOST};
	if (options->format == REPORT_JSON)
		summary_json(summary, out);
	else
		summary_text(summary, &view, out);
}

static int summary_save(const struct report_options *options, const struct summary *summary,
			const struct analysis *analysis, struct diag *diag)
{
	struct whole_file file;
	struct stat status;
	struct sink out;
	if (!stat(options->output, &status) && symbols_read_file(analysis->symbols, &status))
		return diag_fail(diag, EINVAL, "cannot write %s: it is one of the files that are read",
				 options->output);
	int error = whole_file_open_as_is(&file, options->output, 0666, diag);
	if (error)
		return error;
	sink_to_fd(&out, file.fd, SAVE_BYTES);
	summary_write(options, summary, &out);
	error = sink_end(&out);
	if (!error)
		return whole_file_commit(&file, diag);
	whole_file_abandon(&file);
	return diag_fail(diag, -error, "cannot write %s: %s", options->output, strerror(-error));
}

static int summary_print(const struct report_options *options, struct summary *summary)
{
	struct cli_output output;
	cli_output_open(&output, options->format == REPORT_TEXT);
	summary->input->is_colored = output.is_colored;
	summary_write(options, summary, &output.sink);
	return cli_output_close(&output);
}

/* Nothing is shown of what a damaged index answers. */
static int summary_show(const struct report_options *options, struct action_input *input,
			const struct analysis *analysis)
{
	const struct filter_request *asked = &options->filter.asked;
	const struct summary_plan plan = {.short_ns = options->short_ns,
					  .top = options->top,
					  .filters = asked->notes,
					  .filter_count = asked->note_count,
					  .has_range = asked->range.words[0] != NULL,
					  .is_filtered = asked->note_count > 0,
					  .is_screen = options->format == REPORT_TEXT && !options->has_more};
	struct summary summary;
	struct diag diag = {""};
	int status = REPORT_AGAIN;
	summary_make(&summary, input, &plan);
	if (analysis_is_good(analysis->table) && !options->output)
		status = summary_print(options, &summary);
	else if (analysis_is_good(analysis->table))
		status = summary_save(options, &summary, analysis, &diag) ? cli_fail("%s", diag.text) : CLI_OK;
	summary_fini(&summary);
	return status;
}

/* ---- the question ---- */

static int source_show(struct report_options *options, struct action_input *input, const struct analysis *analysis)
{
	struct action_source *source = &input->sources[0];
	struct heap_range range = {0, source->table->duration_ns};
	struct heap_window window;
	struct diag diag = {""};
	struct heap_filter *filter = &options->filter.asked.filter;
	if (filter_range(&options->filter, source->trace, &range))
		return CLI_FAILED;
	filter->is_partial = options->filter.asked.range.words[0] || options->filter.asked.moment;
	if (source->table->sample_bytes && filter->nesting == HEAP_NESTING_INNERMOST)
		return cli_fail("%s is a sample: -innermost needs every event, since blocks that others lie in may be "
				"missing",
				source->path);
	int status = filter_prepare(&options->filter, source->table, source->names);
	if (status != CLI_OK)
		return status;
	if (heap_folded_check(source->table, filter, range, HEAP_BY_NONE, &diag))
		return cli_fail("%s: %s", source->path, diag.text);
	heap_window_make(&window, source->table, filter, range, HEAP_BY_NONE, false);
	source->window = &window;
	status = summary_show(options, input, analysis);
	heap_window_fini(&window);
	return status;
}

static int analysis_show(struct report_options *options, const struct analysis *analysis)
{
	struct heap_cull cull = {.with_entries = false};
	struct action_source source = analysis_source(analysis, &options->filter.asked.filter);
	struct action_input input = {.sources = &source, .source_count = 1, .asks_packages = true, .cull = &cull};
	source.session = options->input.session;
	input.layout = layout_options_settle(&options->layout, options->output != NULL);
	if (!options->without_default_cull)
		heap_cull_use_default(&cull);
	int status = source_show(options, &input, analysis);
	action_input_fini(&input);
	heap_cull_fini(&cull);
	return status;
}

/* Refuse to write the report over the trace or its index. */
static int output_check(const struct report_options *options, const char *path)
{
	char *indexes[ANALYSIS_INDEX_PLACES];
	struct diag diag = {""};
	analysis_index_paths(indexes, path);
	int error = whole_file_check(options->output, &path, 1, &diag);
	error = error ? error
		      : whole_file_check(options->output, (const char *const *)indexes, ANALYSIS_INDEX_PLACES, &diag);
	for (unsigned i = 0; i < ANALYSIS_INDEX_PLACES; i++)
		free(indexes[i]);
	return error ? cli_fail("%s", diag.text) : CLI_OK;
}

static int trace_show(struct report_options *options, const char *path)
{
	struct analysis analysis;
	int status;
	if (options->format != REPORT_TEXT)
		analysis_be_silent();
	if ((options->output && output_check(options, path)) || analysis_open(&analysis, path, false))
		return CLI_FAILED;
	while ((status = analysis_show(options, &analysis)) == REPORT_AGAIN)
		if (analysis_mend(&analysis) != CLI_OK) {
			status = CLI_FAILED;
			break;
		}
	analysis_close(&analysis);
	return status;
}

/* ---- the command ---- */

#define AT(member) OPTION_AT(struct report_options, member)
/* clang-format off */
static const struct option report_rows[] = {
	{"top", .type = VALUE_NUMBER, AT(top), .value = "N", .least = 1, .most = UINT32_MAX, .initial = TOP_DEFAULT,
	 .help = "at most N stacks of each list"},
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
	FORMAT_OPTION(struct report_options, format, report_formats_without_csv),
	{"o", .type = VALUE_TEXT, AT(output), .value = "FILE", .help = "write the report to FILE"},
	{.type = VALUE_END},
};
/* clang-format on */
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
	struct report_options options = {.top = TOP_DEFAULT, .format = REPORT_TEXT, .short_ns = 10000};
	int status = CLI_FAILED;
	filter_options_init(&options.filter, "report");
	if (options_parse(&grammar, argc, argv, &options, set_path, NULL)) {
		status = CLI_FAILED;
	} else if (options.has_more && options.format == REPORT_JSON) {
		status = cli_fail("-more is for text: -format json has all lists");
	} else {
		char *path = cli_trace_path(options.input.path);
		status = path ? trace_show(&options, path) : CLI_FAILED;
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
