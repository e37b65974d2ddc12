/* SPDX-License-Identifier: MIT */
/*
 * xheap report: the first answer to where the memory went, on a screen: live bytes over time, the stacks of the peak,
 * the stacks that allocated most, temporary and unfreed blocks, and the next commands to type.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/losses.h"
#include "action/report.h"
#include "action/stack_view.h"
#include "base/memory.h"
#include "base/style.h"
#include "base/text.h"
#include "cli/analysis.h"
#include "cli/layout_options.h"
#include "cli/option_parser.h"
#include "query/extents.h"
#include "query/folded.h"
#include "query/peak.h"

enum {
	CHART_COLUMNS = 64,
	CHART_MARGIN = 14,
	CHART_ROWS = 5,
	EIGHTHS = 8,
	ROWS_MAX = 5,
	FRAMES_MAX = 8,
	INDENT = 10,
	PERCENT = 100,
	THOUSAND = 1000
};

struct view {
	struct report report;
	struct action_source source;
	struct action_input input;
	struct heap_window window;
	struct sink *out, lines;
};

static void heading(const struct view *view, const char *text)
{
	sink_put(view->out, '\n');
	style_lines(view->out, view->input.is_colored, STYLE_HEADING, text);
}

/* Lines of any width are written between wrap_begin() and wrap_end(), which breaks them. */
static struct sink *wrap_begin(struct view *view)
{
	struct sink *out = view->out;
	sink_to_memory(&view->lines);
	view->out = &view->lines;
	return out;
}

static void wrap_end(struct view *view, struct sink *out)
{
	char *text = sink_take(&view->lines, NULL);
	view->out = out;
	text_wrap(out, text, &view->input.layout);
	free(text);
}

static bool is_sample(const struct view *view)
{
	return view->source.table->sample_bytes > 0;
}

/* The time of which each block is known. */
static struct heap_range whole_range(const struct view *view)
{
	int64_t until_ns = heap_folded_until_ns(view->source.table), duration_ns = view->source.table->duration_ns;
	return (struct heap_range){until_ns < 0 ? 0 : until_ns < duration_ns ? until_ns : duration_ns, duration_ns};
}

/* ---- the chart ---- */

