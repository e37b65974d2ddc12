/* SPDX-License-Identifier: MIT */
#include "action/summary/findings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/actions/action_table.h"
#include "action/report/ends.h"
#include "action/report/losses.h"
#include "action/report/report_columns.h"
#include "action/report/stack_view.h"
#include "action/summary/forecast.h"
#include "action/summary/function_sum.h"
#include "action/summary/line_shares.h"
#include "action/summary/summary.h"
#include "action/summary/summary_lines.h"
#include "base/map.h"
#include "base/text.h"
#include "query/folded.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum {
	PERCENT = 100,
	GROWTHS_MOST = 2,     /* findings of growth */
	NOTABLE_PERCENT = 25, /* of the peak, of blocks, of memory */
	LEAST_PERCENT = 1,    /* of the peak: a leak below is no finding */
	NOTABLE_BLOCKS = 1000,
	NOTABLE_BYTES = 1 << 20
};

#define RECORD_OBJECTS "Recorded with --python-objects, each object is a block of its own line."

static struct text count_of(const struct summary *summary, uint64_t count)
{
	return report_count(summary->source, count);
}

static struct text bytes_of(const struct summary *summary, uint64_t bytes)
{
	return report_bytes(summary->source, bytes);
}

/* Begin a command about the trace. */
static void command_begin(const struct summary *summary, struct sink *out, const char *name)
{
	sink_to_memory(out);
	sink_format(out, "xheap %s", name);
	if (summary->source->session) {
		sink_text(out, " -session");
		sink_shell_word(out, summary->source->session);
	} else {
		sink_shell_word(out, summary->source->path);
	}
}

/* Return a pattern for the name that is one word of a line, by the layout: wildcards stand for what a shell would quote
   or part in two, and for the end that has no room. NULL: there is no room for the image. */
static const char *name_pattern(const struct summary *summary, const char *name, struct arena *arena)
{
	enum { ROUND_WORD = SUMMARY_INDENT + sizeof("'' \\") - 1, ELLIPSIS = 3 };
	const struct text_layout *layout = &summary->input->layout;
	if (!layout->width)
		return name;
	unsigned columns = layout->has_full_names ? UINT32_MAX : layout->width - ROUND_WORD;
	char *pattern = arena_format(arena, "%s", text_fit_start(arena, name, columns, false));
	size_t length = strlen(pattern);
	if (strcmp(pattern, name) != 0)
		strcpy(pattern + length - ELLIPSIS, "*");
	for (char *at = pattern; *at; at++)
		*at = *at == ' ' || *at == '\'' ? '?' : *at;
	return strchr(name, '!') && !strchr(pattern, '!') ? NULL : pattern;
}

/* Give the option the node's function. Return false: the empty stack, a mark and a name that is not shown as it is are
   none. */
static bool command_require(const struct summary *summary, struct sink *out, const char *option, uint32_t node)
{
	struct heap_names *names = action_names(summary->input);
	struct arena arena = {0};
	if (!node || node == HEAP_NONE)
		return false;
	node = stack_view_user_node(summary->input, node);
	const struct heap_name *name = heap_names_name(names, heap_names_frame(names, node)->name);
	if (name->is_mark || text_shown(name->text) != name->text)
		return false;
	const char *pattern = name_pattern(summary, name->text, &arena);
	if (pattern) {
		sink_format(out, " %s", option);
		sink_shell_word(out, pattern);
	}
	arena_fini(&arena);
	return pattern;
}

/* The filters of the question belong to the evidence, too. */
static void command_filter(const struct summary *summary, struct sink *out)
{
	const struct heap_range range = summary->source->window->range;
	if (summary->has_range)
		sink_format(out, " -range %s %s", text_exact_time(range.from_ns).data,
			    text_exact_time(range.to_ns).data);
	for (size_t i = 0; i < summary->filter_count; i++)
		sink_format(out, " -%s %s", summary->filters[i].name, summary->filters[i].text);
}

/* Add a finding about a time of a process, TRACE_NONE: all. title_bytes: of the text, before its evidence. */
static void finding_add_of(struct summary *summary, struct summary_finding finding, struct sink *text,
			   struct sink *command)
{
	finding.text = sink_take(text, NULL);
	finding.command = sink_take(command, NULL);
	if (summary->finding_count == SUMMARY_FINDINGS) {
		free(finding.text);
		free(finding.command);
		return;
	}
	summary->findings[summary->finding_count++] = finding;
}

