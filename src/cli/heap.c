/* SPDX-License-Identifier: MIT */
/* xheap heap: reports over the allocations of a trace. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "action/report.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/options.h"

enum { PART_MAX = 16, TOP_DEFAULT = 10000 };

/* Two times as typed: a wall clock's can only be read when the trace is open. */
struct moments {
	const char *words[2];
};

struct heap_options {
	const char *path, *output;
	struct { const struct action *action; const struct action_sort *sort; } parts[PART_MAX];
	unsigned part_count;
	bool is_inclusive;
	uint64_t top;
	int format;
	bool with_lines, without_default_cull;
	enum heap_by by;
	struct moments range, window;
	struct heap_filter filter;
	struct heap_cull cull;
	struct heap_patterns callers;
	struct report_filter *filters;
	size_t filter_count, filter_capacity;
};

/* ---- words ---- */

/* Whether the word is one of a list's: a list ends at the next option, which "-5" is none of. */
static bool is_list_word(const char *word)
{
	return word && (word[0] != '-' || !word[1]);
}

/* Remember an option that says which allocations count, with its words, for the report. */
static void note_filter(struct heap_options *options, const char *name, char **first, char **end)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		memory_exhausted(0);
	for (char **word = first; word < end; word++)
		fprintf(out, "%s%s", word > first ? " " : "", *word);
	fclose(out);
	memory_grow(options->filters, options->filter_count, options->filter_capacity);
	options->filters[options->filter_count++] = (struct report_filter){name, text};
}

/* The trace is easily swallowed by the list before it. */
static int refuse_trace(const char *option, char **first, const char *word)
{
	const char *dot = strrchr(word, '.');
	struct stat status;
	if (!dot || strcmp(dot, ".xht") != 0 || stat(word, &status) != 0)
		return 0;
	cli_fail("-%s: %s is a file, and not a frame: a list goes on to the next option or --; write", option, word);
	fprintf(stderr, "    xheap heap %s -%s", word, option);
	for (; strcmp(*first, word) != 0; first++)
		fprintf(stderr, " %s", *first);
	fputs(" ...\n", stderr);
	return CLI_FAILED;
}

/* Each word of the list; at least one. */
static int take_list(struct heap_options *options, struct words *words, const char *option, int (*take)(struct heap_options *options, const char *word))
{
	char **first = words->next;
	while (is_list_word(options_peek(words))) {
		if (refuse_trace(option, first, *words->next) || take(options, *words->next))
			return CLI_FAILED;
		words->next++;
	}
	if (words->next == first)
		return cli_fail("-%s: a value is missing", option);
	note_filter(options, option, first, words->next);
	return 0;
}

static int add_pattern(struct heap_patterns *patterns, const char *option, const char *word)
{
	struct diag diag = {""};
	return heap_patterns_add(patterns, word, &diag) ? cli_fail("-%s: %s", option, diag.text) : 0;
}

/* ---- what to show ---- */

/* A sort key may follow, also with a dash, or behind "-s", as the documents write it: "-frames -st", "-frames -s st". */
static const struct action_sort *take_sort(struct words *words)
{
	const char *word = options_peek(words);
	if (word && !strcasecmp(word, "-s") && words->next + 1 < words->end && action_sort_find(words->next[1])) {
		words->next += 2;
		return action_sort_find(words->next[-1]);
	}
	const struct action_sort *sort = word ? action_sort_find(word + (*word == '-')) : NULL;
	if (sort)
		words->next++;
	return sort;
}

static int add_part(struct heap_options *options, const struct action *action, const struct action_sort *sort)
{
	unsigned at = 0;
	while (at < options->part_count && options->parts[at].action != action)
		at++;
	if (at == options->part_count)
		options->part_count++;
	options->parts[at].action = action;
	options->parts[at].sort = sort ? sort : action_sort_find(action->sort);
	return 0;
}

