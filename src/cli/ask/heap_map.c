/* SPDX-License-Identifier: MIT */
#include "cli/ask/heap_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/actions/stacks.h"
#include "action/report/losses.h"
#include "action/report/page_keepers.h"
#include "action/report/stack_view.h"
#include "base/grid.h"
#include "base/json.h"
#include "base/position.h"
#include "base/text.h"
#include "cli/ask/analysis_options.h"
#include "export/export.h"
#include "export/report_head.h"
#include "query/extents.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

/* Signs of a line, and lines of text without -top. */
enum { LINE_PAGES = 64, LINES_MAX = 40, FUNCTIONS_MAX = 5, STACKS_MAX = 3, LINES_OF_STACK = 8 };

static const struct {
	char sign;
	const char *word, *words;
} fullnesses[] = {
#define X(id, sign, word, words) {sign, word, words},
	PAGE_FULLNESSES(X)
#undef X
};

struct heap_map {
	struct heap_options *options;
	struct analysis *analysis;
	struct page_map pages;
};

int heap_map_settle(struct heap_options *options)
{
	struct filter_request *asked = &options->filter.asked;
	struct diag diag = {""};
	if (options->part_count || options->by != HEAP_BY_NONE)
		return cli_fail("-map has no rows of actions: leave out -stacks, -frames, ..., and -by");
	if (options->format != REPORT_TEXT && options->format != REPORT_CSV && options->format != REPORT_JSON)
		return cli_fail("-map: the formats are text, csv and json");
	if (asked->range.words[0])
		return cli_fail("-map is of a moment: write -at P in place of -range");
	return asked->moment || !filter_word_take(asked, &filter_words[FILTER_WORD_AT], 0, POSITION_END_TEXT, &diag)
		       ? 0
		       : cli_fail("-map: %s", diag.text);
}

/* ---- functions ---- */

/* The caller frees it. */
static char *function_text(struct heap_map *map, uint32_t function)
{
	struct action_input *input = &map->analysis->input;
	return function ? action_label(input, heap_names_name(action_names(input), function - 1))
			: action_copy("[no stack]");
}

/* Pages that are equally full. */
struct map_sum {
	uint64_t pages, bytes;
};

static void fullnesses_sum(const struct heap_map *map, struct map_sum sums[PAGE_FULLNESS_COUNT])
{
	memset(sums, 0, PAGE_FULLNESS_COUNT * sizeof(*sums));
	for (size_t i = 0; i < map->pages.count; i++) {
		const struct page_run *run = &map->pages.runs[i];
		sums[run->fullness].pages += run->count;
		sums[run->fullness].bytes += run->bytes;
	}
}

/* ---- text ---- */

static void write_fullnesses(const struct heap_map *map, struct sink *out)
{
	struct map_sum sums[PAGE_FULLNESS_COUNT];
	fullnesses_sum(map, sums);
	sink_text(out, "\n       pages        size        live\n");
	for (int i = PAGE_FULLNESS_COUNT - 1; i >= 0; i--)
		sink_format(out, "  %10s  %10s  %10s  %c %s\n", text_count(sums[i].pages).data,
			    text_bytes(sums[i].pages * HEAP_PAGE_BYTES).data, text_bytes(sums[i].bytes).data,
			    fullnesses[i].sign, fullnesses[i].words);
}

/* Write the functions, or the stacks, that keep pages. */
static void write_keepers(struct heap_map *map, bool are_stacks, struct sink *out)
{
	enum { INDENT = 10 };
	static const struct {
		const char *title, *more;
		size_t most;
	} words[] = {{"\nPages that are less than 1/4 full, by the function with the most bytes there\n"
		      "       pages        live      blocks      oldest  function\n",
		      "functions", FUNCTIONS_MAX},
		     {"\nThe same pages, by the stack\n"
		      "       pages        live      blocks      oldest\n",
		      "stacks", STACKS_MAX}};
	struct action_input *input = &map->analysis->input;
	const int64_t now_ns = map->analysis->sources->filter->moment.at.time_ns;
	struct page_keepers keepers = {0};
	page_keepers_find(&keepers, input, &map->pages, HEAP_NONE, are_stacks);
	if (keepers.count)
		sink_text(out, words[are_stacks].title);
	for (size_t i = 0; i < keepers.count && i < words[are_stacks].most; i++) {
		const struct page_keeper *keeper = &keepers.items[i];
		sink_format(out, "  %10s  %10s  %10s  %10s", text_count(keeper->pages).data,
			    text_bytes(keeper->bytes).data, text_count(keeper->blocks).data,
			    text_duration(now_ns - keeper->oldest_ns).data);
		char *text = are_stacks ? NULL : function_text(map, keeper->group);
		sink_format(out, text ? "  %s\n" : "\n", text ? text_shown(text) : "");
		if (are_stacks)
			stack_view_print(&(struct stack_view){.input = input,
							      .indent = INDENT,
							      .lines_max = LINES_OF_STACK,
							      .has_places = true},
					 keeper->group, out);
		free(text);
	}
	if (keepers.count > words[are_stacks].most)
		sink_format(out, "  %zu more %s\n", keepers.count - words[are_stacks].most, words[are_stacks].more);
	free(keepers.items);
}