/* Add a finding about all of the time. */
static void finding_add(struct summary *summary, enum summary_finding_kind kind, struct sink *text, size_t title_bytes,
			struct sink *command)
{
	finding_add_of(summary,
		       (struct summary_finding){.kind = kind,
						.title_bytes = title_bytes,
						.time = summary->source->window->range,
						.process = TRACE_NONE},
		       text, command);
}

/* Add a finding about a moment. */
static void finding_add_at(struct summary *summary, enum summary_finding_kind kind, int64_t time_ns, struct sink *text,
			   size_t title_bytes, struct sink *command)
{
	finding_add_of(
		summary,
		(struct summary_finding){
			.kind = kind, .title_bytes = title_bytes, .time = {time_ns, time_ns}, .process = TRACE_NONE},
		text, command);
}

/* ---- each kind ---- */

/* Say when the process reaches a limit of its memory; the report has the interval. */
static void forecast_tell(const struct summary *summary, uint32_t process, struct sink *text)
{
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	const struct forecast forecast = forecast_make(&summary->survey, dictionary);
	if (!forecast.limit || forecast.process != process)
		return;
	/* Longer ones are years. */
	int64_t left_ns = forecast.seconds < 9e9 ? (int64_t)(forecast.seconds * 1e9) : INT64_MAX;
	sink_format(text, " With all that grows, pid %s reaches %s (%s) in %s.",
		    text_pid(dictionary->processes[process].pid).data, forecast.words,
		    text_bytes(forecast.limit_bytes).data, text_duration(left_ns).data);
}

/* Say how to know more of a process whose arenas hide what grows. */
static void objects_tell(const struct summary *summary, struct sink *text)
{
	if (summary_has_arenas_alone(summary))
		sink_text(text, " " RECORD_OBJECTS);
}

/* Say which functions the blocks of a row may be of, beside its own. The sentence has no end. */
static void put_in_begin(const struct summary *summary, const struct put_in_row *row, struct sink *text)
{
	sink_text(text, " Some or all ");
	put_in_text(summary->input, row, text);
}

static void put_in_tell(const struct summary *summary, const struct put_in_row *row, struct sink *text)
{
	if (!row)
		return;
	put_in_begin(summary, row, text);
	sink_put(text, '.');
}

static void growth_find(struct summary *summary)
{
	const struct survey *survey = &summary->survey;
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	for (size_t i = 0; i < survey->grows_count && i < GROWTHS_MOST; i++) {
		const struct survey_growth *own = &survey->growths[i];
		const struct growth *growth = &own->growth;
		struct sink text, command;
		struct text pid;
		sink_to_memory(&text);
		sink_format(&text, "%s grows by %s a second", summary_growth_name(summary, own, &pid),
			    bytes_of(summary, (uint64_t)growth->bytes.mean).data);
		const size_t title = text.used;
		sink_format(&text, " (95 %% interval: %s to %s)", text_bytes((uint64_t)growth->bytes.low).data,
			    text_bytes((uint64_t)growth->bytes.high).data);
		if (own->stack_count > 1)
			sink_format(&text, " by %s stacks together", text_count(own->stack_count).data);
		else if (!own->stack_count)
			sink_text(&text, ", no stack by itself");
		if (growth->is_of_buffers)
			sink_format(&text, ": realloc adds to buffers again and again, %s in all.",
				    text_bytes((uint64_t)growth->grown_bytes).data);
		else
			sink_format(&text,
				    ": %s blocks more than at the beginning, and %u %% of the old ones are not "
				    "freed%s.",
				    count_of(summary, (uint64_t)growth->grown_count).data,
				    (unsigned)(growth->survival * PERCENT),
				    own->clock.is_freed_behind ? " before the end" : "");
		if (own->stack_count)
			put_in_tell(summary, put_in_row(&summary->put_in, own->node), &text);
		if (growth->replaced_bytes >= growth->bytes.mean)
			sink_format(&text,
				    " Blocks from before the recording are freed at %s a second: new ones may replace "
				    "them.",
				    text_bytes((uint64_t)growth->replaced_bytes).data);
		if (!own->stack_count)
			objects_tell(summary, &text);
		forecast_tell(summary, own->process, &text);
		command_begin(summary, &command, "heap");
		/* Some programs free all at their end: so the question is of the time before it. */
		sink_text(&command, " -stacks st -top 5");
		if (!growth->is_of_buffers)
			sink_format(&command, " -window AIFO %s %s", text_exact_time(own->clock.from_ns).data,
				    text_exact_time(own->clock.to_ns).data);
		if (own->stack_count)
			command_require(summary, &command, "-requireFrames", own->node);
		else if (dictionary->process_count > 1)
			sink_format(&command, " -pids %s", text_pid(dictionary->processes[own->process].pid).data);
		command_filter(summary, &command);
		finding_add_of(summary,
			       (struct summary_finding){.kind = FINDING_GROWTH,
							.title_bytes = title,
							.time = {own->clock.from_ns, own->clock.to_ns},
							.process = own->process},
			       &text, &command);
	}
}

