/* SPDX-License-Identifier: MIT */
/* xheap info: what is in a trace. */
#include "cli/ask/info.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "action/report/early_end.h"
#include "action/report/losses.h"
#include "action/report/report_columns.h"
#include "base/events.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/ask/info_options.h"
#include "cli/ask/info_processes.h"
#include "cli/formats.h"
#include "cli/image/image_notes.h"
#include "cli/input.h"
#include "cli/layout_options.h"
#include "cli/option_parser.h"
#include "match/match.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* ---- for people ---- */

/* The facts, of which each has a line, or several. */
struct facts {
	struct arena arena;
	const struct text_layout *layout;
	struct fact {
		const char *name, *value;
	} * items;
	size_t count, capacity;
};

static void text_line(struct facts *facts, const char *name, const char *value)
{
	memory_grow(facts->items, facts->count, facts->capacity);
	facts->items[facts->count++] =
		(struct fact){arena_text(&facts->arena, name), arena_text(&facts->arena, text_shown(value))};
}

static void facts_print(struct facts *facts, struct sink *out)
{
	enum { INDENT = 2, GAP = 2 };
	unsigned width = 0;
	for (size_t i = 0; i < facts->count; i++)
		width = text_width(facts->items[i].name) > width ? text_width(facts->items[i].name) : width;
	for (size_t i = 0; i < facts->count; i++) {
		const char *name = facts->items[i].name;
		char *line = arena_format(&facts->arena, "%*s%s%*s%s", INDENT, "", name,
					  (int)(width - text_width(name)) + GAP, "", facts->items[i].value);
		text_wrap_hanging(out, line, facts->layout, INDENT + width + GAP);
	}
	free(facts->items);
	arena_fini(&facts->arena);
}

static const char *known(const char *text)
{
	return text && *text ? text : "-";
}

static void text_started(struct facts *facts, int64_t realtime_ns)
{
	time_t seconds = realtime_ns / 1000000000;
	struct tm local;
	char date[64];
	bool is_known = realtime_ns > 0 && localtime_r(&seconds, &local) &&
			strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S %z", &local);
	text_line(facts, "started", is_known ? date : "-");
}

static void text_cost(struct facts *facts, const struct info *info)
{
	const struct trace_statistics *statistics = &info->dictionary->statistics;
	if (!statistics->is_known) {
		text_line(facts, "cost", "-");
		return;
	}
	const char *text = arena_format(&facts->arena, "%s of the logger's CPU",
					text_duration((int64_t)statistics->logger_cpu_ns).data);
	if (statistics->recorder_ns)
		text = arena_format(&facts->arena, "%s, about %s in the recorder", text,
				    text_duration((int64_t)statistics->recorder_ns).data);
	text = arena_format(&facts->arena, "%s, %s wait%s for a buffer", text, text_count(statistics->waits).data,
			    statistics->waits == 1 ? "" : "s");
	if (statistics->waits)
		text = arena_format(&facts->arena, "%s (%s)", text, text_duration((int64_t)statistics->wait_ns).data);
	text_line(facts, "cost", text);
}

/* A command line is one line: words of it say little by themselves. */
static void text_options(struct facts *facts, const struct trace_dictionary *dictionary)
{
	const char *title = "options";
	enum { COLUMN = 15 };
	bool is_cut = facts->layout->width && !facts->layout->has_full_names;
	unsigned room = is_cut ? facts->layout->width - COLUMN : UINT32_MAX;
	struct info_option *options = info_options_list(dictionary);
	for (uint32_t i = 0; i < dictionary->option_count; i++) {
		const struct trace_option *option = options[i].option;
		if (options[i].is_repeated || !strcmp(option->name, TRACE_OPTION_EARLIER_MISSING))
			continue;
		const char *text = arena_format(&facts->arena, "%s=%s", option->name, text_shown(option->value));
		bool is_command = !strcmp(option->name, "command");
		text_line(facts, title,
			  is_command ? text_fit(&facts->arena, text, room, facts->layout->has_unicode) : text);
		title = "";
	}
	free(options);
}