static int set_action(void *context, struct words *words, int number)
{
	const struct action *action = action_table[number];
	return add_part(context, action, action->groups ? take_sort(words) : NULL);
}

/* A word behind -frames, so the key may come behind it. */
static int set_inclusive(void *context, struct words *words, int number)
{
	struct heap_options *options = context;
	const struct action_sort *sort = take_sort(words);
	options->is_inclusive = true;
	return sort ? add_part(options, action_table[number], sort) : 0;
}

static int set_callers(void *context, struct words *words, int number)
{
	struct heap_options *options = context;
	const char *word = options_value(words, "callers");
	if (!word || add_pattern(&options->callers, "callers", word))
		return CLI_FAILED;
	return add_part(options, action_table[number], take_sort(words));
}

static int set_by(void *context, struct words *words, int number)
{
	(void)number;
	struct heap_options *options = context;
	const char *word = options_value(words, "by");
	if (word && !(options->by = heap_by_find(word)))
		return cli_fail("-by: \"%s\" is none of process, thread, heap, size, lifetime, time, class", word);
	return word ? 0 : CLI_FAILED;
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

static int set_output(void *context, struct words *words, int number)
{
	(void)number;
	struct heap_options *options = context;
	options->output = options_value(words, "o");
	return options->output ? 0 : CLI_FAILED;
}

static int set_input(void *context, char *word)
{
	struct heap_options *options = context;
	if (options->path)
		return cli_fail("%s: one FILE at a time, and %s is named already", word, options->path);
	options->path = word;
	return 0;
}

static int set_path(void *context, struct words *words, int number)
{
	(void)number;
	const char *word = options_value(words, "i");
	return word ? set_input(context, (char *)word) : CLI_FAILED;
}

/* ---- which allocations ---- */

static bool is_endless(const char *word)
{
	return !strcasecmp(word, "max") || !strcasecmp(word, "inf") || !strcasecmp(word, "infinity");
}

/* A time since the trace's start, which was at start_ns by the wall clock. */
static bool parse_moment(const char *word, int64_t start_ns, int64_t *time_ns)
{
	*time_ns = INT64_MAX;
	return is_endless(word) || text_parse_time(word, time_ns) || text_parse_clock(word, start_ns, time_ns);
}

static int take_moments(struct words *words, const char *option, struct moments *moments)
{
	int64_t times[2];
	for (int i = 0; i < 2; i++) {
		const char *word = moments->words[i] = options_value(words, option);
		if (!word)
			return CLI_FAILED;
		if (!parse_moment(word, 0, &times[i]))
			return cli_fail("-%s: \"%s\" is no time: microseconds from the start, or with s, ms, us, ns, or YYYY/MM/DD:HH:MM:SS", option, word);
	}
	bool are_alike = !strchr(moments->words[0], '/') == !strchr(moments->words[1], '/');
	return are_alike && times[0] > times[1] ? cli_fail("-%s: it ends before it begins", option) : 0;
}

static int set_range(void *context, struct words *words, int number)
{
	(void)number;
	return take_moments(words, "range", &((struct heap_options *)context)->range);
}

static int set_window(void *context, struct words *words, int number)
{
	(void)number;
	struct heap_options *options = context;
	char **first = words->next;
	const char *word = options_value(words, "window");
	if (!word)
		return CLI_FAILED;
	options->filter.class = heap_class_find(word);
	if (options->filter.class == HEAP_CLASS_NONE)
		return cli_fail("-window: \"%s\" is none of AIFI, AIFO, AOFI, AOFO", word);
	if (take_moments(words, "window", &options->window))
		return CLI_FAILED;
	note_filter(options, "window", first, words->next);
	return 0;
}

static bool parse_lifetime(const char *word, uint64_t *number)
{
	int64_t time_ns;
	if (!text_parse_time(word, &time_ns) && !text_parse_clock_span(word, &time_ns))
		return false;
	*number = (uint64_t)time_ns;
	return time_ns >= 0;
}

/* Number from, number to: the second one does not belong to it. */
static int take_bounds(struct heap_options *options, struct words *words, const char *option, bool (*parse)(const char *word, uint64_t *number),
		       const char *kind, struct heap_bounds *bounds)
{
	char **first = words->next;
	uint64_t *const ends[] = {&bounds->from, &bounds->to};
	for (int i = 0; i < 2; i++) {
		const char *word = options_value(words, option);
		if (!word)
			return CLI_FAILED;
		*ends[i] = UINT64_MAX;
		if (!is_endless(word) && !parse(word, ends[i]))
			return cli_fail("-%s: \"%s\" is no %s", option, word, kind);
	}
	if (bounds->from > bounds->to)
		return cli_fail("-%s: it ends before it begins", option);
	note_filter(options, option, first, words->next);
	return 0;
}

static int set_size(void *context, struct words *words, int number)
{
	(void)number;
	struct heap_options *options = context;
	return take_bounds(options, words, "size", text_parse_size, "size: bytes, or with K, M, G", &options->filter.size_bytes);
}

static int set_lifetime(void *context, struct words *words, int number)
{
	(void)number;
	struct heap_options *options = context;
	return take_bounds(options, words, "lifetime", parse_lifetime, "time: microseconds, or with s, ms, us, ns", &options->filter.lifetime_ns);
}

static int take_required(struct heap_options *options, const char *word)
{
	return add_pattern(&options->filter.required, "requireFrames", word);
}

static int take_required_of_free(struct heap_options *options, const char *word)
{
	return add_pattern(&options->filter.required_of_free, "requireFreeFrames", word);
}

static int take_cull_frame(struct heap_options *options, const char *word)
{
	return add_pattern(&options->cull.frames, "cullFrames", word);
}

static int take_cull_list(struct heap_options *options, const char *word)
{
	struct diag diag = {""};
	return heap_patterns_add_file(&options->cull.frames, word, &diag) ? cli_fail("-cullLists: %s", diag.text) : 0;
}

static int take_heap(struct heap_options *options, const char *word)
{
	memory_grow(options->filter.heaps, options->filter.heap_count, options->filter.heap_capacity);
	options->filter.heaps[options->filter.heap_count++] = (char *)word;
	return 0;
}

/* Numbers with commas between them. */
static int take_numbers(const char *word, const char *option, uint32_t **items, size_t *count, size_t *capacity)
{
	for (;;) {
		char *end;
		unsigned long number = strtoul(word, &end, 10);
		if (!isdigit((unsigned char)*word) || (*end && *end != ',') || number > UINT32_MAX)
			return cli_fail("-%s: \"%s\" is no number", option, word);
		memory_grow(*items, *count, *capacity);
		(*items)[(*count)++] = (uint32_t)number;
		if (!*end)
			return 0;
		word = end + 1;
	}
}

static int take_pids(struct heap_options *options, const char *word)
{
	return take_numbers(word, "pids", &options->filter.pids, &options->filter.pid_count, &options->filter.pid_capacity);
}

static int take_tids(struct heap_options *options, const char *word)
{
	return take_numbers(word, "threads", &options->filter.tids, &options->filter.tid_count, &options->filter.tid_capacity);
}

static const struct { const char *name; int (*take)(struct heap_options *options, const char *word); } lists[] = {
	{"requireFrames", take_required}, {"requireFreeFrames", take_required_of_free}, {"cullFrames", take_cull_frame},
	{"cullLists", take_cull_list}, {"pids", take_pids}, {"threads", take_tids}, {"heap", take_heap}};

static int set_list(void *context, struct words *words, int number)
{
	return take_list(context, words, lists[number].name, lists[number].take);
}

/* Numbers may come with commas, and the FILE may follow them. */
static int set_numbers(void *context, struct words *words, int number)
{
	struct heap_options *options = context;
	char **first = words->next;
	while (is_list_word(options_peek(words)) && (isdigit((unsigned char)**words->next) || words->next == first)) {
		if (lists[number].take(options, *words->next))
			return CLI_FAILED;
		words->next++;
	}
	if (words->next == first)
		return cli_fail("-%s: a value is missing", lists[number].name);
	note_filter(options, lists[number].name, first, words->next);
	return 0;
}

static int set_one(void *context, struct words *words, int number)
{
	char **first = words->next;
	const char *word = options_value(words, lists[number].name);
	if (!word || lists[number].take(context, word))
		return CLI_FAILED;
	note_filter(context, lists[number].name, first, words->next);
	return 0;
}

static int set_closed(void *context, struct words *words, int number)
{
	(void)number;
	struct heap_options *options = context;
	options->filter.is_closed = true;
	note_filter(options, "closed", words->next, words->next);
	return 0;
}

static int set_no_default_cull(void *context, struct words *words, int number)
{
	(void)words, (void)number;
	((struct heap_options *)context)->without_default_cull = true;
	return 0;
}

/* ---- words of the documented tool that ask for nothing here ---- */

static int set_nothing(void *context, struct words *words, int number)
{
	(void)context, (void)words, (void)number;
	return 0;
}

/* Symbols are always used. */
static int set_symbols(void *context, struct words *words, int number)
{
	static const char *const more[] = {"cacheonly", "verbose", "dbghelplog"};
	(void)context, (void)number;
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++)
		if (options_peek(words) && !strcasecmp(options_peek(words), more[i]))
			words->next++;
	return 0;
}