/* Return the function that has most of a list's number. */
static struct function_sum largest_function(const struct summary *summary, enum summary_list_id id)
{
	return function_sum_largest(summary->input, &summary->lists[id].rows, &summary->lists[id].sort);
}

/* Say how many blocks a function has, and by how many stacks if they are several. */
static void blocks_tell(const struct summary *summary, const struct function_sum *sum, uint64_t count,
			struct sink *text)
{
	sink_format(text, " in %s block%s", count_of(summary, count).data, text_plural(count));
	if (sum->stack_count > 1)
		sink_format(text, ", by %s stacks together", text_count(sum->stack_count).data);
	sink_put(text, '.');
}

/* Ask for the function's stack, which comes first, or for the callers if they are several; by line if the number is
   from several lines. */
static void command_stacks(const struct summary *summary, struct sink *out, const struct function_sum *sum,
			   const char *key, enum action_number number)
{
	struct line_shares shares = {.items = NULL};
	uint32_t user = sum->node ? stack_view_user_node(summary->input, sum->node) : 0;
	command_begin(summary, out, "heap");
	if (sum->stack_count == 1 || !command_require(summary, out, "-callers", sum->node))
		sink_text(out, " -stacks");
	sink_format(out, " %s -top 3", key);
	if (user)
		line_shares_find(&shares, summary, sum->node, user, number);
	if (line_shares_are_several(&shares))
		sink_text(out, " -lines");
	line_shares_fini(&shares);
	command_filter(summary, out);
}

static const struct action_row *row_of(const struct action_rows *rows, uint32_t node)
{
	for (size_t i = 0; i < rows->memory_count; i++)
		if (rows->memory[i].group == node)
			return &rows->memory[i];
	return NULL;
}

/* Return the row with most of the peak of a function's rows that may be of others; NULL: these have less than half. */
static const struct put_in_row *put_in_of_function(const struct summary *summary, const struct function_sum *sum,
						   struct heap_numbers *befores)
{
	const struct put_in *put_in = &summary->put_in;
	const struct action_rows *rows = &summary->lists[SUMMARY_PEAK].rows;
	const struct put_in_row *most = NULL;
	uint64_t bytes = 0, most_bytes = 0;
	struct map seen = {0};
	for (size_t i = 0; i < put_in->count; i++) {
		const struct put_in_row *own = &put_in->rows[i];
		const struct action_row *row = row_of(rows, own->node);
		if (!row || !function_sum_has(summary->input, sum, own->node))
			continue;
		uint64_t number = row->figures->numbers.peak_bytes;
		bytes += number;
		if (number > most_bytes) {
			most_bytes = number;
			most = own;
		}
		for (uint32_t k = 0; k < own->count; k++) {
			bool added;
			const struct action_row *before = row_of(rows, put_in->befores[own->first + k]);
			map_add(&seen, put_in->befores[own->first + k], &added);
			if (before && added && !function_sum_has(summary->input, sum, before->group))
				heap_numbers_add(befores, &before->figures->numbers);
		}
	}
	map_fini(&seen);
	return bytes >= sum->figures.numbers.peak_bytes / 2 ? most : NULL;
}

/* Say which functions the peak's largest one may stand for, and how much they have together. */
static void put_in_peak_tell(const struct summary *summary, const struct function_sum *sum, struct sink *text)
{
	struct heap_numbers numbers = sum->figures.numbers;
	const struct put_in_row *row = put_in_of_function(summary, sum, &numbers);
	if (!row)
		return;
	put_in_begin(summary, row, text);
	if (numbers.peak_count > sum->figures.numbers.peak_count)
		sink_format(text, ": with those before, %u %% (%s in %s blocks)",
			    text_percent(numbers.peak_bytes, summary->source->window->totals.peak_bytes),
			    bytes_of(summary, numbers.peak_bytes).data, count_of(summary, numbers.peak_count).data);
	sink_put(text, '.');
}

