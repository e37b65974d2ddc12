/* SPDX-License-Identifier: MIT */
#include "action/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

#include "action/early_end.h"
#include "base/grid.h"
#include "base/memory.h"
#include "base/text.h"
#include "query/folded.h"

/* The numbers of a row and of the totals, in the order in which every format has them. */
static const struct {
	const char *name;
	size_t offset;
} numbers[] = {
#define NUMBER(name) {#name, offsetof(struct heap_numbers, name)}
	NUMBER(total_count), NUMBER(total_bytes), NUMBER(outstanding_count), NUMBER(outstanding_bytes), NUMBER(realloc_count),
	NUMBER(realloc_moved_count), NUMBER(temporary_count), NUMBER(open_count), NUMBER(peak_count), NUMBER(peak_bytes),
};
enum { NUMBER_COUNT = sizeof(numbers) / sizeof(*numbers) };

/* What a sample has beside them: standard errors, and of which sort keys they are. */
static const struct {
	const char *name, *key;
	size_t variance, number;
} errors[] = {
#define ERROR(part, unit, key) {#part "_" #unit "_error", key, offsetof(struct heap_numbers, part##_variance.unit), offsetof(struct heap_numbers, part##_##unit)}
	ERROR(total, count, "stc"), ERROR(total, bytes, "st"), ERROR(outstanding, count, "soc"), ERROR(outstanding, bytes, "so"),
	ERROR(peak, count, "spc"), ERROR(peak, bytes, "sp"),
};
enum { ERROR_COUNT = sizeof(errors) / sizeof(*errors) };

/* Ids of what rows are split by, for programs. */
static const struct {
	const char *name;
	uint32_t (*of)(const struct heap_window *window, const struct heap_table *table, uint32_t by);
	unsigned splits;             /* a bit for each enum heap_by that has it */
} by_ids[] = {
	{"process_id", heap_by_process, 1 << HEAP_BY_PROCESS | 1 << HEAP_BY_THREAD | 1 << HEAP_BY_HEAP},
	{"thread_id", heap_by_thread, 1 << HEAP_BY_THREAD},
};
enum { BY_ID_COUNT = sizeof(by_ids) / sizeof(*by_ids) };

static uint64_t number_at(const struct heap_numbers *from, size_t offset)
{
	uint64_t number;
	memcpy(&number, (const char *)from + offset, sizeof(number));
	return number;
}

static double error_at(const struct heap_numbers *from, int i)
{
	double variance;
	memcpy(&variance, (const char *)from + errors[i].variance, sizeof(variance));
	return sqrt(variance);
}

static bool is_sample(const struct report *report)
{
	return report->source->table->sample_bytes > 0;
}

/* Not where all of the range is folded, and more is asked for than everything. */
static bool is_peak_told(const struct report *report)
{
	return report->source->window->peak_from_ns <= report->source->window->range.to_ns;
}

/* What only whole traces tell: how a block's end follows its beginning; what was live at a moment. */
static bool is_told(const struct report *report, size_t offset)
{
	bool is_of_peak = offset == offsetof(struct heap_numbers, peak_count) || offset == offsetof(struct heap_numbers, peak_bytes);
	if (is_of_peak && !is_peak_told(report))
		return false;
	return !is_sample(report) || offset != offsetof(struct heap_numbers, temporary_count);
}

/* What other blocks than the recorded ones would have to be known for. */
static unsigned extra_count(const struct report *report, const struct action *action)
{
	return is_sample(report) || heap_is_folded(report->source->table) ? 0 : action->extra_count;
}

int report_format_find(const char *name)
{
	static const char *const names[] = {"text", "csv", "json"};
	for (int i = 0; i < 3; i++)
		if (!strcasecmp(name, names[i]))
			return i;
	return -1;
}

int report_check(const struct report_part *parts, unsigned count, const struct heap_table *table, const struct heap_filter *filter, struct heap_range range,
		 enum heap_by by, struct diag *diag)
{
	struct text until = text_duration(heap_folded_until_ns(table));
	bool tells_peak = heap_folded_tells_peak(table, filter, range);
	for (unsigned i = 0; i < count && heap_is_folded(table); i++) {
		const char *key = parts[i].sort ? parts[i].sort->key : "";
		if (parts[i].action == &action_chains)
			return diag_fail(diag, ENOTSUP, "-chains is not known up to %s: blocks that had ended by then are folded into sums; -stacks src tells which stacks"
					 " reallocate", until.data);
		if (!tells_peak && (!strcmp(key, "sp") || !strcmp(key, "spc")))
			return diag_fail(diag, ENOTSUP, "%s: what of this question was live up to %s is not known: blocks that had ended by then are folded into sums;"
					 " ask without filters, or for a -range behind that time", key, until.data);
	}
	return heap_folded_check(table, filter, range, by, diag);
}

/* By heap all are told, also those that lie in others. */
static void report_make_by_heap(struct report *report)
{
	struct action_source *source = report->source;
	if (report->by_heap.is_by_heap)
		return;
	heap_filter_init_beside(&report->of_heaps, source->filter, source->table);
	heap_window_make_by_heap(&report->by_heap, source->window, source->table, &report->of_heaps);
}

void report_make(struct report *report, uint64_t top)
{
	struct action_source *source = report->source;
	const struct heap_filter *filter = source->filter;
	for (unsigned i = 0; i < report->part_count; i++) {
		struct report_part *part = &report->parts[i];
		if (part->action->is_by_heap)
			report_make_by_heap(report);
		part->window = part->action->is_by_heap ? &report->by_heap : source->window;
		source->filter = part->action->is_by_heap ? &report->of_heaps : filter;
		action_rows_make(&part->rows, source, part->action, part->window, &(struct action_choice){.sort = part->sort, .top = top});
		source->filter = filter;
	}
}

