/* SPDX-License-Identifier: MIT */
#include "cli/filter_options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/text.h"
#include "query/nearest.h"

void filter_options_init(struct filter_options *options, const char *command)
{
	*options = (struct filter_options){.command = command};
	heap_filter_init(&options->filter);
}

void filter_options_fini(struct filter_options *options)
{
	heap_filter_fini(&options->filter);
	for (size_t i = 0; i < options->note_count; i++)
		free((char *)options->notes[i].text);
	free(options->notes);
}

/* ---- words ---- */

/* Whether the word is one of a list's: a list ends at the next option, which "-5" is none of. */
static bool is_list_word(const char *word)
{
	return word && (word[0] != '-' || !word[1]);
}

/* Remember an option that says which allocations count, with its words, for the report. */
static void note_add(struct filter_options *options, const char *name, char **first, char **end)
{
	struct sink out;
	sink_to_memory(&out);
	for (char **word = first; word < end; word++)
		sink_format(&out, "%s%s", word > first ? " " : "", *word);
	char *text = sink_take(&out, NULL);
	memory_grow(options->notes, options->note_count, options->note_capacity);
	options->notes[options->note_count++] = (struct report_filter){name, text};
}

/* The trace is easily swallowed by the list before it. */
static int refuse_trace(const struct filter_options *options, const char *option, char **first, const char *word)
{
	const char *dot = strrchr(word, '.');
	struct stat status;
	if (!dot || strcmp(dot, ".xht") != 0 || stat(word, &status) != 0)
		return 0;
	cli_fail("-%s: %s is a file, and not a frame: a list goes on to the next option or --; write", option, word);
	fprintf(stderr, "    xheap %s %s -%s", options->command, text_shown(word), option);
	for (; strcmp(*first, word) != 0; first++)
		fprintf(stderr, " %s", text_shown(*first));
	fputs(" ...\n", stderr);
	return CLI_FAILED;
}

/* Each word of the list; at least one. */
int filter_take_list(struct filter_options *options, struct words *words, const char *option,
		     int (*take)(void *context, const char *word))
{
	char **first = words->next;
	while (is_list_word(options_peek(words))) {
		if (refuse_trace(options, option, first, *words->next) || take(options, *words->next))
			return CLI_FAILED;
		words->next++;
	}
	if (words->next == first)
		return cli_fail("-%s: a value is missing", option);
	note_add(options, option, first, words->next);
	return 0;
}

int filter_add_pattern(struct heap_patterns *patterns, const char *option, const char *word)
{
	struct diag diag = {""};
	return heap_patterns_add(patterns, word, &diag) ? cli_fail("-%s: %s", option, diag.text) : 0;
}

/* ---- options ---- */

static bool is_endless(const char *word)
{
	return !strcasecmp(word, "max") || !strcasecmp(word, "inf") || !strcasecmp(word, "infinity");
}

/* A time since the trace's start, which was at start_ns by the wall clock. */
static bool parse_moment(const char *word, int64_t start_ns, int64_t *time_ns)
{
	*time_ns = INT64_MAX / 2; /* a range from before the trace to here can be measured */
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
			return cli_fail("-%s: \"%s\" is no time: microseconds from the start, or with s, ms, us, ns, "
					"or YYYY/MM/DD:HH:MM:SS",
					option, word);
	}
	bool are_alike = !strchr(moments->words[0], '/') == !strchr(moments->words[1], '/');
	return are_alike && times[0] > times[1] ? cli_fail("-%s: it ends before it begins", option) : 0;
}

int filter_set_range(void *context, struct words *words, int number)
{
	(void)number;
	return take_moments(words, "range", &((struct filter_options *)context)->range);
}

int filter_set_window(void *context, struct words *words, int number)
{
	(void)number;
	struct filter_options *options = context;
	char **first = words->next;
	const char *word = options_value(words, "window");
	if (!word)
		return CLI_FAILED;
	options->filter.class = heap_class_find(word);
	if (options->filter.class == HEAP_CLASS_NONE)
		return cli_fail("-window: \"%s\" is none of AIFI, AIFO, AOFI, AOFO", word);
	if (take_moments(words, "window", &options->window))
		return CLI_FAILED;
	note_add(options, "window", first, words->next);
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
static int take_bounds(struct filter_options *options, struct words *words, const char *option,
		       bool (*parse)(const char *word, uint64_t *number), const char *kind, struct heap_bounds *bounds)
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
	note_add(options, option, first, words->next);
	return 0;
}

int filter_set_size(void *context, struct words *words, int number)
{
	(void)number;
	struct filter_options *options = context;
	return take_bounds(options, words, "size", text_parse_size, "size: bytes, or with K, M, G",
			   &options->filter.size_bytes);
}

