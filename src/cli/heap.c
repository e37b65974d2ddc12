/* SPDX-License-Identifier: MIT */
/* xheap heap: reports over the allocations of a trace. */
#include <stdlib.h>
#include <string.h>

#include "action/report.h"
#include "base/text.h"
#include "cli/options.h"

enum { PART_MAX = 8, TOP_DEFAULT = 10000 };

struct heap_options {
	const char *path;
	struct { const struct action *action; const struct action_sort *sort; } parts[PART_MAX];
	unsigned part_count;
	uint64_t top;
	int format;
	bool with_lines, has_range;
	struct heap_range range;
};

/* A sort key may follow, also with a dash, as one of the documents writes it: "-frames -st". */
static const struct action_sort *take_sort(struct words *words)
{
	const char *word = options_peek(words);
	const struct action_sort *sort = word ? action_sort_find(word + (*word == '-')) : NULL;
	if (!sort)
		return action_sort_find(NULL);
	words->next++;
	return sort;
}

static int set_action(void *context, struct words *words, int number)
{
	struct heap_options *options = context;
	const struct action *action = action_table[number];
	const struct action_sort *sort = action->group ? take_sort(words) : action_sort_find(NULL);
	unsigned at = 0;
	while (at < options->part_count && options->parts[at].action != action)
		at++;
	if (at == options->part_count)
		options->part_count++;
	options->parts[at].action = action;
	options->parts[at].sort = sort;
	return 0;
}

static int set_top(void *context, struct words *words, int number)
{
	(void)number;
	struct heap_options *options = context;
	const char *word = options_value(words, "top");
	if (word && !text_parse_count(word, &options->top))
		return cli_fail("-top: \"%s\" is no number of rows", word);
	return word ? 0 : CLI_FAILED;
}

static int set_format(void *context, struct words *words, int number)
{
	(void)number;
	struct heap_options *options = context;
	const char *word = options_value(words, "format");
	if (word && (options->format = report_format_find(word)) < 0)
		return cli_fail("-format: \"%s\" is none of text, csv, json", word);
	return word ? 0 : CLI_FAILED;
}

static int set_lines(void *context, struct words *words, int number)
{
	(void)words, (void)number;
	((struct heap_options *)context)->with_lines = true;
	return 0;
}

static int set_range(void *context, struct words *words, int number)
{
	(void)number;
	struct heap_options *options = context;
	options->has_range = true;
	return options_range(words, &options->range.from_ns, &options->range.to_ns);
}

static int set_path(void *context, char *word)
{
	struct heap_options *options = context;
	if (options->path)
		return cli_fail("%s: one FILE at a time, and %s is named already", word, options->path);
	options->path = word;
	return 0;
}

/* The numbers of actions are places in action_table. */
static const struct option heap_option_table[] = {
	{"stacks", set_action, 0}, {"frames", set_action, 1}, {"image", set_action, 2}, {"images", set_action, 2},
	{"totals", set_action, 3}, {"top", set_top, 0},       {"format", set_format, 0}, {"lines", set_lines, 0},
	{"range", set_range, 0},
};

static void heap_report(const struct heap_options *options, struct action_source *source, FILE *out, bool is_bold)
{
	struct report_part parts[PART_MAX];
	struct report report = {source, parts, options->part_count, options->has_range, is_bold};
	for (unsigned i = 0; i < options->part_count; i++) {
		parts[i].action = options->parts[i].action;
		parts[i].sort = options->parts[i].sort;
		action_rows_make(&parts[i].rows, source, parts[i].action, parts[i].sort, options->top);
	}
	report_write(&report, (enum report_format)options->format, out);
	for (unsigned i = 0; i < options->part_count; i++)
		action_rows_fini(&parts[i].rows);
}

static int heap_show(const struct heap_options *options, const char *path, const struct trace *trace)
{
	struct diag diag = {""};
	struct heap_table *table;
	struct heap_window window;
	struct cli_output output;
	if (heap_table_build(&table, trace, &diag))
		return cli_fail("%s: %s", path, diag.text);
	struct heap_range range = options->has_range ? options->range : (struct heap_range){0, table->duration_ns};
	struct symbols *symbols = symbols_new();
	heap_window_make(&window, table, range);
	struct action_source source = {.path = path, .trace = trace, .table = table, .window = &window,
				       .names = heap_names_new(trace, symbols, options->with_lines)};
	cli_output_open(&output, options->format == REPORT_TEXT);
	heap_report(options, &source, output.file, output.is_bold);
	int status = cli_output_close(&output);
	intern_fini(&source.images);
	heap_names_free(source.names);
	symbols_free(symbols);
	heap_window_fini(&window);
	heap_table_free(table);
	return status;
}

static int heap_run(int argc, char **argv)
{
	struct heap_options options = {.top = TOP_DEFAULT};
	struct diag diag = {""};
	struct trace *trace;
	if (options_parse(argc, argv, heap_option_table, sizeof(heap_option_table) / sizeof(*heap_option_table), &options, set_path))
		return CLI_FAILED;
	if (!options.part_count) {
		options.parts[0].action = &action_stacks;
		options.parts[options.part_count++].sort = action_sort_find(NULL);
	}
	if (options.format == REPORT_CSV && options.part_count > 1)
		return cli_fail("-format csv: one of -stacks, -frames, -image, -totals at a time");
	char *path = cli_trace_path(options.path);
	if (!path)
		return CLI_FAILED;
	int status = trace_open(&trace, path, &diag) ? cli_fail("%s", diag.text) : CLI_OK;
	if (status == CLI_OK) {
		status = heap_show(&options, path, trace);
		trace_close(trace);
	}
	free(path);
	return status;
}

const struct command command_heap = {
	.name = "heap", .usage = "[FILE] [OPTIONS]", .summary = "show where the memory went: allocations by stack, function or image",
	.run = heap_run,
	.help =
	"  -stacks [KEY]   one row per distinct stack (the default)\n"
	"  -frames [KEY]   one row per function that called an allocation function\n"
	"  -image [KEY]    one row per executable or library of those functions\n"
	"  -totals         only the totals; several of these can be asked for at once\n"
	"  -top N          the first N rows of each (10000)\n"
	"  -range T1 T2    allocations that began from T1 to T2: microseconds from the start, or with s, ms, us, ns\n"
	"  -lines          tell functions apart by the line of the call\n"
	"  -format FORMAT  text, csv or json\n\n"
	"KEY sorts: so soc outstanding size, count; st stc total size, count; src realloc count;\n"
	"           sp spc size, count at the peak; stt temporary count. The default is so.\n"
	"Without FILE: the newest xheap.*.xht here.\n\n"
	"Example:\n  xheap heap xheap.jq.4711.xht -frames st -top 20\n",
};