void report_fini(struct report *report)
{
	for (unsigned i = 0; i < report->part_count; i++)
		action_rows_fini(&report->parts[i].rows);
	if (report->by_heap.is_by_heap)
		heap_filter_fini_beside(&report->of_heaps);
	heap_window_fini(&report->by_heap);
}

/* ---- losses ---- */

static const char *const kind_words[] = {
#define X(id, action, word) word,
	EVENT_KINDS(X)
#undef X
};

struct report_losses report_losses_sum(const struct trace_dictionary *dictionary)
{
	struct report_losses losses = {.events = dictionary->unwritten_events};
	for (uint32_t i = 0; i < dictionary->gap_count; i++) {
		losses.stacks += dictionary->gaps[i].stacks;
		for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
			losses.events += dictionary->gaps[i].count[kind];
	}
	return losses;
}

static bool has_option(const struct trace_dictionary *dictionary, const char *name)
{
	for (uint32_t i = 0; i < dictionary->option_count; i++)
		if (!strcmp(dictionary->options[i].name, name))
			return true;
	return false;
}

uint64_t report_missing_calls(const struct trace_dictionary *dictionary)
{
	return report_losses_sum(dictionary).events + dictionary->statistics.untraced_calls + dictionary->statistics.unwatched;
}

/* No sample has blocks from before: none of them is missing. */
static bool lacks_earlier(const struct trace_dictionary *dictionary)
{
	return has_option(dictionary, TRACE_OPTION_EARLIER_MISSING) && !has_option(dictionary, "sample");
}

static uint32_t untraced_count(const struct trace_dictionary *dictionary)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		count += trace_process_is_untraced(&dictionary->processes[i]);
	return count;
}

/* What keeps calls from being recorded that nobody can count, noted in the trace as options. */
static const struct { const char *option, *json_key, *text; } uncounted[] = {
	{TRACE_OPTION_UNHOOKED, "unhooked", "not every function could be hooked"},
	{TRACE_OPTION_UNTRACED_EXECS, "untraced_execs", "programs may have run untraced"},
	{TRACE_OPTION_DAMAGED, "damaged_memory", "shared memory was damaged"},
};
enum { UNCOUNTED_KINDS = sizeof(uncounted) / sizeof(uncounted[0]) };

/* The first kind that the trace has, else UNCOUNTED_KINDS. */
static int uncounted_kind(const struct trace_dictionary *dictionary)
{
	int kind = 0;
	while (kind < UNCOUNTED_KINDS && !has_option(dictionary, uncounted[kind].option))
		kind++;
	return kind;
}

bool report_is_complete(const struct trace_dictionary *dictionary)
{
	return dictionary->is_complete && !early_end_first(dictionary) && report_missing_calls(dictionary) == 0 && !lacks_earlier(dictionary) &&
	       uncounted_kind(dictionary) == UNCOUNTED_KINDS && untraced_count(dictionary) == 0;
}

struct text report_missing_text(const struct trace_dictionary *dictionary)
{
	struct text text = {""};
	uint64_t calls = report_missing_calls(dictionary), untraced = untraced_count(dictionary);
	int kind = uncounted_kind(dictionary);
	const struct trace_early_end *end = early_end_first(dictionary);
	if (end)
		snprintf(text.data, sizeof(text.data), "recording ended at %.24s", text_duration(end->time_ns).data);
	else if (calls)
		snprintf(text.data, sizeof(text.data), "%.26s call%s missing", text_count(calls).data, calls == 1 ? " is" : "s are");
	else if (kind < UNCOUNTED_KINDS)
		snprintf(text.data, sizeof(text.data), "%s", uncounted[kind].text);
	else if (untraced)
		snprintf(text.data, sizeof(text.data), "%.20s process%s ran untraced", text_count(untraced).data, untraced == 1 ? "" : "es");
	else if (lacks_earlier(dictionary))
		snprintf(text.data, sizeof(text.data), "not all earlier blocks are known");
	return text;
}

static void json_kinds(struct json *json, const char *key, const uint64_t *counts)
{
	json_begin_object(json, key);
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		if (counts[kind])
			json_count(json, kind_words[kind], counts[kind]);
	json_end_object(json);
}

static const struct trace_process *gap_process(const struct trace_dictionary *dictionary, const struct trace_gap *gap)
{
	return gap->process < dictionary->process_count ? &dictionary->processes[gap->process] : NULL;
}

static const struct trace_thread *gap_thread(const struct trace_dictionary *dictionary, const struct trace_gap *gap)
{
	return gap->thread < dictionary->thread_count ? &dictionary->threads[gap->thread] : NULL;
}

void report_json_gaps(struct json *json, const struct trace_dictionary *dictionary)
{
	json_begin_array(json, "gaps");
	for (uint32_t i = 0; i < dictionary->gap_count; i++) {
		const struct trace_gap *gap = &dictionary->gaps[i];
		json_begin_object(json, NULL);
		if (gap_process(dictionary, gap)) {
			json_count(json, "process", gap->process);
			json_count(json, "pid", gap_process(dictionary, gap)->pid);
		}
		if (gap_thread(dictionary, gap))
			json_count(json, "tid", gap_thread(dictionary, gap)->tid);
		json_time(json, "from_us", gap->from_ns);
		json_time(json, "to_us", gap->to_ns);
		json_kinds(json, "events", gap->count);
		json_kinds(json, "bytes", gap->bytes);
		json_count(json, "stacks", gap->stacks);
		json_end_object(json);
	}
	json_end_array(json);
	if (dictionary->unwritten_events)
		json_count(json, "unwritten_events", dictionary->unwritten_events);
}