static void peak_find(struct summary *summary)
{
	uint64_t whole = summary->source->window->totals.peak_bytes;
	const struct function_sum sum = summary->peak_function;
	const struct heap_numbers *numbers = &sum.figures.numbers;
	struct sink text, command;
	if (!sum.stack_count || text_percent(numbers->peak_bytes, whole) < NOTABLE_PERCENT)
		return;
	sink_to_memory(&text);
	sink_format(&text, "%s holds %u %% of the peak", summary_function(summary, sum.node),
		    text_percent(numbers->peak_bytes, whole));
	const size_t title = text.used;
	sink_format(&text, ": %s", bytes_of(summary, numbers->peak_bytes).data);
	blocks_tell(summary, &sum, numbers->peak_count, &text);
	put_in_peak_tell(summary, &sum, &text);
	command_stacks(summary, &command, &sum, "sp", ACTION_NUMBER_peak_bytes);
	finding_add_at(summary, FINDING_PEAK, summary->source->window->peak_at_ns, &text, title, &command);
}

/* Return the bytes at the peak of arenas that Python took for its objects. */
static uint64_t arena_bytes(const struct action_source *source)
{
	const struct trace_dictionary *dictionary = source->table->dictionary;
	const struct heap_window *window = source->window;
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < window->cell_count; i++) {
		uint32_t entry = source->table->sites[window->cells[i].site].entry;
		if (entry < dictionary->entry_count && dictionary->entries[entry].function == FUNCTION_ARENA_ALLOC)
			bytes += window->numbers[i].peak_bytes;
	}
	return bytes;
}

static void arenas_find(struct summary *summary)
{
	const struct action_source *source = summary->source;
	uint64_t bytes = arena_bytes(source), whole = source->window->totals.peak_bytes;
	struct sink text, command;
	summary->arena_bytes = bytes;
	if (text_percent(bytes, whole) < NOTABLE_PERCENT)
		return;
	sink_to_memory(&text);
	sink_format(&text, "%u %% of the peak (%s) is in arenas of Python", text_percent(bytes, whole),
		    bytes_of(summary, bytes).data);
	const size_t title = text.used;
	bool shows_objects = trace_has_python_objects(source->table->dictionary),
	     is_exact = !source->table->sample_bytes && !heap_is_folded(source->table);
	sink_text(&text, ": the line that needed a new arena has all of it, also what other lines put there. ");
	sink_text(&text, shows_objects ? "The objects are blocks of a heap of their own, each of its own line."
				       : RECORD_OBJECTS);
	command_begin(summary, &command, "heap");
	sink_text(&command, !shows_objects ? " -heaps"
			    : is_exact     ? " -innermost -frames sp -lines"
					   : " -heap \"python objects\" -frames sp -lines");
	sink_text(&command, " -top 3");
	command_filter(summary, &command);
	finding_add_at(summary, FINDING_ARENAS, source->window->peak_at_ns, &text, title, &command);
}

static void short_find(struct summary *summary)
{
	const struct survey *survey = &summary->survey;
	uint64_t whole = summary->source->window->totals.total_count;
	const struct function_sum sum = largest_function(summary, SUMMARY_SHORT);
	struct sink text, command;
	if (!sum.stack_count || survey->short_count < NOTABLE_BLOCKS ||
	    text_percent(survey->short_count, whole) < NOTABLE_PERCENT)
		return;
	sink_to_memory(&text);
	sink_format(&text, "%u %% of all blocks live for less than %s", text_percent(survey->short_count, whole),
		    text_duration(survey->plan.short_ns).data);
	const size_t title = text.used;
	sink_format(&text, "; %s of them are from %s, the most from one function.",
		    count_of(summary, sum.figures.extra[SURVEYED_SHORT]).data, summary_function(summary, sum.node));
	command_begin(summary, &command, "heap");
	sink_format(&command, " -stacks stc -top 3 -lifetime 0 %s", text_exact_time(survey->plan.short_ns).data);
	command_filter(summary, &command);
	finding_add(summary, FINDING_SHORT, &text, title, &command);
}