static int set_tool_action(void *context, struct words *words, int number)
{
	(void)context, (void)number;
	const char *word = options_value(words, "a");
	if (word && strcasecmp(word, "heap") != 0)
		return cli_fail("-a: \"%s\" is another command's work; this one is heap", word);
	return word ? 0 : CLI_FAILED;
}

enum { ACTION_STACKS, ACTION_FRAMES, ACTION_INCLUSIVE, ACTION_IMAGE, ACTION_HEAPS, ACTION_TREE, ACTION_CALLERS, ACTION_CHAINS, ACTION_TOTALS };
enum { LIST_REQUIRE, LIST_REQUIRE_FREE, LIST_CULL, LIST_CULL_FILE, LIST_PIDS, LIST_THREADS, LIST_HEAP };

/* The numbers of actions are places in action_table, those of lists in lists. */
static const struct option heap_option_table[] = {
	{"stacks", set_action, ACTION_STACKS}, {"frames", set_action, ACTION_FRAMES}, {"inclusive", set_inclusive, ACTION_FRAMES},
	{"image", set_action, ACTION_IMAGE}, {"images", set_action, ACTION_IMAGE}, {"heaps", set_action, ACTION_HEAPS},
	{"tree", set_action, ACTION_TREE}, {"callers", set_callers, ACTION_CALLERS}, {"chains", set_action, ACTION_CHAINS},
	{"totals", set_action, ACTION_TOTALS}, {"by", set_by, 0}, {"top", set_top, 0}, {"format", set_format, 0}, {"lines", set_lines, 0},
	{"range", set_range, 0}, {"window", set_window, 0}, {"size", set_size, 0}, {"lifetime", set_lifetime, 0}, {"closed", set_closed, 0},
	{"requireFrames", set_list, LIST_REQUIRE}, {"requireFreeFrames", set_list, LIST_REQUIRE_FREE}, {"cullFrames", set_list, LIST_CULL},
	{"cullLists", set_list, LIST_CULL_FILE}, {"cullList", set_list, LIST_CULL_FILE}, {"noDefaultCull", set_no_default_cull, 0},
	{"pids", set_numbers, LIST_PIDS}, {"pid", set_numbers, LIST_PIDS}, {"threads", set_numbers, LIST_THREADS},
	{"thread", set_numbers, LIST_THREADS}, {"heap", set_one, LIST_HEAP}, {"i", set_path, 0}, {"o", set_output, 0},
	{"a", set_tool_action, 0}, {"symbols", set_symbols, 0}, {"quiet", set_nothing, 0}, {"tle", set_nothing, 0}, {"tti", set_nothing, 0},
};