void report_text_gaps(FILE *out, const struct trace_dictionary *dictionary)
{
	enum { GAP_LINES_MAX = 10 };
	for (uint32_t i = 0; i < dictionary->gap_count && i < GAP_LINES_MAX; i++) {
		const struct trace_gap *gap = &dictionary->gaps[i];
		fputs("    gap", out);
		if (gap_process(dictionary, gap))
			fprintf(out, " in process %" PRIu32, gap_process(dictionary, gap)->pid);
		if (gap_thread(dictionary, gap))
			fprintf(out, " thread %" PRIu32, gap_thread(dictionary, gap)->tid);
		fprintf(out, " from %s to %s:", text_duration(gap->from_ns).data, text_duration(gap->to_ns).data);
		for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
			if (gap->count[kind])
				fprintf(out, " %s %s (%s)", text_count(gap->count[kind]).data, kind_words[kind],
					text_bytes(gap->bytes[kind]).data);
		if (gap->stacks)
			fprintf(out, " %s stacks", text_count(gap->stacks).data);
		putc('\n', out);
	}
	if (dictionary->gap_count > GAP_LINES_MAX)
		fprintf(out, "    and %" PRIu32 " more gaps\n", dictionary->gap_count - GAP_LINES_MAX);
	if (dictionary->unwritten_events)
		fprintf(out, "    %s of them could not be written\n",
			text_count(dictionary->unwritten_events).data);
}

uint32_t report_thread_count(const struct trace_dictionary *dictionary)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < dictionary->thread_count; i++)
		count += dictionary->threads[i].tid != TRACE_TID_NONE;
	return count;
}

/* The value of the next option of this name from *at on, or NULL. */
static const char *option_next(const struct trace_dictionary *dictionary, const char *name, uint32_t *at)
{
	while (*at < dictionary->option_count) {
		const struct trace_option *option = &dictionary->options[(*at)++];
		if (!strcmp(option->name, name))
			return option->value;
	}
	return NULL;
}

/* What the next option from *at on says about earlier blocks that are not known, or NULL. */
static const char *missing_next(const struct trace_dictionary *dictionary, uint32_t *at)
{
	return option_next(dictionary, TRACE_OPTION_EARLIER_MISSING, at);
}

void report_json_missing_calls(struct json *json, const struct trace_dictionary *dictionary)
{
	uint32_t untraced = untraced_count(dictionary);
	json_count(json, "missing_calls", report_missing_calls(dictionary));
	json_count(json, "lost_events", report_losses_sum(dictionary).events);
	if (dictionary->statistics.untraced_calls)
		json_count(json, "untraced_calls", dictionary->statistics.untraced_calls);
	if (dictionary->statistics.unwatched || has_option(dictionary, "sample"))
		json_count(json, "unwatched_blocks", dictionary->statistics.unwatched);
	if (untraced)
		json_count(json, "untraced_processes", untraced);
	for (int kind = 0; kind < UNCOUNTED_KINDS; kind++) {
		uint32_t at = 0;
		const char *text = option_next(dictionary, uncounted[kind].option, &at);
		if (!text)
			continue;
		json_begin_array(json, uncounted[kind].json_key);
		for (; text; text = option_next(dictionary, uncounted[kind].option, &at))
			json_text(json, NULL, text);
		json_end_array(json);
	}
}

void report_text_missing_calls(FILE *out, const struct trace_dictionary *dictionary)
{
	uint32_t untraced = untraced_count(dictionary);
	if (dictionary->statistics.untraced_calls)
		fprintf(out, "  untraced calls: %s (their threads or processes found no room: there were too many at once)\n",
			text_count(dictionary->statistics.untraced_calls).data);
	if (dictionary->statistics.unwatched)
		fprintf(out, "  unwatched blocks: %s (of the sample; too many were live to see each of them freed)\n",
			text_count(dictionary->statistics.unwatched).data);
	for (int kind = 0; kind < UNCOUNTED_KINDS; kind++) {
		uint32_t at = 0;
		for (const char *text; (text = option_next(dictionary, uncounted[kind].option, &at));)
			fprintf(out, "  %s\n", text_shown(text));
	}
	if (untraced)
		fprintf(out, "  untraced processes: %" PRIu32 " (xheap info has the reasons)\n", untraced);
}

void report_text_missing(FILE *out, const struct trace_dictionary *dictionary, const char *lead)
{
	uint32_t at = 0;
	for (const char *text; (text = missing_next(dictionary, &at));)
		fprintf(out, "%s%s\n", lead, text_shown(text));
}

void report_json_missing(struct json *json, const char *name, const struct trace_dictionary *dictionary)
{
	uint32_t at = 0;
	const char *text = missing_next(dictionary, &at);
	if (!text)
		return;
	json_begin_array(json, name);
	for (; text; text = missing_next(dictionary, &at))
		json_text(json, NULL, text);
	json_end_array(json);
}

void report_json_dropped(struct json *json, const struct trace_dictionary *dictionary)
{
	if (!dictionary->dropped_events)
		return;
	json_begin_object(json, "dropped");
	json_count(json, "events", dictionary->dropped_events);
	json_time(json, "until_us", dictionary->dropped_until_ns);
	json_end_object(json);
}

void report_text_dropped(FILE *out, const struct trace_dictionary *dictionary)
{
	if (dictionary->dropped_events)
		fprintf(out, "  %s events up to %s are not kept: blocks from then are not known, and giving one back is an unknown free\n",
			text_count(dictionary->dropped_events).data, text_duration(dictionary->dropped_until_ns).data);
}

/* ---- how stacks end ---- */

/* Images whose code has no unwind data, so that stacks end there. */
struct unwindless { const char **names; size_t count, capacity; };

static void unwindless_add(struct unwindless *images, const char *name)
{
	for (size_t i = 0; i < images->count; i++)
		if (!strcmp(images->names[i], name))
			return;
	memory_grow(images->names, images->count, images->capacity);
	images->names[images->count++] = name;
}

/* The frame before the mark, that is the mark's child in the tree, is the one that has none. Caller frees the names' array. */
static struct unwindless unwindless_find(const struct trace_dictionary *dictionary)
{
	struct unwindless images = {0};
	for (uint32_t i = 1; i < dictionary->node_count; i++) {
		uint32_t mark = dictionary->nodes[i].parent;
		if (dictionary->stack_ends[i] != TRACE_STACK_UNWINDLESS || mark == 0 || dictionary->nodes[mark].parent != 0)
			continue;
		uint32_t image = dictionary->frames[dictionary->nodes[i].frame].image;
		unwindless_add(&images, image == TRACE_NONE ? "[no image]" : text_file_name(dictionary->images[image].path));
	}
	return images;
}