/* Print a cell of the chart, of which `eighths` are filled. */
static void chart_cell(const struct view *view, unsigned eighths)
{
	static const char *const blocks[EIGHTHS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	sink_text(view->out, view->input.layout.has_unicode ? blocks[eighths]
			     : eighths > EIGHTHS / 2        ? "#"
			     : eighths                      ? "."
							    : " ");
}

static void chart_print(const struct view *view)
{
	const unsigned width = view->input.layout.width;
	const int columns = width && width < CHART_COLUMNS + CHART_MARGIN ? (int)width - CHART_MARGIN : CHART_COLUMNS;
	struct heap_peak most[CHART_COLUMNS];
	uint64_t highest = 0;
	struct heap_range range = whole_range(view);
	heap_peaks(most, (unsigned)columns, view->source.table, view->source.filter, range);
	for (int i = 0; i < columns; i++)
		highest = most[i].bytes > highest ? most[i].bytes : highest;
	if (!highest)
		return;
	heading(view, "Live over time");
	for (unsigned row = CHART_ROWS; row-- > 0;) {
		sink_format(view->out, "  %10s %s",
			    row == CHART_ROWS - 1 ? report_bytes(&view->source, highest).data
			    : row                 ? ""
						  : "0",
			    view->input.layout.has_unicode ? "│" : "|");
		sink_text(view->out, style_begin(view->input.is_colored, STYLE_CHART));
		for (int i = 0; i < columns; i++) {
			uint64_t filled = (uint64_t)((unsigned __int128)most[i].bytes * CHART_ROWS * EIGHTHS / highest),
				 floor = (uint64_t)row * EIGHTHS;
			/* A column with any live memory shows something. */
			filled += !filled && most[i].bytes;
			chart_cell(view, filled <= floor            ? 0
					 : filled - floor > EIGHTHS ? EIGHTHS
								    : (unsigned)(filled - floor));
		}
		sink_format(view->out, "%s\n", style_end(view->input.is_colored, STYLE_CHART));
	}
	const struct text from = range.from_ns ? text_duration(range.from_ns) : (struct text){"0"};
	sink_format(view->out, "  %10s  %s%*s\n", "", from.data, columns - (int)strlen(from.data),
		    text_duration(range.to_ns).data);
}

/* ---- what there was ---- */

/* Bytes that allocators gave beyond what was asked for, and blocks of which that is not known. */
struct rounding {
	uint64_t bytes, unknown_count;
};

static void rounding_add(struct rounding *rounding, const struct heap_details *details)
{
	rounding->bytes += heap_slack(details);
	rounding->unknown_count += details->slack_bytes == HEAP_SLACK_UNKNOWN;
}

static struct rounding rounding_at_peak(const struct view *view)
{
	int64_t time_ns = view->window.peak_at_ns;
	const struct heap_scan_plan plan = {time_ns, time_ns, time_ns, PACK_DETAILS | PACK_TIMES, NULL, NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	struct rounding rounding = {0, 0};
	heap_scan_begin(&scan, view->source.table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			if (heap_is_live_at(&row, time_ns))
				rounding_add(&rounding, &rows->details[i]);
		}
	heap_scan_end(&scan);
	return rounding;
}

/* ---- the resident set ---- */

/* Where the resident set of a process was largest, of those that the logger saw. */
static const struct trace_sample *largest_sample(const struct trace_dictionary *dictionary)
{
	const struct trace_sample *largest = NULL;
	for (uint32_t i = 0; i < dictionary->sample_count; i++)
		if (!largest || dictionary->samples[i].resident_bytes > largest->resident_bytes)
			largest = &dictionary->samples[i];
	return largest;
}

/* The parts of a resident set. */
struct split {
	uint64_t live_bytes, page_bytes; /* page_bytes: of all pages that blocks have lain in up to then */
	struct rounding rounding;
};

static struct split split_make(const struct heap_table *table, uint32_t process, int64_t time_ns)
{
	const struct heap_scan_plan plan = {INT64_MIN, time_ns, INT64_MIN, PACK_DETAILS | PACK_TIMES | PACK_SIZES,
					    NULL,      NULL};
	struct split split = {.live_bytes = 0};
	struct heap_extents extents = {0};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct heap_allocation allocation = heap_rows_get(rows, i);
			if (allocation.birth_ns > time_ns ||
			    table->dictionary->threads[allocation.thread].process != process)
				continue;
			heap_extents_add(&extents, 0, &allocation, &rows->details[i]);
			if (!heap_is_live_at(&allocation, time_ns))
				continue;
			split.live_bytes += allocation.size_bytes;
			rounding_add(&split.rounding, &rows->details[i]);
		}
	heap_scan_end(&scan);
	heap_extents_sum(&extents, &split.page_bytes, 1);
	heap_extents_fini(&extents);
	return split;
}

static void unknown_print(struct sink *out, const struct rounding *rounding, const char *before, const char *behind)
{
	if (rounding->unknown_count)
		sink_format(out, "%snot known of %s block%s%s", before, text_count(rounding->unknown_count).data,
			    rounding->unknown_count == 1 ? "" : "s", behind);
}

/* Memory that was allocated but not written to is live and not resident; pages that the allocator has returned are
 * neither. So each part is shown as the most that it can be. */
static void resident_print(const struct view *view)
{
	const struct trace_dictionary *dictionary = trace_dictionary(view->source.trace);
	const struct trace_sample *sample = largest_sample(dictionary);
	if (!sample)
		return;
	/* It takes each block that there was. */
	if (is_sample(view) || heap_is_folded(view->source.table)) {
		sink_format(view->out, "  resident     %s at %s\n", text_bytes(sample->resident_bytes).data,
			    text_duration(sample->time_ns).data);
		return;
	}
	struct split split = split_make(view->source.table, sample->process, sample->time_ns);
	uint64_t resident = sample->resident_bytes, heap = split.page_bytes < resident ? split.page_bytes : resident;
	uint64_t rounded = split.live_bytes + split.rounding.bytes, used = rounded < heap ? rounded : heap;
	sink_format(view->out, "  resident     %s at %s", text_bytes(resident).data,
		    text_duration(sample->time_ns).data);
	if (dictionary->process_count > 1)
		sink_format(view->out, " in pid %s", text_pid(dictionary->processes[sample->process].pid).data);
	sink_format(view->out, ": %s live blocks, %s rounding", text_bytes(split.live_bytes).data,
		    text_bytes(split.rounding.bytes).data);
	unknown_print(view->out, &split.rounding, " (", ")");
	sink_format(view->out, ", %s free inside heaps, %s not heap\n", text_bytes(heap - used).data,
		    text_bytes(resident - heap).data);
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)((unsigned __int128)part * PERCENT / whole) : 0;
}