/* A line of signs that is being written: of pages from an address that is a multiple of its size. */
struct map_line {
	char signs[LINE_PAGES + 1];
	unsigned count;
	uint64_t first; /* its address */
	uint64_t written, most;
	struct sink *out;
};

static void line_end(struct map_line *line)
{
	line->signs[line->count] = 0;
	if (line->count && line->written++ < line->most)
		sink_format(line->out, "  %14" PRIx64 "  %s\n", line->first, line->signs);
	line->count = 0;
}

/* Add pages. Behind the last line that is written only one more is looked at, to know that there are more. */
static void line_add(struct map_line *line, uint64_t first, uint64_t count, char sign)
{
	while (count && line->written <= line->most) {
		uint64_t begin = first - first % (LINE_PAGES * HEAP_PAGE_BYTES);
		if (line->count && begin != line->first)
			line_end(line);
		line->first = begin;
		while (line->count < (first - begin) / HEAP_PAGE_BYTES)
			line->signs[line->count++] = ' ';
		line->signs[line->count++] = sign;
		first += HEAP_PAGE_BYTES;
		count--;
	}
}

static void write_lines(const struct heap_map *map, struct sink *out)
{
	const struct trace_process *processes = trace_dictionary(map->analysis->sources->trace)->processes;
	const bool has_top = map->options->top != HEAP_TOP_DEFAULT;
	struct map_line line = {.out = out, .most = has_top ? map->options->top : LINES_MAX};
	for (size_t i = 0; i < map->pages.count && line.written <= line.most; i++) {
		const struct page_run *run = &map->pages.runs[i];
		if (!i || run->process != run[-1].process) {
			line_end(&line);
			sink_format(out, "\nProcess %s, a sign for each page of 4 KiB; a blank: no block so far\n",
				    text_pid(processes[run->process].pid).data);
		}
		line_add(&line, run->first, run->count, fullnesses[run->fullness].sign);
	}
	line_end(&line);
	if (line.written > line.most)
		sink_format(out, "  the first %" PRIu64 " lines; -top N shows more\n", line.most);
}

static void write_text(struct heap_map *map, struct sink *out)
{
	const struct filter_request *asked = &map->options->filter.asked;
	const struct report head = {.diff = {.input = &map->analysis->input, .runs = {1, 0}},
				    .filters = asked->notes,
				    .filter_count = asked->note_count};
	const struct heap_numbers *totals = &map->analysis->sources->window->totals;
	report_head(&head, out);
	sink_format(out, "  %s live in %s blocks%s\n", text_bytes(totals->outstanding_bytes).data,
		    text_count(totals->outstanding_count).data, asked->note_count ? "" : " at the end of the trace");
	write_fullnesses(map, out);
	write_keepers(map, false, out);
	write_keepers(map, true, out);
	write_lines(map, out);
}

/* ---- csv ---- */

static void write_csv(struct heap_map *map, struct sink *out)
{
	const struct trace_dictionary *dictionary = trace_dictionary(map->analysis->sources->trace);
	sink_text(out, "pid,address,pages,fullness,live_bytes,live_blocks,oldest_us,function\n");
	for (size_t i = 0; i < map->pages.count && i < map->options->top; i++) {
		const struct page_run *run = &map->pages.runs[i];
		sink_format(out, "%" PRIu32 ",0x%" PRIx64 ",%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 ",",
			    dictionary->processes[run->process].pid, run->first, run->count,
			    fullnesses[run->fullness].word, run->bytes, run->blocks);
		if (run->fullness != PAGE_NONE) {
			char *text = function_text(map, page_keeper_function(&map->analysis->input, run->site));
			sink_format(out, "%s,", text_microseconds(run->oldest_ns).data);
			csv_field(out, text);
			free(text);
		} else {
			sink_put(out, ',');
		}
		sink_put(out, '\n');
	}
}

/* ---- json: docs/schema/heap-map.json ---- */

static void json_function(struct json *json, struct heap_map *map, uint32_t function)
{
	char *text = function_text(map, function);
	json_text(json, "function", text);
	free(text);
}