void report_json_stack_ends(struct json *json, const struct trace_dictionary *dictionary)
{
	struct unwindless images = unwindless_find(dictionary);
	if (dictionary->is_whole_known)
		json_count(json, "whole_stacks", dictionary->ends.whole);
	json_count(json, "truncated_stacks", dictionary->ends.truncated);
	json_count(json, "unwindless_stacks", dictionary->ends.unwindless);
	if (images.count) {
		json_begin_array(json, "unwindless_images");
		for (size_t i = 0; i < images.count; i++)
			json_text(json, NULL, images.names[i]);
		json_end_array(json);
	}
	free(images.names);
}

void report_text_unwindless(FILE *out, const struct trace_dictionary *dictionary)
{
	enum { NAMES_MAX = 5 };
	struct unwindless images = unwindless_find(dictionary);
	if (dictionary->ends.unwindless) {
		fprintf(out, "  stacks without unwind data: %s (they end at code of ", text_count(dictionary->ends.unwindless).data);
		for (size_t i = 0; i < images.count && i < NAMES_MAX; i++)
			fprintf(out, "%s%s", i ? ", " : "", text_shown(images.names[i]));
		if (images.count > NAMES_MAX)
			fprintf(out, " and %zu more images", images.count - NAMES_MAX);
		fputs(")\n", out);
	}
	free(images.names);
}

/* Events that are in sums, over all traces that were merged. */
static const struct trace_fold *last_fold(const struct trace_dictionary *dictionary)
{
	const struct trace_fold *last = NULL;
	for (uint32_t i = 0; i < dictionary->fold_count; i++)
		if (!last || dictionary->folds[i].until_ns > last->until_ns)
			last = &dictionary->folds[i];
	return last;
}

/* Sums of threads of which it is not known any more which one called. */
static uint32_t joined_sums(const struct trace_dictionary *dictionary)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < dictionary->sum_count; i++)
		count += !!(dictionary->sums[i].flags & TRACE_SUM_THREADS);
	return count;
}

void report_json_folded(struct json *json, const struct trace_dictionary *dictionary)
{
	const struct trace_fold *fold = last_fold(dictionary);
	if (!fold)
		return;
	json_begin_object(json, "folded");
	json_count(json, "events", dictionary->folded_count);
	json_time(json, "until_us", fold->until_ns);
	json_time(json, "interval_us", fold->interval_ns);
	json_count(json, "sums", dictionary->sum_count);
	json_count(json, "sums_of_several_threads", joined_sums(dictionary));
	json_end_object(json);
}

void report_text_folded(FILE *out, const struct trace_dictionary *dictionary)
{
	const struct trace_fold *fold = last_fold(dictionary);
	if (fold)
		fprintf(out, "  folded: %s events up to %s; blocks that had ended by then are in %s sums by stack, thread and interval of %s\n",
			text_count(dictionary->folded_count).data, text_duration(fold->until_ns).data, text_count(dictionary->sum_count).data,
			text_duration(fold->interval_ns).data);
	if (fold && joined_sums(dictionary))
		fprintf(out, "  %s of these sums are of several threads that are done: they count as one thread of their process\n",
			text_count(joined_sums(dictionary)).data);
}

static const char *symbols_word(const struct report *report, size_t without)
{
	if (!without)
		return "full";
	return without < heap_names_image_count(report->source->names) ? "partial" : "none";
}

/* ---- JSON ---- */

static void json_numbers(struct json *json, const struct report *report, const struct heap_numbers *from)
{
	for (int i = 0; i < NUMBER_COUNT; i++)
		if (is_told(report, numbers[i].offset))
			json_count(json, numbers[i].name, number_at(from, numbers[i].offset));
	if (!is_sample(report))
		return;
	json_count(json, "recorded_count", from->recorded_count);
	for (int i = 0; i < ERROR_COUNT; i++)
		json_count(json, errors[i].name, (uint64_t)error_at(from, i));
}

static void json_doubts(struct json *json, const struct report *report)
{
	const struct trace_dictionary *dictionary = trace_dictionary(report->source->trace);
	const struct heap_table *table = report->source->table;
	const struct heap_window *window = report->source->window;
	size_t without;
	const char *const *images = heap_names_without_symbols(report->source->names, &without);
	if (is_sample(report))
		json_count(json, "sample_bytes", table->sample_bytes);
	report_json_missing_calls(json, dictionary);
	early_end_json(json, dictionary);
	report_json_gaps(json, dictionary);
	report_json_dropped(json, dictionary);
	report_json_folded(json, dictionary);
	report_json_stack_ends(json, dictionary);
	if (is_sample(report))
		json_count(json, "annotated_blocks", table->nested_count);
	if (dictionary->statistics.heapless)
		json_count(json, "events_without_heap", dictionary->statistics.heapless);
	json_count(json, "unknown_frees", table->unknown_frees);
	json_count(json, "order_conflicts", table->order_conflicts);
	json_count(json, "failed", dictionary->failed_count);
	json_begin_object(json, "earlier");
	json_count(json, "count", window->earlier_count);
	json_count(json, "bytes", window->earlier_bytes);
	report_json_missing(json, "missing", dictionary);
	json_end_object(json);
	json_begin_object(json, "uncertain");
	json_count(json, "count", window->uncertain_count);
	json_count(json, "bytes", window->uncertain_bytes);
	json_end_object(json);
	json_text(json, "symbols", symbols_word(report, without));
	json_begin_array(json, "images_without_symbols");
	for (size_t i = 0; i < without; i++)
		json_text(json, NULL, images[i]);
	json_end_array(json);
}