static void text_facts(const struct info *info, struct sink *out)
{
	const struct trace_dictionary *dictionary = info->dictionary;
	struct facts facts = {.layout = &info->layout};
	text_line(&facts, "size", text_bytes(dictionary->size_bytes).data);
	text_started(&facts, dictionary->start_realtime_ns);
	text_line(&facts, "duration", text_duration(dictionary->duration_ns).data);
	text_line(&facts, "host", known(dictionary->host));
	text_line(&facts, "clock", known(dictionary->clock));
	text_line(&facts, "events", text_count(dictionary->event_count).data);
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		if (dictionary->kind_count[kind])
			text_line(&facts, arena_format(&facts.arena, "  %s", info_kind_words[kind]),
				  text_count(dictionary->kind_count[kind]).data);
	if (dictionary->failed_count)
		text_line(&facts, "  failed", text_count(dictionary->failed_count).data);
	if (dictionary->in_flight_count)
		text_line(&facts, "  in flight", text_count(dictionary->in_flight_count).data);
	text_line(&facts, "stacks",
		  arena_format(&facts.arena, "%s nodes, %s frames, %s truncated",
			       text_count(dictionary->node_count ? dictionary->node_count - 1 : 0).data,
			       text_count(dictionary->frame_count).data, text_count(dictionary->ends.truncated).data));
	if (dictionary->is_whole_known)
		text_line(&facts, "  whole",
			  arena_format(&facts.arena, "%s, of %s events", text_count(dictionary->ends.whole).data,
				       text_count(dictionary->event_count).data));
	text_line(&facts, "images", text_count(dictionary->image_count).data);
	text_line(&facts, "threads", text_count(report_thread_count(dictionary)).data);
	text_cost(&facts, info);
	text_options(&facts, dictionary);
	facts_print(&facts, out);
}

static void text_inactive(struct sink *out, const struct trace_dictionary *dictionary)
{
	struct inactive_process inactive;
	for (uint32_t i = 0; i < dictionary->option_count; i++)
		if (inactive_read(&inactive, &dictionary->options[i]))
			sink_format(
				out,
				"  process %d (%s) had inactive code of this recording mapped at its end: %s, %" PRIu32
				" threads in it\n",
				inactive.pid, text_shown(inactive.command), text_bytes(inactive.bytes).data,
				inactive.threads);
}

/* The lines before the facts, of any width. */
static void text_state(const struct info *info, struct sink *out)
{
	enum { SHARE = 2 };
	const struct trace_dictionary *dictionary = info->dictionary;
	const struct text_layout *layout = &info->layout;
	struct losses losses = losses_sum(dictionary);
	struct text missing = losses_missing_text(dictionary);
	struct arena arena = {0};
	sink_format(out, "%s: %s%s%s\n",
		    text_fit(&arena, text_shown(info->path),
			     layout->has_full_names ? UINT32_MAX : layout->width / SHARE, layout->has_unicode),
		    losses_is_complete(dictionary)                    ? "complete"
		    : dictionary->is_complete                         ? "not complete"
		    : losses_is_being_written(info->path, dictionary) ? "not ended"
								      : "cut short",
		    *missing.data ? ": " : "", missing.data);
	arena_fini(&arena);
	losses_text_cut(out, info->path, dictionary);
	early_end_text(out, dictionary, "  ");
	losses_text_earlier(out, dictionary, "  ");
	sink_format(out, "  %s events lost, %s stacks lost", text_count(losses.events).data,
		    text_count(losses.stacks).data);
	losses_text_reason(out, dictionary);
	sink_put(out, '\n');
	losses_text_gaps(out, dictionary);
	losses_text_calls(out, dictionary, "the list of processes has the reasons");
	losses_text_unwindless(out, dictionary);
	losses_text_dropped(out, dictionary);
	losses_text_folded(out, dictionary);
	if (dictionary->fold_count)
		sink_text(out, "  events of processes are those that are not folded\n");
	text_inactive(out, dictionary);
}

/* Write the facts for people. */
static void info_text(const struct info *info, struct sink *out)
{
	struct sink lines;
	sink_to_memory(&lines);
	text_state(info, &lines);
	char *text = sink_take(&lines, NULL);
	text_wrap(out, text, &info->layout);
	free(text);
	sink_put(out, '\n');
	text_facts(info, out);
	sink_text(out, "\nProcesses\n");
	info_processes_text(info, out);
	if (info->residents) {
		sink_text(out, "\nResident memory at its largest, by kind of mapping\n");
		info_residents_text(info, out);
	}
}

/* ---- as JSON ---- */

struct trace_statistics;