static void realloc_find(struct summary *summary)
{
	const struct function_sum sum = largest_function(summary, SUMMARY_REALLOC);
	const uint64_t *extra = sum.figures.extra;
	struct sink text, command;
	if (!sum.stack_count || extra[CHAINS_COPIED] < NOTABLE_BYTES)
		return;
	sink_to_memory(&text);
	sink_format(&text, "%s grows blocks by realloc", summary_function(summary, sum.node));
	const size_t title = text.used;
	sink_format(&text, " in %s steps, which copy %s.", text_count(extra[CHAINS_STEPS]).data,
		    text_bytes(extra[CHAINS_COPIED]).data);
	command_begin(summary, &command, "heap");
	sink_text(&command, " -chains src -top 3");
	command_require(summary, &command, "-requireFrames", sum.node);
	command_filter(summary, &command);
	finding_add(summary, FINDING_REALLOC, &text, title, &command);
}

static void crossed_find(struct summary *summary)
{
	const struct survey *survey = &summary->survey;
	const struct action_source *source = summary->source;
	struct sink text, command;
	if (!survey->handover_count || survey->crossed_count < NOTABLE_BLOCKS ||
	    text_percent(survey->crossed_count, source->window->totals.total_count) < NOTABLE_PERCENT)
		return;
	const struct survey_handover *most = &survey->handovers[0];
	const struct heap_site *site = &source->table->sites[most->site];
	uint32_t node = source->site_nodes && source->site_nodes[most->site] != HEAP_NONE
				? source->site_nodes[most->site]
				: heap_names_site(source->names, site);
	sink_to_memory(&text);
	sink_format(&text, "%u %% of all blocks are freed by another thread",
		    text_percent(survey->crossed_count, source->window->totals.total_count));
	const size_t title = text.used;
	sink_format(&text, ": %s frees %s blocks of %s, most of them from %s.", survey_role(survey, most->to),
		    count_of(summary, most->count).data, survey_role(survey, most->from),
		    summary_function(summary, node));
	command_begin(summary, &command, "heap");
	sink_text(&command, " -stacks stc -top 3 -closed");
	sink_format(&command, " -threads %" PRIu32, source->table->dictionary->threads[most->thread].tid);
	command_require(summary, &command, "-requireFrames", node);
	command_filter(summary, &command);
	finding_add(summary, FINDING_CROSSED, &text, title, &command);
}

static void outstanding_find(struct summary *summary)
{
	uint64_t whole = summary->source->window->totals.outstanding_bytes;
	const struct function_sum sum = largest_function(summary, SUMMARY_OUTSTANDING);
	const struct heap_numbers *numbers = &sum.figures.numbers;
	struct sink text, command;
	if (!sum.stack_count || !*summary->survey.growth_unknown.data)
		return;
	if (text_percent(numbers->outstanding_bytes, whole) < NOTABLE_PERCENT ||
	    text_percent(numbers->outstanding_bytes, summary->source->window->totals.peak_bytes) < LEAST_PERCENT)
		return;
	sink_to_memory(&text);
	sink_format(&text, "%s has %u %% of the bytes that are %s%s", summary_function(summary, sum.node),
		    text_percent(numbers->outstanding_bytes, whole),
		    ends_outstanding(summary->source->table->dictionary),
		    summary_less_earlier(summary));
	const size_t title = text.used;
	sink_format(&text, ": %s", bytes_of(summary, numbers->outstanding_bytes).data);
	blocks_tell(summary, &sum, numbers->outstanding_count, &text);
	command_stacks(summary, &command, &sum, "so", ACTION_NUMBER_outstanding_bytes);
	finding_add(summary, FINDING_OUTSTANDING, &text, title, &command);
}