static void json_totals(struct json *json, const struct report *report)
{
	const struct heap_window *window = report->source->window;
	json_begin_object(json, "range");
	json_time(json, "from_us", window->range.from_ns);
	json_time(json, "to_us", window->range.to_ns);
	json_end_object(json);
	json_begin_object(json, "totals");
	json_numbers(json, report, &window->totals);
	if (is_peak_told(report))
		json_time(json, "peak_at_us", window->peak_at_ns);
	if (window->peak_from_ns > window->range.from_ns)
		json_time(json, "peak_from_us", window->peak_from_ns);
	json_end_object(json);
}

/* A row's name for programs: the same for the same group in other traces of the program. */
static void row_id(const struct report_part *part, const struct action_row *row, const char *by, char id[17])
{
	char *path = NULL;
	size_t size;
	FILE *out = open_memstream(&path, &size);
	if (!out)
		memory_exhausted(0);
	fputs(row->text, out);
	for (uint32_t at = row->parent; at != HEAP_NONE; at = part->rows.memory[at].parent)
		fprintf(out, ";%s", part->rows.memory[at].text);
	if (*by)
		fprintf(out, "\n%s", by);
	fclose(out);
	snprintf(id, 17, "%016" PRIx64, (uint64_t)XXH3_64bits(path, size));
	free(path);
}

static void json_lifetimes(struct json *json, const struct action_row *row)
{
	json_begin_object(json, "lifetime_us");
	json_time(json, "min", row->lifetime_min);
	json_time(json, "median", row->lifetime_median);
	json_time(json, "max", row->lifetime_max);
	json_end_object(json);
}

static void json_extra(struct json *json, const struct action_extra *extra, uint64_t value)
{
	if (extra->kind == EXTRA_FACTOR)
		json_thousandths(json, extra->name, value);
	else
		json_count(json, extra->name, value);
}

static void json_by(struct json *json, const struct report *report, const struct report_part *part, const struct action_row *row, const char *by)
{
	const struct heap_window *window = part->window;
	/* Rows of heaps have their process under the same name. */
	if (*by && !(window->by == HEAP_BY_PROCESS && part->action->is_by_heap))
		json_text(json, heap_by_name(window->by), by);
	for (int i = 0; i < BY_ID_COUNT; i++) {
		uint32_t id = by_ids[i].of(window, report->source->table, row->by);
		if (id != HEAP_NONE)
			json_count(json, by_ids[i].name, id);
	}
}

static void json_row(struct json *json, const struct report *report, const struct report_part *part, const struct action_row *row)
{
	const struct action *action = part->action;
	char id[17], *by = heap_by_text(part->window, report->source->table, row->by);
	row_id(part, row, by, id);
	json_begin_object(json, NULL);
	json_text(json, "id", id);
	json_by(json, report, part, row, by);
	if (action->parent)
		json_count(json, "depth", row->depth);
	json_numbers(json, report, &row->numbers);
	for (unsigned i = 0; i < extra_count(report, action); i++)
		json_extra(json, &action->extra[i], row->extra[i]);
	if (row->numbers.total_count && !action->is_inclusive)
		json_lifetimes(json, row);
	if (!action->is_inclusive) {
		json_count(json, "threads", row->threads);
		json_count(json, "processes", row->processes);
	}
	action->json(report->source, row->group, json);
	json_end_object(json);
	free(by);
}

static void json_part(struct json *json, const struct report *report, const struct report_part *part)
{
	json_begin_object(json, NULL);
	json_text(json, "action", part->action->name);
	json_text(json, "sort", part->sort->key);
	json_count(json, "row_count", part->rows.count);
	json_count(json, "cut", part->rows.count - part->rows.shown);
	json_begin_array(json, "rows");
	for (size_t i = 0; i < part->rows.shown; i++)
		json_row(json, report, part, part->rows.rows[i]);
	json_end_array(json);
	json_end_object(json);
}

static void report_json(const struct report *report, FILE *out)
{
	const struct trace_dictionary *dictionary = trace_dictionary(report->source->trace);
	struct json json = {.out = out, .line_depth = 4};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_text(&json, "trace", report->source->path);
	json_bool(&json, "complete", report_is_complete(dictionary));
	json_begin_object(&json, "filters");
	for (size_t i = 0; i < report->filter_count; i++)
		json_text(&json, report->filters[i].name, report->filters[i].text);
	json_end_object(&json);
	json_doubts(&json, report);
	json_totals(&json, report);
	json_begin_array(&json, "actions");
	for (unsigned i = 0; i < report->part_count; i++)
		if (report->parts[i].action->groups)
			json_part(&json, report, &report->parts[i]);
	json_end_array(&json);
	json_end_object(&json);
	json_end(&json);
}

/* ---- CSV ---- */

static void csv_numbers(FILE *out, const struct report *report, const struct heap_numbers *from)
{
	for (int i = 0; i < NUMBER_COUNT; i++) {
		if (i)
			putc(',', out);
		if (is_told(report, numbers[i].offset))
			fprintf(out, "%" PRIu64, number_at(from, numbers[i].offset));
	}
	if (!is_sample(report))
		return;
	fprintf(out, ",%" PRIu64, from->recorded_count);
	for (int i = 0; i < ERROR_COUNT; i++)
		fprintf(out, ",%.0f", error_at(from, i));
}

static void csv_number_names(FILE *out, const struct report *report)
{
	for (int i = 0; i < NUMBER_COUNT; i++)
		fprintf(out, i ? ",%s" : "%s", numbers[i].name);
	if (!is_sample(report))
		return;
	fputs(",recorded_count", out);
	for (int i = 0; i < ERROR_COUNT; i++)
		fprintf(out, ",%s", errors[i].name);
}

static void csv_details(const struct action_row *row, FILE *out)
{
	if (row->numbers.total_count)
		fprintf(out, ",%s,%s,%s", text_microseconds(row->lifetime_min).data, text_microseconds(row->lifetime_median).data,
			text_microseconds(row->lifetime_max).data);
	else
		fputs(",,,", out);
	fprintf(out, ",%" PRIu32 ",%" PRIu32, row->threads, row->processes);
}