/* ---- the report ---- */

static int resolve_moments(const struct moments *moments, const char *option, const struct trace *trace, struct heap_range *range)
{
	int64_t start_ns = trace_dictionary(trace)->start_realtime_ns;
	parse_moment(moments->words[0], start_ns, &range->from_ns);
	parse_moment(moments->words[1], start_ns, &range->to_ns);
	return range->from_ns > range->to_ns ? cli_fail("-%s: it ends before it begins", option) : 0;
}

static size_t edit_distance(const char *a, const char *b)
{
	enum { LENGTH_MAX = 64 };
	size_t row[LENGTH_MAX + 1], length_b = strnlen(b, LENGTH_MAX);
	for (size_t j = 0; j <= length_b; j++)
		row[j] = j;
	for (size_t i = 0; i < LENGTH_MAX && a[i]; i++) {
		size_t diagonal = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < length_b; j++) {
			size_t change = diagonal + (tolower((unsigned char)a[i]) != tolower((unsigned char)b[j]));
			diagonal = row[j + 1];
			size_t least = row[j] < diagonal ? row[j] + 1 : diagonal + 1;
			row[j + 1] = least < change ? least : change;
		}
	}
	return row[length_b];
}

/* The name in the trace that is most like what was typed; NULL when nothing is. */
static const char *nearest_name(const struct heap_names *names, const struct heap_pattern *pattern)
{
	const char *wanted = pattern->symbol ? pattern->symbol : pattern->image;
	const char *nearest = NULL;
	size_t least = strlen(wanted) / 2 + 1;
	for (uint32_t i = 0; i < heap_names_count(names); i++) {
		const struct heap_name *name = heap_names_name(names, i);
		char plain[256];
		const char *other = pattern->symbol ? name->symbol : name->image;
		if (!other)
			continue;
		heap_plain_symbol(other, plain, sizeof(plain));
		size_t distance = edit_distance(wanted, pattern->symbol ? plain : other);
		if (distance >= least)
			continue;
		least = distance;
		nearest = pattern->symbol ? name->text : name->image;
	}
	return nearest;
}