static void json_fullnesses(struct json *json, const struct heap_map *map)
{
	struct map_sum sums[PAGE_FULLNESS_COUNT];
	fullnesses_sum(map, sums);
	json_begin_array(json, "fullness");
	for (int i = PAGE_FULLNESS_COUNT - 1; i >= 0; i--) {
		json_begin_object(json, NULL);
		json_text(json, "fullness", fullnesses[i].word);
		json_count(json, "pages", sums[i].pages);
		json_count(json, "live_bytes", sums[i].bytes);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_keepers(struct json *json, struct heap_map *map, bool are_stacks)
{
	struct action_input *input = &map->analysis->input;
	struct page_keepers keepers = {0};
	page_keepers_find(&keepers, input, &map->pages, HEAP_NONE, are_stacks);
	json_begin_array(json, are_stacks ? "keeper_stacks" : "keepers");
	for (size_t i = 0; i < keepers.count && (!are_stacks || i < map->options->top); i++) {
		const struct page_keeper *keeper = &keepers.items[i];
		json_begin_object(json, NULL);
		if (!are_stacks)
			json_function(json, map, keeper->group);
		json_count(json, "pages", keeper->pages);
		json_count(json, "live_bytes", keeper->bytes);
		json_count(json, "live_blocks", keeper->blocks);
		json_time(json, "oldest_us", keeper->oldest_ns);
		if (are_stacks)
			action_stack_json(input, keeper->group, json);
		json_end_object(json);
	}
	json_end_array(json);
	free(keepers.items);
}

static void json_run(struct json *json, struct heap_map *map, const struct page_run *run)
{
	const struct trace_process *process = &trace_dictionary(map->analysis->sources->trace)->processes[run->process];
	json_begin_object(json, NULL);
	json_count(json, "process", run->process);
	if (process->pid)
		json_count(json, "pid", process->pid);
	json_address(json, "address", run->first);
	json_count(json, "pages", run->count);
	json_text(json, "fullness", fullnesses[run->fullness].word);
	json_count(json, "live_bytes", run->bytes);
	json_count(json, "live_blocks", run->blocks);
	if (run->fullness != PAGE_NONE) {
		json_time(json, "oldest_us", run->oldest_ns);
		json_function(json, map, page_keeper_function(&map->analysis->input, run->site));
	}
	json_end_object(json);
}

static void write_json(struct heap_map *map, struct sink *out)
{
	const struct filter_request *asked = &map->options->filter.asked;
	const struct action_source *source = map->analysis->sources;
	const struct heap_numbers *totals = &source->window->totals;
	struct json json = {.out = out, .line_depth = 2};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_text(&json, "trace", source->path);
	json_bool(&json, "complete", losses_is_complete(source->table->dictionary));
	json_begin_object(&json, "filters");
	for (size_t i = 0; i < asked->note_count; i++)
		json_text(&json, asked->notes[i].name, asked->notes[i].text);
	json_end_object(&json);
	json_time(&json, "at_us", source->filter->moment.at.time_ns);
	json_count(&json, "page_bytes", HEAP_PAGE_BYTES);
	json_count(&json, "live_bytes", totals->outstanding_bytes);
	json_count(&json, "live_blocks", totals->outstanding_count);
	json_fullnesses(&json, map);
	json_keepers(&json, map, false);
	json_keepers(&json, map, true);
	const size_t count = map->pages.count, shown = count < map->options->top ? count : map->options->top;
	json_count(&json, "run_count", count);
	json_count(&json, "cut", count - shown);
	json_begin_array(&json, "runs");
	for (size_t i = 0; i < shown; i++)
		json_run(&json, map, &map->pages.runs[i]);
	json_end_array(&json);
	json_end_object(&json);
	json_end(&json);
}

/* ---- all of it ---- */

static int map_make(void *context, struct diag *diag)
{
	struct heap_map *map = context;
	const struct action_source *source = map->analysis->sources;
	const char *reason = page_map_missing(source->table);
	if (reason)
		return diag_fail(diag, ENOTSUP, "%s %s", source->path, reason);
	page_map_make(&map->pages, source->table, source->filter);
	action_input_settle(&map->analysis->input);
	return 0;
}

static void map_undo(void *context)
{
	page_map_fini(&((struct heap_map *)context)->pages);
}

static void map_write(void *context, struct sink *out, bool is_colored)
{
	struct heap_map *map = context;
	map->analysis->input.is_colored = is_colored;
	(map->options->format == REPORT_CSV    ? write_csv
	 : map->options->format == REPORT_JSON ? write_json
					       : write_text)(map, out);
}

int heap_map_show(struct heap_options *options, struct analysis *analysis)
{
	struct heap_map map = {.options = options, .analysis = analysis};
	int status = asking_check_innermost(analysis);
	status = status ? status : asking_run(analysis, map_make, map_undo, &map);
	if (status != CLI_OK)
		return status;
	const struct answer_form form = {.wants_pager = options->format == REPORT_TEXT};
	status = asking_print(analysis, options->output, form, map_write, &map);
	map_undo(&map);
	return status;
}