static void csv_extra(const struct action_extra *extra, uint64_t value, FILE *out)
{
	if (extra->kind == EXTRA_FACTOR)
		fprintf(out, ",%s", text_thousandths(value).data);
	else
		fprintf(out, ",%" PRIu64, value);
}

/* What the rows are split by, then its ids. */
static void csv_by(const struct report *report, const struct report_part *part, const struct action_row *row, FILE *out)
{
	const struct heap_window *window = part->window;
	char *by = heap_by_text(window, report->source->table, row->by);
	putc(',', out);
	csv_field(out, by);
	free(by);
	for (int i = 0; i < BY_ID_COUNT; i++) {
		uint32_t id = by_ids[i].of(window, report->source->table, row->by);
		if (by_ids[i].splits & 1u << window->by)
			putc(',', out);
		if (id != HEAP_NONE)
			fprintf(out, "%" PRIu32, id);
	}
}

static void csv_by_names(const struct heap_window *window, FILE *out)
{
	fprintf(out, ",%s", heap_by_name(window->by));
	for (int i = 0; i < BY_ID_COUNT; i++)
		if (by_ids[i].splits & 1u << window->by)
			fprintf(out, ",%s", by_ids[i].name);
}

static void csv_row(const struct report *report, const struct report_part *part, const struct action_row *row, FILE *out)
{
	const struct action *action = part->action;
	csv_numbers(out, report, &row->numbers);
	for (unsigned i = 0; i < extra_count(report, action); i++)
		csv_extra(&action->extra[i], row->extra[i], out);
	if (!action->is_inclusive)
		csv_details(row, out);
	if (action->parent)
		fprintf(out, ",%" PRIu32, row->depth);
	if (part->window->by != HEAP_BY_NONE)
		csv_by(report, part, row, out);
	putc(',', out);
	csv_field(out, row->text);
	putc('\n', out);
}

static void report_csv(const struct report *report, FILE *out)
{
	const struct report_part *part = &report->parts[0];
	csv_number_names(out, report);
	if (!part->action->groups) {
		fputs(",peak_at_us\n", out);
		csv_numbers(out, report, &report->source->window->totals);
		fprintf(out, ",%s\n", is_peak_told(report) ? text_microseconds(report->source->window->peak_at_ns).data : "");
		return;
	}
	for (unsigned i = 0; i < extra_count(report, part->action); i++)
		fprintf(out, ",%s", part->action->extra[i].name);
	if (!part->action->is_inclusive)
		fputs(",lifetime_min_us,lifetime_median_us,lifetime_max_us,threads,processes", out);
	if (part->action->parent)
		fputs(",depth", out);
	if (part->window->by != HEAP_BY_NONE)
		csv_by_names(part->window, out);
	fprintf(out, ",%s\n", part->action->label);
	for (size_t i = 0; i < part->rows.shown; i++)
		csv_row(report, part, part->rows.rows[i], out);
}

/* ---- text ---- */

static void text_doubt(FILE *out, const char *name, uint64_t count, const char *meaning)
{
	if (count)
		fprintf(out, "  %s: %s%s\n", name, text_count(count).data, meaning);
}

static void text_sized_doubt(FILE *out, const char *name, uint64_t count, uint64_t bytes, const char *meaning)
{
	if (count)
		fprintf(out, "  %s: %s, %s%s\n", name, text_count(count).data, text_bytes(bytes).data, meaning);
}

/* Beside stacks that lack their outer part, how many have it. */
static void text_whole(FILE *out, const struct trace_dictionary *dictionary)
{
	const struct stack_ends *ends = &dictionary->ends;
	if (dictionary->is_whole_known && (ends->truncated || ends->unwindless))
		fprintf(out, "  whole stacks: %s, of %s events\n", text_count(ends->whole).data, text_count(dictionary->event_count).data);
}

static void text_without_symbols(const struct report *report, FILE *out)
{
	enum { NAMES_MAX = 5 };
	size_t without;
	const char *const *images = heap_names_without_symbols(report->source->names, &without);
	for (size_t i = 0; i < without && i < NAMES_MAX; i++)
		fprintf(out, "%s%s", i ? ", " : "  symbols incomplete for ", text_shown(images[i]));
	if (without > NAMES_MAX)
		fprintf(out, " and %zu more images", without - NAMES_MAX);
	if (without)
		putc('\n', out);
}