int filter_set_lifetime(void *context, struct words *words, int number)
{
	(void)number;
	struct filter_options *options = context;
	return take_bounds(options, words, "lifetime", parse_lifetime, "time: microseconds, or with s, ms, us, ns",
			   &options->filter.lifetime_ns);
}

static int take_required(void *context, const char *word)
{
	struct filter_options *options = context;
	return filter_add_pattern(&options->filter.required, "requireFrames", word);
}

static int take_required_of_free(void *context, const char *word)
{
	struct filter_options *options = context;
	return filter_add_pattern(&options->filter.required_of_free, "requireFreeFrames", word);
}

static int take_heap(void *context, const char *word)
{
	struct filter_options *options = context;
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

static int take_pids(void *context, const char *word)
{
	struct filter_options *options = context;
	return take_numbers(word, "pids", &options->filter.pids, &options->filter.pid_count,
			    &options->filter.pid_capacity);
}

static int take_tids(void *context, const char *word)
{
	struct filter_options *options = context;
	return take_numbers(word, "threads", &options->filter.tids, &options->filter.tid_count,
			    &options->filter.tid_capacity);
}

int filter_set_frames(void *context, struct words *words, int number)
{
	return number ? filter_take_list(context, words, "requireFreeFrames", take_required_of_free)
		      : filter_take_list(context, words, "requireFrames", take_required);
}

/* Numbers may come with commas, and the FILE may follow them. */
int filter_set_numbers(void *context, struct words *words, int number)
{
	const char *name = number ? "threads" : "pids";
	char **first = words->next;
	while (is_list_word(options_peek(words)) && (isdigit((unsigned char)**words->next) || words->next == first)) {
		if (number ? take_tids(context, *words->next) : take_pids(context, *words->next))
			return CLI_FAILED;
		words->next++;
	}
	if (words->next == first)
		return cli_fail("-%s: a value is missing", name);
	note_add(context, name, first, words->next);
	return 0;
}

int filter_set_heap(void *context, struct words *words, int number)
{
	(void)number;
	char **first = words->next;
	const char *word = options_value(words, "heap");
	if (!word || take_heap(context, word))
		return CLI_FAILED;
	note_add(context, "heap", first, words->next);
	return 0;
}

int filter_set_closed(void *context, struct words *words, int number)
{
	(void)number;
	struct filter_options *options = context;
	options->filter.is_closed = true;
	note_add(options, "closed", words->next, words->next);
	return 0;
}

int filter_set_innermost(void *context, struct words *words, int number)
{
	(void)number;
	struct filter_options *options = context;
	options->filter.nesting = HEAP_NESTING_INNERMOST;
	note_add(options, "innermost", words->next, words->next);
	return 0;
}

/* ---- with the trace ---- */

static int resolve_moments(const struct moments *moments, const char *option, const struct trace *trace,
			   struct heap_range *range)
{
	int64_t start_ns = trace_dictionary(trace)->start_realtime_ns;
	parse_moment(moments->words[0], start_ns, &range->from_ns);
	parse_moment(moments->words[1], start_ns, &range->to_ns);
	return range->from_ns > range->to_ns ? cli_fail("-%s: it ends before it begins", option) : 0;
}

/* Tell of patterns that match no frame of the trace. True when none of them does. */
bool filter_report_patterns(const struct heap_patterns *patterns, const char *option, struct heap_names *names)
{
	size_t missing = 0;
	char text[1024];
	for (size_t i = 0; i < patterns->count; i++) {
		const struct heap_pattern *pattern = &patterns->items[i];
		if (pattern->hits)
			continue;
		heap_pattern_missing(pattern, names, text, sizeof(text));
		cli_say("-%s: %s", option, text);
		missing++;
	}
	return patterns->count && missing == patterns->count;
}

int filter_range(const struct filter_options *options, const struct trace *trace, struct heap_range *range)
{
	return options->range.words[0] ? resolve_moments(&options->range, "range", trace, range) : 0;
}

int filter_prepare(struct filter_options *options, const struct heap_table *table, struct heap_names *names)
{
	struct heap_filter *filter = &options->filter;
	struct diag diag = {""};
	if (options->window.words[0] && resolve_moments(&options->window, "window", table->trace, &filter->window))
		return CLI_FAILED;
	if (heap_filter_prepare(filter, table, names, &diag))
		return cli_fail("%s", diag.text);
	bool is_missing = filter_report_patterns(&filter->required, "requireFrames", names);
	is_missing |= filter_report_patterns(&filter->required_of_free, "requireFreeFrames", names);
	return is_missing ? CLI_NO : CLI_OK;
}