/* Tell of patterns that match no frame of the trace. True when none of them does. */
static bool patterns_report(const struct heap_patterns *patterns, const char *option, struct heap_names *names)
{
	size_t without, missing = 0;
	for (size_t i = 0; i < patterns->count; i++) {
		const struct heap_pattern *pattern = &patterns->items[i];
		if (pattern->hits)
			continue;
		const char *nearest = nearest_name(names, pattern);
		heap_names_without_symbols(names, &without);
		fprintf(stderr, "xheap: -%s: \"%s\" matches no frame of the trace%s%s%s", option, pattern->text, nearest ? "; the nearest is " : "",
			nearest ? nearest : "", without ? "" : "\n");
		if (without)
			fprintf(stderr, " (%zu images are without symbols)\n", without);
		missing++;
	}
	return patterns->count && missing == patterns->count;
}

static void parts_show(const struct heap_options *options, struct action_source *source, FILE *out, bool is_bold)
{
	struct report_part parts[PART_MAX];
	struct heap_window by_heap = {.is_by_heap = false};
	struct report report = {.source = source, .parts = parts, .part_count = options->part_count, .has_range = options->range.words[0] != NULL,
				.filters = options->filters, .filter_count = options->filter_count, .is_bold = is_bold};
	for (unsigned i = 0; i < options->part_count; i++) {
		const struct action *action = options->parts[i].action;
		if (action->is_by_heap && !by_heap.is_by_heap)
			heap_window_make(&by_heap, source->table, source->filter, source->window->range, options->by, true);
		parts[i] = (struct report_part){.action = action, .sort = options->parts[i].sort,
						.window = action->is_by_heap ? &by_heap : source->window};
		action_rows_make(&parts[i].rows, source, action, parts[i].window, parts[i].sort, options->top);
	}
	report_write(&report, (enum report_format)options->format, out);
	for (unsigned i = 0; i < options->part_count; i++)
		action_rows_fini(&parts[i].rows);
	heap_window_fini(&by_heap);
}