static void summary_print(const struct view *view)
{
	const struct heap_numbers *totals = &view->window.totals;
	sink_format(view->out, "\n  peak         %s in %s blocks at %s",
		    report_bytes(&view->source, totals->peak_bytes).data,
		    report_count(&view->source, totals->peak_count).data, text_duration(view->window.peak_at_ns).data);
	if (!is_sample(view) && !view->window.is_peak_folded) {
		struct rounding rounding = rounding_at_peak(view);
		sink_format(view->out, ", and %s more that the allocator rounded up (%u %%",
			    text_bytes(rounding.bytes).data, percent(rounding.bytes, totals->peak_bytes));
		unknown_print(view->out, &rounding, "; ", "");
		sink_put(view->out, ')');
	}
	sink_put(view->out, '\n');
	resident_print(view);
	sink_format(view->out, "  outstanding  %s in %s blocks that were never given back\n",
		    report_bytes(&view->source, totals->outstanding_bytes).data,
		    report_count(&view->source, totals->outstanding_count).data);
	sink_format(view->out, "  allocated    %s in %s blocks", report_bytes(&view->source, totals->total_bytes).data,
		    report_count(&view->source, totals->total_count).data);
	if (view->source.table->duration_ns > 0)
		sink_format(view->out, ", %s a second",
			    report_count(&view->source, (uint64_t)((unsigned __int128)totals->total_count * 1000000000 /
								   (uint64_t)view->source.table->duration_ns))
				    .data);
	if (!is_sample(view))
		sink_format(view->out, "; %s of them temporary (%u %%)", text_count(totals->temporary_count).data,
			    percent(totals->temporary_count, totals->total_count));
	sink_format(view->out, ", %s by realloc, of which %s moved\n",
		    report_count(&view->source, totals->realloc_count).data,
		    report_count(&view->source, totals->realloc_moved_count).data);
}

/* ---- tables ---- */

/* A table of the report: the rows of an action that have most of a number; those without it are not shown. */
struct text_part {
	const char *title;
	const struct action *action;
	const char *key; /* of the number; NULL: `own` is it */
	struct action_sort own;
	bool is_brief; /* nothing is printed that takes a pass for each table */
	void (*print)(const struct view *view, const struct action_row *row);
};

/* The bytes that moves copied; 0 for blocks that only shrank. */
static uint64_t growth_number(const struct action_figures *figures)
{
	return figures->extra[CHAINS_FACTOR] > THOUSAND ? figures->extra[CHAINS_COPIED] + 1 : 0;
}

/* "1 block", "2 blocks" */
static struct text blocks(const struct view *view, uint64_t count)
{
	struct text text;
	snprintf(text.data, sizeof(text.data), "%.38s block%s", report_count(&view->source, count).data,
		 count == 1 ? "" : "s");
	return text;
}

static void peak_print(const struct view *view, const struct action_row *row)
{
	sink_format(view->out, "  %10s  %2u %%, %s", report_bytes(&view->source, row->figures->numbers.peak_bytes).data,
		    percent(row->figures->numbers.peak_bytes, view->window.totals.peak_bytes),
		    blocks(view, row->figures->numbers.peak_count).data);
}

static void total_print(const struct view *view, const struct action_row *row)
{
	sink_format(view->out, "  %10s  %2u %%, %s, living %s (median)",
		    report_bytes(&view->source, row->figures->numbers.total_bytes).data,
		    percent(row->figures->numbers.total_bytes, view->window.totals.total_bytes),
		    blocks(view, row->figures->numbers.total_count).data,
		    text_duration(row->figures->lifetime_median).data);
}

static void temporary_print(const struct view *view, const struct action_row *row)
{
	sink_format(view->out, "  %10s  blocks freed by the thread's next event, of %s",
		    text_count(row->figures->numbers.temporary_count).data,
		    text_count(row->figures->numbers.total_count).data);
}

static void chain_print(const struct view *view, const struct action_row *row)
{
	sink_format(view->out, "  %10s  copied by moves; %s grew in %s steps, up to %.1f times",
		    text_bytes(row->figures->extra[CHAINS_COPIED]).data,
		    blocks(view, row->figures->extra[CHAINS_COUNT]).data,
		    text_count(row->figures->extra[CHAINS_STEPS]).data,
		    (double)row->figures->extra[CHAINS_FACTOR] / THOUSAND);
}

