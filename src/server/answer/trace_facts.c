/* SPDX-License-Identifier: MIT */
#include "server/answer/trace_facts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/early_end.h"
#include "action/report/losses.h"
#include "base/text.h"
#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

/* ---- lists ---- */

static int64_t end_of(const struct trace_process *process, const struct trace_dictionary *dictionary)
{
	return trace_process_end_is_known(process) ? process->end_ns : dictionary->duration_ns;
}

static void json_process(struct json *json, const struct trace_process *process,
			 const struct trace_dictionary *dictionary)
{
	const char *name = text_file_name(process->image ? process->image : "");
	json_begin_object(json, NULL);
	if (process->pid)
		json_count(json, "pid", process->pid);
	json_text(json, "name", *name ? name : process->command ? process->command : "");
	json_number(json, "begin_ns", process->start_ns);
	json_number(json, "end_ns", end_of(process, dictionary));
	if (process->end == TRACE_END_DETACHED)
		json_text(json, "end", "unknown");
	else if (process->end != TRACE_END_OPEN)
		json_text(json, "end", trace_end_word(process));
	json_end_object(json);
}

static void json_thread(struct json *json, const struct trace_thread *thread)
{
	json_begin_object(json, NULL);
	json_count(json, "process", thread->process);
	json_count(json, "tid", thread->tid);
	json_text(json, "name", thread->name ? thread->name : "");
	json_end_object(json);
}

static void json_heap(struct json *json, const struct trace_heap *heap)
{
	json_begin_object(json, NULL);
	json_count(json, "process", heap->process);
	json_text(json, "name", heap->name ? heap->name : "");
	json_address(json, "handle", heap->handle);
	json_end_object(json);
}

void trace_facts_lists(struct json *json, const struct action_source *source)
{
	const struct trace_dictionary *dictionary = source->table->dictionary;
	json_begin_array(json, "processes");
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		json_process(json, &dictionary->processes[i], dictionary);
	json_end_array(json);
	json_begin_array(json, "threads");
	for (uint32_t i = 0; i < dictionary->thread_count; i++)
		json_thread(json, &dictionary->threads[i]);
	json_end_array(json);
	json_begin_array(json, "heaps");
	for (uint32_t i = 0; i < dictionary->heap_count; i++)
		json_heap(json, &dictionary->heaps[i]);
	json_begin_object(json, NULL);
	json_text(json, "name", "[no heap]");
	json_end_object(json);
	json_end_array(json);
}

/* ---- what the trace lacks ---- */

/* What may keep numbers from being exact: what is counted, and the sentence about it. */
struct trace_caveat {
	const char *kind;
	uint64_t (*count)(const struct action_source *source);
	const char *one, *many; /* behind the number */
	const char *command;
};

static uint64_t count_losses(const struct action_source *source)
{
	return losses_missing_calls(source->table->dictionary);
}

static uint64_t count_truncated(const struct action_source *source)
{
	return source->table->dictionary->ends.truncated;
}

static uint64_t count_unwindless(const struct action_source *source)
{
	return source->table->dictionary->ends.unwindless;
}

static uint64_t count_unknown_frees(const struct action_source *source)
{
	return source->table->unknown_frees;
}

static uint64_t count_conflicts(const struct action_source *source)
{
	return source->table->order_conflicts;
}

static uint64_t count_earlier(const struct action_source *source)
{
	return source->window->earlier_count;
}

static uint64_t count_symbols(const struct action_source *source)
{
	size_t without;
	heap_names_without_symbols(source->names, &without);
	return without;
}