static int output_show(const struct heap_options *options, struct action_source *source)
{
	struct cli_output output;
	if (!options->output) {
		cli_output_open(&output, options->format == REPORT_TEXT);
		parts_show(options, source, output.file, output.is_bold);
		return cli_output_close(&output);
	}
	FILE *file = fopen(options->output, "we");
	if (!file)
		return cli_fail("cannot write %s: %s", options->output, strerror(errno));
	parts_show(options, source, file, false);
	bool is_bad = ferror(file);
	return fclose(file) || is_bad ? cli_fail("cannot write %s: %s", options->output, strerror(errno)) : CLI_OK;
}

static int source_show(struct heap_options *options, struct action_source *source)
{
	struct diag diag = {""};
	struct heap_window window;
	struct heap_range range = {0, source->table->duration_ns};
	if (options->range.words[0] && resolve_moments(&options->range, "range", source->trace, &range))
		return CLI_FAILED;
	if (options->window.words[0] && resolve_moments(&options->window, "window", source->trace, &options->filter.window))
		return CLI_FAILED;
	if (heap_filter_prepare(&options->filter, source->table, source->names, &diag))
		return cli_fail("%s", diag.text);
	bool is_missing = patterns_report(&options->filter.required, "requireFrames", source->names);
	is_missing |= patterns_report(&options->filter.required_of_free, "requireFreeFrames", source->names);
	if (is_missing)
		return CLI_NO;
	heap_window_make(&window, source->table, &options->filter, range, options->by, false);
	source->window = &window;
	int status = output_show(options, source);
	heap_window_fini(&window);
	if (status == CLI_OK && patterns_report(&options->callers, "callers", source->names))
		status = CLI_NO;
	return status;
}

static int heap_show(struct heap_options *options, const char *path, const struct trace *trace)
{
	struct diag diag = {""};
	struct heap_table *table;
	if (heap_table_build(&table, trace, &diag))
		return cli_fail("%s: %s", path, diag.text);
	struct symbols *symbols = symbols_new();
	struct action_source source = {.path = path, .trace = trace, .table = table, .filter = &options->filter, .cull = &options->cull,
				       .callers_of = &options->callers, .names = heap_names_new(trace, symbols, options->with_lines)};
	int status = source_show(options, &source);
	action_callers_free(source.callers);
	intern_fini(&source.images);
	heap_names_free(source.names);
	symbols_free(symbols);
	heap_table_free(table);
	return status;
}

static int parts_settle(struct heap_options *options)
{
	if (!options->part_count)
		add_part(options, &action_stacks, NULL);
	for (unsigned i = 0; options->is_inclusive && i < options->part_count; i++)
		if (options->parts[i].action == &action_frames)
			options->parts[i].action = &action_inclusive;
	for (unsigned i = 0; options->by == HEAP_BY_HEAP && i < options->part_count; i++)
		if (options->parts[i].action->is_by_heap)
			return cli_fail("-by heap: -heaps is by heap already");
	if (options->format == REPORT_CSV && options->part_count > 1)
		return cli_fail("-format csv: one of -stacks, -frames, -image, ... at a time");
	if (!options->without_default_cull)
		heap_cull_use_default(&options->cull);
	return 0;
}