static void outstanding_print(const struct view *view, const struct action_row *row)
{
	sink_format(view->out, "  %10s  %2u %%, %s",
		    report_bytes(&view->source, row->figures->numbers.outstanding_bytes).data,
		    percent(row->figures->numbers.outstanding_bytes, view->window.totals.outstanding_bytes),
		    blocks(view, row->figures->numbers.outstanding_count).data);
}

static const struct text_part parts[] = {
	{"Live at the peak", &action_stacks, "sp", {.number = NULL}, true, peak_print},
	{"Most allocated", &action_stacks, "st", {.number = NULL}, false, total_print},
	{"Temporary", &action_stacks, "stt", {.number = NULL}, true, temporary_print},
	{"Grown by realloc", &action_chains, NULL, {.number = growth_number}, true, chain_print},
	{"Outstanding at the end", &action_stacks, "so", {.number = NULL}, true, outstanding_print},
};
enum { PART_COUNT = sizeof(parts) / sizeof(*parts) };

static void row_print(struct view *view, const struct text_part *part, const struct action_row *row)
{
	struct sink *out = wrap_begin(view);
	part->print(view, row);
	wrap_end(view, out);
	stack_view_print(&(struct stack_view){.input = &view->input, .indent = INDENT, .lines_max = FRAMES_MAX},
			 row->group, view->out);
}

static void part_print(struct view *view, const struct text_part *part)
{
	const struct action_sort *sort = part->key ? action_sort_find(part->key) : &part->own;
	struct action_rows rows;
	if (part->action == &action_chains && (is_sample(view) || heap_is_folded(view->source.table)))
		return;
	action_rows_make(&rows, &view->input, part->action,
			 &(struct action_choice){.sort = sort, .top = ROWS_MAX, .is_brief = part->is_brief});
	for (size_t i = 0; i < rows.shown && sort->number(rows.rows[i]->figures); i++) {
		if (!i)
			heading(view, part->title);
		row_print(view, part, rows.rows[i]);
	}
	action_rows_fini(&rows);
}

/* ---- what to ask next ---- */

static void next_print(const struct view *view)
{
	const char *path = text_shown(view->source.path);
	const struct heap_numbers *totals = &view->window.totals;
	heading(view, "Next");
	sink_format(view->out,
		    "  xheap heap %s -tree sp          what the peak consists of, from the threads' starts\n", path);
	sink_format(view->out, "  xheap heap %s -frames stc       which functions allocate most often\n", path);
	if (totals->outstanding_count)
		sink_format(view->out, "  xheap heap %s -stacks so        everything that was never given back\n",
			    path);
	if (trace_dictionary(view->source.trace)->process_count > 1)
		sink_format(view->out, "  xheap heap %s -image -by process\n", path);
	sink_format(view->out,
		    "  xheap help heap   the rest: filters by size, lifetime, time and frames, culling, JSON\n");
}

/* ---- the command ---- */

static void title_print(struct view *view)
{
	enum { SHARE = 2, GAP = 2 };
	const struct text_layout *layout = &view->input.layout;
	struct arena arena = {0};
	const struct trace_dictionary *dictionary = trace_dictionary(view->source.trace);
	const char *command = dictionary->process_count ? text_shown(dictionary->processes[0].command) : "";
	struct text missing = losses_missing_text(dictionary);
	uint32_t thread_count = report_thread_count(dictionary);
	const char *path = text_shown(view->source.path);
	if (!layout->has_full_names) {
		path = text_fit(&arena, path, layout->width / SHARE, layout->has_unicode);
		command = text_fit(&arena, command, layout->width - text_width(path) - GAP, layout->has_unicode);
	}
	sink_format(view->out, "%s%s%s  %s\n", style_begin(view->input.is_colored, STYLE_HEADING), path,
		    style_end(view->input.is_colored, STYLE_HEADING), command);
	arena_fini(&arena);
	struct sink *out = wrap_begin(view);
	sink_format(view->out, "  %s, %" PRIu32 " process%s, %" PRIu32 " thread%s, %s events%s%s\n",
		    text_duration(view->source.table->duration_ns).data, dictionary->process_count,
		    dictionary->process_count == 1 ? "" : "es", thread_count, thread_count == 1 ? "" : "s",
		    text_count(dictionary->event_count).data, *missing.data ? "; not complete: " : "", missing.data);
	wrap_end(view, out);
	/* Which images have no symbols is known when the stacks have names. */
	for (uint32_t i = 0; i < view->source.table->site_count; i++)
		heap_names_site(view->source.names, &view->source.table->sites[i]);
	report_text_caveats(&view->report, view->out);
}