static void text_doubts(const struct report *report, FILE *out)
{
	const struct trace_dictionary *dictionary = trace_dictionary(report->source->trace);
	const struct heap_window *window = report->source->window;
	struct report_losses losses = report_losses_sum(dictionary);
	if (report->source->session)
		fprintf(out, "  session %s goes on: this is what it has recorded up to now\n", text_shown(report->source->session));
	else if (!dictionary->is_complete)
		fprintf(out, "  the trace is cut at byte %" PRIu64 "%s%s\n", dictionary->cut_offset,
			dictionary->cut_reason && *dictionary->cut_reason ? ": " : "", dictionary->cut_reason ? text_shown(dictionary->cut_reason) : "");
	early_end_text(out, dictionary, "  ");
	report_text_missing(out, dictionary, "  ");
	if (is_sample(report))
		fprintf(out, "  a sample, of one byte in %s asked for: what is marked ~ is an estimate; errors are standard errors\n",
			text_bytes(report->source->table->sample_bytes).data);
	if (is_sample(report))
		text_doubt(out, "recorded blocks of annotated heaps", report->source->table->nested_count,
			   " (what they lie in need not be in the sample: they are in no total; -heaps and -heap NAME show them)");
	text_doubt(out, "lost events", losses.events, "");
	text_doubt(out, "lost stacks", losses.stacks, "");
	report_text_gaps(out, dictionary);
	report_text_missing_calls(out, dictionary);
	report_text_dropped(out, dictionary);
	report_text_folded(out, dictionary);
	if (window->folded_count)
		fputs("  median lifetimes of rows with folded blocks are known to a sixteenth\n", out);
	if (window->peak_from_ns > window->range.to_ns)
		fputs("  the peak is not known: it was when blocks that ended are folded\n", out);
	else if (window->peak_from_ns > window->range.from_ns)
		fprintf(out, "  the peak is that of the time behind %s: what of this question was live before is not known\n",
			text_duration(window->peak_from_ns - 1).data);
	text_doubt(out, "events without a heap", dictionary->statistics.heapless, " (there were too many heaps: their blocks end with no heap)");
	text_doubt(out, "truncated stacks", dictionary->ends.truncated, "");
	report_text_unwindless(out, dictionary);
	text_whole(out, dictionary);
	text_doubt(out, "unknown frees", report->source->table->unknown_frees,
			    dictionary->fold_count && !dictionary->dropped_events ? " (of addresses that were not live, or of what a child had inherited that is folded)"
			    : dictionary->dropped_events ? " (of blocks from what is not kept, or of addresses that were not live)"
			    : has_option(dictionary, "attached") ? " (of blocks from before the recording)" : " (of addresses that were not live)");
	text_doubt(out, "order conflicts", report->source->table->order_conflicts, " (blocks that began where another was live)");
	text_sized_doubt(out, "uncertain blocks", window->uncertain_count, window->uncertain_bytes, " (may have been freed in a gap)");
	text_sized_doubt(out, "earlier blocks", window->earlier_count, window->earlier_bytes, " (from before the trace, in no total)");
	text_without_symbols(report, out);
}

void report_text_doubts(const struct report *report, FILE *out)
{
	char *lines = NULL;
	size_t size;
	FILE *to = open_memstream(&lines, &size);
	if (!to)
		memory_exhausted(0);
	text_doubts(report, to);
	fclose(to);
	if (size)
		style_lines(out, report->source->is_colored, STYLE_DOUBT, lines);
	else
		fputs("  nothing was lost, cut short or contradictory\n", out);
	free(lines);
}

struct text report_count(const struct action_source *source, uint64_t count)
{
	struct text text;
	snprintf(text.data, sizeof(text.data), "%s%.40s", source->table->sample_bytes && count ? "~" : "", text_count(count).data);
	return text;
}

struct text report_bytes(const struct action_source *source, uint64_t bytes)
{
	struct text text;
	snprintf(text.data, sizeof(text.data), "%s%.40s", source->table->sample_bytes && bytes ? "~" : "", text_bytes(bytes).data);
	return text;
}

/* The standard error of the number that rows are sorted by, of the number itself; "" where it is none. */
static struct text report_error(const struct heap_numbers *from, const char *key)
{
	struct text text = {""};
	for (int i = 0; i < ERROR_COUNT; i++)
		if (!strcmp(errors[i].key, key) && number_at(from, errors[i].number))
			snprintf(text.data, sizeof(text.data), "%.1f %%", 100 * error_at(from, i) / (double)number_at(from, errors[i].number));
	return text;
}

struct text_total { const char *name; uint64_t count; struct text size; const char *key, *remark; };

static void text_total(struct grid *grid, const struct report *report, const struct text_total *total)
{
	grid_row(grid);
	grid_cell(grid, total->name);
	grid_cell(grid, report_count(report->source, total->count).data);
	grid_cell(grid, total->size.data);
	if (is_sample(report))
		grid_cell(grid, report_error(&report->source->window->totals, total->key).data);
	grid_cell(grid, total->remark);
}