static void resident_find(struct summary *summary)
{
	if (!summary->is_split)
		return;
	const struct summary_resident parts = summary_resident_parts(summary);
	uint64_t resident = parts.bytes, heap = parts.heap_bytes;
	bool has_kinds = summary->resident_kinds.split;
	struct sink text, command;
	if (resident < 16 * NOTABLE_BYTES || text_percent(resident - heap, resident) < 2 * NOTABLE_PERCENT)
		return;
	sink_to_memory(&text);
	sink_format(&text, "%u %% of the resident memory (%s) is not heap", text_percent(resident - heap, resident),
		    text_bytes(resident - heap).data);
	const size_t title = text.used;
	if (has_kinds)
		sink_text(&text, ", most of it ");
	if (has_kinds)
		resident_rest_text(&summary->resident_kinds, 2, &text);
	sink_format(&text, ".%s",
		    summary->hides_objects
			    ? " With PYTHONMALLOC=malloc in its environment, Python takes its objects from malloc."
		    : !summary_mapped_bytes(summary) ? ""
		    : summary_maps_old_arenas(summary)
			    ? " Arenas that Python took before the attach are in it, and are not known. Recorded from "
			      "the start of the program, each is a block of the line that needed it."
			    : " Anonymous memory outside of heaps is mapped by the program itself, such as that of a "
			      "garbage collector: `strace -f -k -e mmap COMMAND` shows the stacks that map it.");
	command_begin(summary, &command, "dump");
	sink_text(&command, has_kinds ? " -mappings" : " -memory");
	finding_add_at(summary, FINDING_RESIDENT, parts.time_ns, &text, title, &command);
}

/* Add the command that shows pages at a moment. */
static void pages_add(struct summary *summary, enum summary_finding_kind kind, struct sink *text, size_t title,
		      int64_t at_ns)
{
	struct sink command;
	bool has_account = summary_has_account(summary);
	command_begin(summary, &command, has_account ? "why" : "heap");
	sink_format(&command, "%s -at %s", has_account ? "" : " -map", text_exact_time(at_ns).data);
	finding_add(summary, kind, text, title, &command);
}

static void pinned_pages_find(struct summary *summary)
{
	enum { PINNED_PERCENT = 10, KEPT_PERCENT = 15 };
	const struct pinned *pinned = &summary->pinned;
	struct sink text;
	if (pinned->page_bytes < 2 * NOTABLE_BYTES ||
	    text_percent(pinned->page_bytes, summary->resident->resident_bytes) < PINNED_PERCENT ||
	    text_percent(pinned->live_bytes, pinned->page_bytes) > KEPT_PERCENT)
		return;
	sink_to_memory(&text);
	sink_format(&text, "%s of pages are kept by %s in %s block%s", text_bytes(pinned->page_bytes).data,
		    text_bytes(pinned->live_bytes).data, text_count(pinned->block_count).data,
		    text_plural(pinned->block_count));
	const size_t title = text.used;
	sink_format(&text, " at %s: %u %% of the pages by %s.", text_duration(pinned->at_ns).data,
		    text_percent(pinned->node_page_bytes, pinned->page_bytes), summary_function(summary, pinned->node));
	pages_add(summary, FINDING_PINNED, &text, title, pinned->at_ns);
}

static void free_find(struct summary *summary)
{
	if (!summary->is_split)
		return;
	const struct summary_resident parts = summary_resident_parts(summary);
	struct sink text;
	if (parts.free_bytes < 16 * NOTABLE_BYTES || text_percent(parts.free_bytes, parts.bytes) < 2 * NOTABLE_PERCENT)
		return;
	sink_to_memory(&text);
	sink_format(&text, "%u %% of the resident memory (%s) is free inside heaps",
		    text_percent(parts.free_bytes, parts.bytes), text_bytes(parts.free_bytes).data);
	const size_t title = text.used;
	uint64_t trimmable = summary->account.sum.bytes[ACCOUNT_TRIMMABLE];
	sink_format(&text, " at %s: allocators keep it for later blocks", text_duration(parts.time_ns).data);
	if (trimmable)
		sink_format(&text, "; malloc_trim(0) would return about %s", text_bytes(trimmable).data);
	sink_put(&text, '.');
	pages_add(summary, FINDING_FREE, &text, title, parts.time_ns);
}

static void losses_find(struct summary *summary)
{
	struct text missing = losses_missing_text(summary->source->table->dictionary);
	struct sink text, command;
	if (!*missing.data)
		return;
	sink_to_memory(&text);
	sink_text(&text, "The trace is not complete");
	const size_t title = text.used;
	sink_format(&text, ": %s.", missing.data);
	command_begin(summary, &command, "info");
	finding_add(summary, FINDING_LOSSES, &text, title, &command);
}

void summary_find(struct summary *summary)
{
	static void (*const finders[])(struct summary *) = {
		growth_find,   losses_find,       peak_find,  arenas_find,  outstanding_find, free_find,
		resident_find, pinned_pages_find, short_find, crossed_find, realloc_find};
	for (size_t i = 0; i < sizeof(finders) / sizeof(*finders); i++)
		finders[i](summary);
}