static void view_show(const struct analysis *analysis, const char *session, const struct heap_filter *filter,
		      struct heap_cull *cull, bool is_colored, struct text_layout layout, struct sink *out)
{
	struct view view = {.source = analysis_source(analysis, filter), .out = out};
	heap_window_make(&view.window, analysis->table, filter, (struct heap_range){0, analysis->table->duration_ns},
			 HEAP_BY_NONE, false);
	view.source.window = &view.window;
	view.source.session = session;
	view.input = (struct action_input){
		.sources = &view.source, .source_count = 1, .is_colored = is_colored, .cull = cull, .layout = layout};
	view.report = (struct report){.input = &view.input};
	title_print(&view);
	chart_print(&view);
	struct sink *to = wrap_begin(&view);
	summary_print(&view);
	wrap_end(&view, to);
	for (int i = 0; i < PART_COUNT; i++)
		part_print(&view, &parts[i]);
	to = wrap_begin(&view);
	next_print(&view);
	wrap_end(&view, to);
	heap_window_fini(&view.window);
	action_input_fini(&view.input);
}

struct report_options {
	struct input input;
	struct layout_options layout;
};

static int set_path(void *context, char *word)
{
	return input_take_path(&((struct report_options *)context)->input, word);
}

/* The view as a text, the caller's (free): of a damaged index nothing is shown. */
static char *view_make(const struct analysis *analysis, const struct report_options *options, bool is_colored)
{
	struct heap_filter filter;
	struct heap_cull cull = {.with_entries = false};
	struct sink out;
	sink_to_memory(&out);
	heap_filter_init_for(&filter, analysis->table);
	heap_cull_use_default(&cull);
	view_show(analysis, options->input.session, &filter, &cull, is_colored,
		  layout_options_settle(&options->layout, false), &out);
	heap_cull_fini(&cull);
	heap_filter_fini(&filter);
	return sink_take(&out, NULL);
}

static int analysis_show(struct analysis *analysis, const struct report_options *options)
{
	struct cli_output output;
	int status = CLI_OK;
	cli_output_open(&output, true);
	char *text = view_make(analysis, options, output.is_colored);
	while (status == CLI_OK && !analysis_is_good(analysis->table)) {
		free(text);
		text = NULL;
		status = analysis_mend(analysis);
		if (status == CLI_OK)
			text = view_make(analysis, options, output.is_colored);
	}
	if (status == CLI_OK)
		sink_text(&output.sink, text);
	free(text);
	int end_status = cli_output_close(&output);
	return status == CLI_OK ? end_status : status;
}

static const struct option report_rows[] = {INPUT_SESSION_OPTION, {.type = VALUE_END}};
static const struct option_group report_groups[] = {
	{report_rows, offsetof(struct report_options, input), false},
	{layout_rows, offsetof(struct report_options, layout), false},
	{analysis_rows, 0, false},
	{NULL, 0, false},
};
static const struct option_grammar grammar = {.command = "report", .groups = report_groups, .dashes = "-"};

static int report_run(int argc, char **argv)
{
	struct report_options options = {.input = {.path = NULL}};
	struct analysis analysis;
	int status = options_parse(&grammar, argc, argv, &options, set_path, NULL)
			     ? CLI_FAILED
			     : analysis_open(&analysis, options.input.path, false);
	if (status != CLI_OK) {
		input_fini(&options.input);
		return status;
	}
	status = analysis_show(&analysis, &options);
	analysis_close(&analysis);
	input_fini(&options.input);
	return status;
}

const struct command command_report = {
	.name = "report",
	.usage = "[FILE | -session NAME] [OPTIONS]",
	.summary = "the first answer: the peak, who allocates most, what is never freed",
	.run = report_run,
	.options = &grammar,
	.help = "One screen shows the live memory over time, the parts of the peak, the stacks that allocated most, "
		"blocks\n"
		"that were freed at once, grew by realloc or were never freed, and the commands for further "
		"questions.\n\n"
		"Without FILE: the newest xheap.*.xht here.\n\n"
		"Example:\n  xheap report xheap.jq.4711.xht\n",
};