static int path_show(struct heap_options *options)
{
	struct diag diag = {""};
	struct trace *trace;
	char *path = cli_trace_path(options->path);
	if (!path)
		return CLI_FAILED;
	int status = trace_open(&trace, path, &diag) ? cli_fail("%s", diag.text) : CLI_OK;
	if (status == CLI_OK) {
		status = heap_show(options, path, trace);
		trace_close(trace);
	}
	free(path);
	return status;
}

static int heap_run(int argc, char **argv)
{
	struct heap_options options = {.top = TOP_DEFAULT};
	heap_filter_init(&options.filter);
	int status = CLI_FAILED;
	if (!options_parse(argc, argv, heap_option_table, sizeof(heap_option_table) / sizeof(*heap_option_table), &options, set_input) &&
	    !parts_settle(&options))
		status = path_show(&options);
	heap_filter_fini(&options.filter);
	heap_cull_fini(&options.cull);
	heap_patterns_fini(&options.callers);
	for (size_t i = 0; i < options.filter_count; i++)
		free((char *)options.filters[i].text);
	free(options.filters);
	return status;
}

const struct command command_heap = {
	.name = "heap", .usage = "[FILE] [ACTION...] [FILTER...]", .summary = "show where the memory went: allocations by stack, function or image",
	.run = heap_run,
	.help =
	"Actions, several at once; KEY sorts the rows:\n"
	"  -stacks [KEY]         one row per distinct stack (the default)\n"
	"  -frames [KEY]         one row per function that asked for memory\n"
	"  -inclusive            with -frames: per function anywhere on the stacks\n"
	"  -image [KEY]          one row per executable or library of those functions\n"
	"  -heaps [KEY]          one row per heap, with its extents\n"
	"  -tree [KEY]           who called whom, from the threads' starts\n"
	"  -callers FUNCTION [KEY] who called it, and who called these\n"
	"  -chains [KEY]         blocks that grew by realloc: steps, factor, bytes copied\n"
	"  -totals               only the totals\n"
	"  -by WHAT              split rows by process, thread, heap, size, lifetime, time or class\n"
	"  -top N                the first N rows of each (10000)\n"
	"Filters; an allocation has to pass all:\n"
	"  -range T1 T2          begun from T1 to T2: microseconds from the start, or with s, ms, us, ns, or YYYY/MM/DD:HH:MM:SS\n"
	"  -lifetime L1 L2       that lived at least L1 and less than L2\n"
	"  -size S1 S2           of at least S1 and less than S2 bytes (K, M, G may follow)\n"
	"  -requireFrames F...   with one of these on the stack that allocated it\n"
	"  -requireFreeFrames F... with one of these on the stack that freed it\n"
	"  -pids N...            of these processes; also -pid\n"
	"  -threads N...         of these threads\n"
	"  -heap H               of the heap with this handle or name\n"
	"  -window CLASS T1 T2   AIFI AIFO AOFI AOFO: allocated, freed inside or outside of T1 to T2\n"
	"  -closed               only what was given back\n"
	"Frames:\n"
	"  -cullFrames F...      take these off the innermost end of stacks, as the functions of the built-in list are\n"
	"  -cullLists FILE...    take off those of the files, one a line\n"
	"  -noDefaultCull        leave the built-in list out\n"
	"  -lines                tell functions apart by the line of the call\n"
	"Output:\n"
	"  -format FORMAT        text, csv or json\n"
	"  -o FILE               write there\n"
	"As the documented tool has them: -i FILE, -a heap, -symbols, -quiet, -tle, -tti, and -s KEY\n\n"
	"KEY: so soc outstanding size, count; st stc total size, count; src realloc count;\n"
	"     sp spc size, count at the peak; stt temporary count. The default is so.\n"
	"F:   image!, image!symbol, symbol or image+0xOFFSET, in any case, with * and ?. Lists end at the next option or --.\n"
	"Without FILE: the newest xheap.*.xht here.\n\n"
	"Example:\n  xheap heap xheap.jq.4711.xht -frames st -top 20 -requireFrames jq!parse* -size 1K 1M\n",
};