static void text_totals(const struct report *report, FILE *out)
{
	static const char *const titles[] = {"", ">blocks", ">size", ""}, *const sample_titles[] = {"", ">blocks", ">size", ">error", ""};
	const struct heap_window *window = report->source->window;
	const struct heap_numbers *totals = &window->totals;
	struct grid grid = {0};
	char moved[64], at[64];
	snprintf(moved, sizeof(moved), "%s moved", report_count(report->source, totals->realloc_moved_count).data);
	snprintf(at, sizeof(at), "at %s", text_duration(window->peak_at_ns).data);
	bool is_peak_known = is_peak_told(report);
	const struct text_total rows[] = {
		{"total", totals->total_count, report_bytes(report->source, totals->total_bytes), "st", ""},
		{"outstanding", totals->outstanding_count, report_bytes(report->source, totals->outstanding_bytes), "so", "not freed"},
		{is_peak_known ? "peak" : NULL, totals->peak_count, report_bytes(report->source, totals->peak_bytes), "sp", at},
		{"realloc", totals->realloc_count, {""}, "", moved},
		{"temporary", totals->temporary_count, {""}, "", "freed by the thread's next event"},
	};
	unsigned count = sizeof(rows) / sizeof(*rows) - !is_told(report, offsetof(struct heap_numbers, temporary_count));
	if (is_sample(report))
		grid_columns(&grid, 5, sample_titles);
	else
		grid_columns(&grid, 4, titles);
	for (unsigned i = 0; i < count; i++)
		if (rows[i].name)
			text_total(&grid, report, &rows[i]);
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

/* "5.7 MiB in 1,234", the unit of every group of columns. */
static void text_sized(struct grid *grid, const struct report *report, uint64_t count, uint64_t bytes)
{
	grid_cell(grid, report_bytes(report->source, bytes).data);
	grid_cell(grid, report_count(report->source, count).data);
}

static void text_cells(struct grid *grid, const char *text, unsigned count)
{
	while (count-- > 0)
		grid_cell(grid, text);
}

static void text_extra(struct grid *grid, const struct action_extra *extra, uint64_t value)
{
	grid_cell(grid, extra->kind == EXTRA_BYTES ? text_bytes(value).data : extra->kind == EXTRA_FACTOR ? text_thousandths(value).data
														 : text_count(value).data);
}

/* Of a tree, the text is indented. */
static void text_label(struct grid *grid, const struct action_row *row)
{
	enum { INDENT = 2, DEPTH_MAX = 60 };
	unsigned indent = INDENT * (row->depth < DEPTH_MAX ? row->depth : DEPTH_MAX);
	char *text = NULL;
	char room[TEXT_NAME_BYTES];
	if (asprintf(&text, "%*s%s", (int)indent, "", text_name(row->text, room)) < 0)
		memory_exhausted(0);
	grid_cell(grid, text);
	free(text);
}

static void text_row(struct grid *grid, const struct report *report, const struct report_part *part, const struct action_row *row)
{
	const struct action *action = part->action;
	const struct heap_numbers *from = &row->numbers;
	grid_row(grid);
	text_sized(grid, report, from->outstanding_count, from->outstanding_bytes);
	text_sized(grid, report, from->total_count, from->total_bytes);
	if (is_peak_told(report))
		text_sized(grid, report, from->peak_count, from->peak_bytes);
	else
		text_cells(grid, "-", 2);
	grid_cell(grid, report_count(report->source, from->realloc_count).data);
	grid_cell(grid, is_sample(report) ? "-" : text_count(from->temporary_count).data);
	if (is_sample(report))
		grid_cell(grid, report_error(from, part->sort->key).data);
	for (unsigned i = 0; i < extra_count(report, action); i++)
		text_extra(grid, &action->extra[i], row->extra[i]);
	if (!action->is_inclusive)
		grid_cell(grid, from->total_count ? text_duration(row->lifetime_median).data : "-");
	if (part->window->by != HEAP_BY_NONE) {
		char *by = heap_by_text(part->window, report->source->table, row->by);
		grid_cell(grid, by);
		free(by);
	}
	if (!action->lines) {
		text_label(grid, row);
		return;
	}
	char *lines = action->lines(report->source, row->group);
	grid_detail(grid, lines);
	free(lines);
}

static void text_columns(struct grid *grid, const struct report *report, const struct report_part *part)
{
	static const char *const first[] = {">outstanding", ">blocks", ">total", ">blocks", ">at peak", ">blocks", ">realloc", ">temporary"};
	static const char *const keys[] = {"so", "soc", "st", "stc", "sp", "spc", "src", "stt"}; /* that sort by these */
	enum { FIRST_COUNT = sizeof(first) / sizeof(*first) };
	_Static_assert(sizeof(keys) == sizeof(first), "each column has a key");
	const char *titles[FIRST_COUNT + ACTION_EXTRA_MAX + 4];
	unsigned count = FIRST_COUNT;
	memcpy(titles, first, sizeof(first));
	if (is_sample(report))
		titles[count++] = ">error";
	for (unsigned i = 0; i < extra_count(report, part->action); i++)
		titles[count++] = part->action->extra[i].title;
	if (!part->action->is_inclusive)
		titles[count++] = ">median life";
	if (part->window->by != HEAP_BY_NONE)
		titles[count++] = heap_by_name(part->window->by);
	if (!part->action->lines)
		titles[count++] = part->action->label;
	grid_columns(grid, count, titles);
	for (unsigned i = 0; i < FIRST_COUNT; i++)
		grid->styles[i] = strcmp(keys[i], part->sort->key) ? STYLE_PLAIN : STYLE_KEY;
}

static void text_part(const struct report *report, const struct report_part *part, FILE *out)
{
	struct grid grid = {0};
	char heading[160];
	bool is_split = part->window->by != HEAP_BY_NONE;
	size_t cut = part->rows.count - part->rows.shown;
	snprintf(heading, sizeof(heading), "%s%s%s by %s", part->action->title, is_split ? " and " : "", heap_by_name(part->window->by),
		 part->sort->title);
	putc('\n', out);
	style_lines(out, report->source->is_colored, STYLE_HEADING, heading);
	if (cut)
		fprintf(out, "  the first %s of %s rows; %s are left out\n", text_count(part->rows.shown).data,
			text_count(part->rows.count).data, text_count(cut).data);
	grid.is_colored = report->source->is_colored;
	text_columns(&grid, report, part);
	for (size_t i = 0; i < part->rows.shown; i++)
		text_row(&grid, report, part, part->rows.rows[i]);
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

static void text_filters(const struct report *report, FILE *out)
{
	for (size_t i = 0; i < report->filter_count; i++)
		fprintf(out, "%s-%s%s%s", i ? " " : "  with ", report->filters[i].name, *report->filters[i].text ? " " : "", text_shown(report->filters[i].text));
	if (report->filter_count)
		putc('\n', out);
}

static void report_text(const struct report *report, FILE *out)
{
	const struct trace_dictionary *dictionary = trace_dictionary(report->source->trace);
	const struct heap_range range = report->source->window->range;
	char heading[240];
	struct text missing = report_missing_text(dictionary);
	snprintf(heading, sizeof(heading), ": %s events, %" PRIu32 " process%s, %s%s%s", text_count(dictionary->event_count).data,
		 dictionary->process_count, dictionary->process_count == 1 ? "" : "es", text_duration(dictionary->duration_ns).data,
		 *missing.data ? "; not complete: " : "", missing.data);
	fprintf(out, "%s%s%s%s\n", style_begin(report->source->is_colored, STYLE_HEADING), text_shown(report->source->path),
		style_end(report->source->is_colored, STYLE_HEADING), heading);
	report_text_doubts(report, out);
	if (report->has_range)
		fprintf(out, "  in the range from %s us to %s us\n", text_microseconds(range.from_ns).data,
			text_microseconds(range.to_ns).data);
	text_filters(report, out);
	putc('\n', out);
	text_totals(report, out);
	for (unsigned i = 0; i < report->part_count; i++)
		if (report->parts[i].action->groups)
			text_part(report, &report->parts[i], out);
}

void report_write(const struct report *report, enum report_format format, FILE *out)
{
	static void (*const writers[])(const struct report *, FILE *) = {report_text, report_csv, report_json};
	writers[format](report, out);
}