static const struct trace_caveat lacks[] = {
	{"losses", count_losses, "call is missing", "calls are missing", "info"},
	{"unknown_frees", count_unknown_frees, "free of an address that was not live",
	 "frees of addresses that were not live", "info"},
	{"order_conflicts", count_conflicts, "block began where another was live",
	 "blocks began where another was live", "info"},
	{"truncated", count_truncated, "event has a stack that is cut", "events have stacks that are cut", "info"},
	{"unwindless", count_unwindless, "event has a stack that ends for want of unwind data",
	 "events have stacks that end for want of unwind data", "info"},
	{"earlier", count_earlier, "block is from before the trace: in the peak, in no total",
	 "blocks are from before the trace: in the peak, in no total", "report"},
	{"symbols", count_symbols, "image lacks symbols", "images lack symbols", "symbols"},
};

static void json_state(struct json *json, const struct action_source *source, const char *kind, uint64_t count,
		       const char *text, const char *name)
{
	struct sink command;
	sink_to_memory(&command);
	sink_format(&command, "xheap %s", name);
	sink_shell_word(&command, source->path);
	char *line = sink_take(&command, NULL);
	json_begin_object(json, NULL);
	json_text(json, "kind", kind);
	json_count(json, "count", count);
	json_text(json, "text", text);
	json_text(json, "command", line);
	json_end_object(json);
	free(line);
}

static void json_lack(struct json *json, const struct action_source *source, const struct trace_caveat *lack)
{
	enum { NAMES_MAX = 5 };
	uint64_t count = lack->count(source);
	struct sink text;
	if (!count)
		return;
	sink_to_memory(&text);
	sink_format(&text, "%s %s", text_count(count).data, count == 1 ? lack->one : lack->many);
	if (lack->count == count_symbols) {
		const char *const *names = heap_names_without_symbols(source->names, &(size_t){0});
		for (uint64_t i = 0; i < count && i < NAMES_MAX; i++)
			sink_format(&text, "%s%s", i ? ", " : ": ", names[i]);
		sink_text(&text, count > NAMES_MAX ? ", ..." : "");
	}
	char *words = sink_take(&text, NULL);
	json_state(json, source, lack->kind, count, words, lack->command);
	free(words);
}

static void json_damage(struct json *json, const struct action_source *source)
{
	const struct trace_dictionary *dictionary = source->table->dictionary;
	struct sink text;
	sink_to_memory(&text);
	sink_text(&text, "the trace ");
	losses_text_end(&text, source->path, dictionary);
	sink_text(&text, losses_is_being_written(source->path, dictionary) ? "" : "; what lies before it is shown");
	char *words = sink_take(&text, NULL);
	json_text(json, "damage", words);
	free(words);
}

static bool is_damaged(const struct action_source *source, const struct trace_facts_plan *plan)
{
	return !source->table->dictionary->is_complete && !plan->is_growing;
}

static void json_lacks(struct json *json, const struct action_source *source, const struct trace_facts_plan *plan)
{
	const struct trace_dictionary *dictionary = source->table->dictionary;
	const uint64_t sample_bytes = source->table->sample_bytes;
	char text[160];
	json_begin_array(json, "state");
	if (is_damaged(source, plan))
		json_state(json, source, "damage", 1,
			   losses_is_being_written(source->path, dictionary) ? "the trace is being written"
									     : "the trace is cut",
			   "info");
	for (size_t i = 0; i < sizeof(lacks) / sizeof(*lacks); i++)
		json_lack(json, source, &lacks[i]);
	struct text missing = losses_missing_text(dictionary);
	if (*missing.data && !count_losses(source))
		json_state(json, source, "losses", 0, missing.data, "info");
	snprintf(text, sizeof(text), "a sample, of one byte in %s asked for: sums are estimates",
		 text_bytes(sample_bytes).data);
	if (sample_bytes)
		json_state(json, source, "sample", 1, text, "report");
	if (plan->left_out)
		json_state(json, source, "file", 1, plan->left_out, "view");
	json_end_array(json);
}

static uint64_t gap_count(const struct trace_gap *gap)
{
	uint64_t count = 0;
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		count += gap->count[kind];
	return count;
}