static void json_cost(struct json *json, const struct trace_statistics *statistics)
{
	json_begin_object(json, "cost");
	json_count(json, "waits", statistics->waits);
	json_time(json, "wait_us", (int64_t)statistics->wait_ns);
	json_time(json, "logger_cpu_us", (int64_t)statistics->logger_cpu_ns);
	if (statistics->recorder_ns)
		json_time(json, "recorder_us", (int64_t)statistics->recorder_ns);
	json_count(json, "buffers_written", statistics->buffers_written);
	json_count(json, "buffer_size", statistics->buffer_size);
	json_count(json, "peak_buffers", statistics->peak_buffers);
	json_count(json, "suppressed", statistics->suppressed);
	json_end_object(json);
}

static void json_inactive(struct json *json, const struct trace_dictionary *dictionary)
{
	struct inactive_process inactive;
	bool has_any = false;
	for (uint32_t i = 0; i < dictionary->option_count; i++) {
		if (!inactive_read(&inactive, &dictionary->options[i]))
			continue;
		if (!has_any)
			json_begin_array(json, "inactive");
		has_any = true;
		json_begin_object(json, NULL);
		json_number(json, "pid", inactive.pid);
		json_text(json, "command", inactive.command);
		json_count(json, "bytes", inactive.bytes);
		json_count(json, "threads", inactive.threads);
		json_end_object(json);
	}
	if (has_any)
		json_end_array(json);
}

/* The reasons why triggers wrote the file, the oldest first. */
static void json_triggers(struct json *json, const struct trace_dictionary *dictionary)
{
	bool has_any = false;
	for (uint32_t i = 0; i < dictionary->option_count; i++) {
		if (strcmp(dictionary->options[i].name, TRACE_OPTION_TRIGGERED) != 0)
			continue;
		if (!has_any)
			json_begin_array(json, "triggers");
		has_any = true;
		json_text(json, NULL, dictionary->options[i].value);
	}
	if (has_any)
		json_end_array(json);
}

/* Write the facts as JSON (docs/schema/info.json). */
static void info_json(const struct info *info, struct sink *out)
{
	const struct trace_dictionary *dictionary = info->dictionary;
	struct json json = {.out = out, .line_depth = 2};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_text(&json, "trace", info->path);
	json_bool(&json, "complete", losses_is_complete(dictionary));
	if (!dictionary->is_complete) {
		json_count(&json, "cut_offset", dictionary->cut_offset);
		json_text(&json, "cut_reason", dictionary->cut_reason ? text_shown(dictionary->cut_reason) : "");
	}
	json_count(&json, "size_bytes", dictionary->size_bytes);
	json_time(&json, "duration_us", dictionary->duration_ns);
	if (dictionary->start_realtime_ns)
		json_time(&json, "start_realtime_us", dictionary->start_realtime_ns);
	json_known_text(&json, "clock", dictionary->clock);
	json_known_text(&json, "host", dictionary->host);
	json_count(&json, "event_count", dictionary->event_count);
	json_begin_object(&json, "events");
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		json_count(&json, info_kind_words[kind], dictionary->kind_count[kind]);
	json_end_object(&json);
	json_count(&json, "failed", dictionary->failed_count);
	json_count(&json, "in_flight", dictionary->in_flight_count);
	losses_json_calls(&json, dictionary);
	early_end_json(&json, dictionary);
	losses_json_gaps(&json, dictionary);
	losses_json_dropped(&json, dictionary);
	losses_json_folded(&json, dictionary);
	losses_json_stack_ends(&json, dictionary);
	if (dictionary->statistics.heapless)
		json_count(&json, "events_without_heap", dictionary->statistics.heapless);
	if (dictionary->statistics.pythonless)
		json_count(&json, "pythonless_stacks", dictionary->statistics.pythonless);
	json_count(&json, "stacks", dictionary->node_count ? dictionary->node_count - 1 : 0);
	json_count(&json, "frames", dictionary->frame_count);
	json_count(&json, "images", dictionary->image_count);
	json_count(&json, "heaps", dictionary->heap_count);
	json_count(&json, "threads", report_thread_count(dictionary));
	losses_json_earlier(&json, "earlier_missing", dictionary);
	info_options_json(&json, dictionary);
	if (dictionary->statistics.is_known)
		json_cost(&json, &dictionary->statistics);
	info_processes_json(info, &json);
	json_triggers(&json, dictionary);
	json_inactive(&json, dictionary);
	json_end_object(&json);
	json_end(&json);
}

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