static void json_gaps(struct json *json, const struct trace_dictionary *dictionary)
{
	json_begin_array(json, "gaps");
	for (uint32_t i = 0; i < dictionary->gap_count; i++) {
		uint64_t count = gap_count(&dictionary->gaps[i]);
		if (!count)
			continue;
		json_begin_object(json, NULL);
		json_number(json, "from_ns", dictionary->gaps[i].from_ns);
		json_number(json, "to_ns", dictionary->gaps[i].to_ns);
		json_count(json, "count", count);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_mark(struct json *json, int64_t at_ns, const char *kind, const char *text)
{
	json_begin_object(json, NULL);
	json_number(json, "at_ns", at_ns);
	json_text(json, "kind", kind);
	json_text(json, "text", text);
	json_end_object(json);
}

/* Beginnings and ends of processes say something where there are several, or one has been killed. */
static void json_process_marks(struct json *json, const struct trace_dictionary *dictionary)
{
	char text[300];
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		const struct trace_process *process = &dictionary->processes[i];
		const bool is_killed = process->end == TRACE_END_SIGNAL;
		const char *name = text_file_name(process->image ? process->image : "");
		snprintf(text, sizeof(text), "%.200s %s", name, text_pid(process->pid).data);
		if (dictionary->process_count > 1)
			json_mark(json, process->start_ns, "process_begin", text);
		if (is_killed)
			snprintf(text, sizeof(text), "%.200s %s: signal %" PRId32, name, text_pid(process->pid).data,
				 process->end_status);
		if (trace_process_end_is_known(process) && (is_killed || dictionary->process_count > 1))
			json_mark(json, process->end_ns, is_killed ? "process_killed" : "process_end", text);
	}
}

/* Times from which, or up to which, the trace has less than all. */
static void json_loss_marks(struct json *json, const struct trace_dictionary *dictionary)
{
	char text[300];
	for (uint32_t i = 0; i < dictionary->gap_count; i++) {
		uint64_t count = gap_count(&dictionary->gaps[i]);
		snprintf(text, sizeof(text), "%s event%s lost", text_count(count).data, count == 1 ? " is" : "s are");
		if (count)
			json_mark(json, dictionary->gaps[i].from_ns, "loss", text);
	}
	const struct trace_early_end *end = early_end_first(dictionary);
	if (end)
		json_mark(json, end->time_ns, "early_end", end->reason);
	for (uint32_t i = 0; i < dictionary->fold_count; i++)
		json_mark(json, dictionary->folds[i].until_ns, "fold", "");
	snprintf(text, sizeof(text), "%s", text_count(dictionary->dropped_events).data);
	if (dictionary->dropped_events)
		json_mark(json, dictionary->dropped_until_ns, "dropped", text);
}

/* A flight recorder writes its file when it is asked to, or by a trigger: at the end of the trace. */
static void json_flush_marks(struct json *json, const struct trace_dictionary *dictionary)
{
	bool is_flight = false, is_triggered = false;
	for (uint32_t i = 0; i < dictionary->option_count; i++) {
		const struct trace_option *option = &dictionary->options[i];
		is_flight |= !strcmp(option->name, "file-mode") && !strcmp(option->value, "flight");
		if (strcmp(option->name, TRACE_OPTION_TRIGGERED) != 0)
			continue;
		is_triggered = true;
		json_mark(json, dictionary->duration_ns, "trigger", option->value);
	}
	if (is_flight && !is_triggered)
		json_mark(json, dictionary->duration_ns, "flush", "");
}

void trace_facts_state(struct json *json, const struct action_source *source, const struct trace_facts_plan *plan)
{
	const struct trace_dictionary *dictionary = source->table->dictionary;
	json_lacks(json, source, plan);
	json_gaps(json, dictionary);
	json_begin_array(json, "marks");
	json_process_marks(json, dictionary);
	json_loss_marks(json, dictionary);
	json_flush_marks(json, dictionary);
	json_end_array(json);
	if (is_damaged(source, plan))
		json_damage(json, source);
}
