/* SPDX-License-Identifier: MIT */
/* xheap info: what is in a trace. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "action/early_end.h"
#include "action/ends.h"
#include "action/losses.h"
#include "action/report.h"
#include "base/grid.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/formats.h"
#include "cli/image.h"
#include "cli/layout_options.h"
#include "cli/option_parser.h"
#include "match/match.h"
#include "query/resident.h"

/* Facts about a trace, counted from the headers of its blocks. */
struct info {
	const char *path;
	const struct trace_dictionary *dictionary;
	struct heap_table *table; /* only when a process was forked: what the child inherited takes matching */
	uint64_t *process_events;
	uint32_t *process_threads;
	struct resident *residents; /* by process; NULL: the trace does not have resident memory by kind of mapping */
	struct text_layout layout;
};

struct info_options {
	struct input input;
	struct layout_options layout;
	int format;
};

static const char *const kind_words[] = {
#define X(id, action, word) word,
	EVENT_KINDS(X)
#undef X
};

/* ---- JSON ---- */

/* The largest sample of a process, and the largest one that was read by kind of mapping. */
static void json_resident(struct json *json, const struct resident *resident)
{
	char key[64];
	if (!resident->largest)
		return;
	json_begin_object(json, "resident");
	json_count(json, "max_bytes", resident->largest->resident_bytes);
	json_time(json, "max_at_us", resident->largest->time_ns);
	if (resident->split) {
		json_count(json, "read_bytes", resident->bytes);
		json_time(json, "read_at_us", resident->split->time_ns);
		json_count(json, "mappings", resident->split->mapping_count);
		for (unsigned kind = 0; kind < TRACE_MAPPING_KIND_COUNT; kind++) {
			snprintf(key, sizeof(key), "%s_bytes", resident_kind_key(kind));
			json_count(json, key, resident->split->bytes[kind]);
		}
	}
	json_end_object(json);
}

/* The limits of a process's memory; only those that there are. */
static void json_limits(struct json *json, const struct trace_dictionary *dictionary, uint32_t process)
{
	const struct trace_limit *limit = resident_limit(dictionary, process);
	if (!limit)
		return;
	const struct {
		const char *key;
		uint64_t bytes;
	} rows[] = {{"address_space_bytes", limit->address_space_bytes},
		    {"data_bytes", limit->data_bytes},
		    {"cgroup_bytes", limit->cgroup_bytes},
		    {"machine_bytes", limit->machine_bytes}};
	json_begin_object(json, "memory_limits");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].bytes != TRACE_LIMIT_NONE)
			json_count(json, rows[i].key, rows[i].bytes);
	json_end_object(json);
}

static void json_process(struct json *json, const struct info *info, uint32_t id)
{
	assert(id < info->dictionary->process_count);
	const struct trace_process *process = &info->dictionary->processes[id];
	json_begin_object(json, NULL);
	json_count(json, "id", id);
	if (process->pid)
		json_count(json, "pid", process->pid);
	if (process->parent != TRACE_NONE)
		json_count(json, "parent", process->parent);
	if (process->forked_from != TRACE_NONE)
		json_count(json, "forked_from", process->forked_from);
	json_count(json, "exec_generation", process->exec_generation);
	json_known_text(json, "image", process->image);
	json_known_text(json, "command", process->command);
	json_time(json, "start_us", process->start_ns);
	if (trace_process_end_is_known(process))
		json_time(json, "end_us", process->end_ns);
	ends_json(json, info->dictionary, id);
	json_known_text(json, "note", process->note);
	if (!trace_process_is_untraced(process)) {
		json_count(json, "threads", info->process_threads[id]);
		json_count(json, "events", info->process_events[id]);
	}
	if (info->table && process->forked_from != TRACE_NONE) {
		json_count(json, "inherited_count", info->table->processes[id].inherited_count);
		json_count(json, "inherited_bytes", info->table->processes[id].inherited_bytes);
	}
	if (info->residents)
		json_resident(json, &info->residents[id]);
	json_limits(json, info->dictionary, id);
	json_end_object(json);
}

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

/* A process in which inactive code of the recording was mapped when it ended. False: the option names none. */
struct inactive_process {
	int pid;
	uint64_t bytes;
	uint32_t threads;
	const char *command;
};

static bool inactive_read(struct inactive_process *inactive, const struct trace_option *option)
{
	int command = 0;
	if (strcmp(option->name, TRACE_OPTION_INACTIVE) != 0 ||
	    sscanf(option->value, TRACE_INACTIVE_SCAN, &inactive->pid, &inactive->bytes, &inactive->threads,
		   &command) != 3)
		return false;
	inactive->command = option->value + command;
	return true;
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

/* Options that have keys of their own. */
static bool is_shown_elsewhere(const char *option)
{
	return !strcmp(option, TRACE_OPTION_EARLIER_MISSING) || !strcmp(option, TRACE_OPTION_UNHOOKED) ||
	       !strcmp(option, TRACE_OPTION_UNTRACED_EXECS) || !strcmp(option, TRACE_OPTION_DAMAGED) ||
	       !strcmp(option, TRACE_OPTION_LIMITED) || !strcmp(option, TRACE_OPTION_UNFINISHED) ||
	       !strcmp(option, TRACE_OPTION_INACTIVE) || !strcmp(option, TRACE_OPTION_TRIGGERED);
}

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
		json_count(&json, kind_words[kind], dictionary->kind_count[kind]);
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
	json_count(&json, "stacks", dictionary->node_count ? dictionary->node_count - 1 : 0);
	json_count(&json, "frames", dictionary->frame_count);
	json_count(&json, "images", dictionary->image_count);
	json_count(&json, "heaps", dictionary->heap_count);
	json_count(&json, "threads", report_thread_count(dictionary));
	losses_json_earlier(&json, "earlier_missing", dictionary);
	json_begin_object(&json, "options");
	for (uint32_t i = 0; i < dictionary->option_count; i++)
		if (!is_shown_elsewhere(dictionary->options[i].name))
			json_text(&json, dictionary->options[i].name, dictionary->options[i].value);
	json_end_object(&json);
	if (dictionary->statistics.is_known)
		json_cost(&json, &dictionary->statistics);
	json_begin_array(&json, "processes");
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		json_process(&json, info, i);
	json_end_array(&json);
	json_triggers(&json, dictionary);
	json_inactive(&json, dictionary);
	json_end_object(&json);
	json_end(&json);
}

/* ---- text ---- */

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
	text = arena_format(&facts->arena, "%s, %s waits for a buffer", text, text_count(statistics->waits).data);
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
	for (uint32_t i = 0; i < dictionary->option_count; i++) {
		const struct trace_option *option = &dictionary->options[i];
		if (!strcmp(option->name, TRACE_OPTION_EARLIER_MISSING))
			continue;
		const char *text = arena_format(&facts->arena, "%s=%s", option->name, text_shown(option->value));
		bool is_command = !strcmp(option->name, "command");
		text_line(facts, title,
			  is_command ? text_fit(&facts->arena, text, room, facts->layout->has_unicode) : text);
		title = "";
	}
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
			text_line(&facts, arena_format(&facts.arena, "  %s", kind_words[kind]),
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

/* Why a process is not traced, beneath its row. */
static void text_note(struct grid *grid, const char *note)
{
	struct sink lines;
	sink_to_memory(&lines);
	text_wrap(&lines, arena_format(&grid->arena, "        %s", text_shown(note)), &grid->layout);
	char *text = sink_take(&lines, NULL);
	grid_detail(grid, text);
	free(text);
}

/* What is known of its end beside the signal. */
static void text_cause(struct grid *grid, const struct trace_dictionary *dictionary, uint32_t process)
{
	struct sink out;
	sink_to_memory(&out);
	bool is_known = ends_explain(dictionary, process, "", &out);
	char *text = sink_take(&out, NULL);
	if (is_known)
		text_note(grid, text);
	free(text);
}

static void text_processes(const struct info *info, struct sink *out)
{
	static const char *const titles[] = {">id", ">pid",     ">parent", ">start",     ">end",
					     "how", ">threads", ">events", ">inherited", "command"};
	static const unsigned ranks[] = {0, 0, 4, 5, 6, 3, 7, 1, 8, 0};
	struct grid grid = {.layout = info->layout};
	grid_columns(&grid, 10, titles);
	memcpy(grid.rank, ranks, sizeof(ranks));
	grid.is_text[9] = true;
	for (uint32_t i = 0; i < info->dictionary->process_count; i++) {
		const struct trace_process *process = &info->dictionary->processes[i];
		bool is_untraced = trace_process_is_untraced(process),
		     is_forked = info->table && process->forked_from != TRACE_NONE;
		grid_row(&grid);
		grid_cell(&grid, arena_format(&grid.arena, "%" PRIu32, i));
		grid_cell(&grid, text_pid(process->pid).data);
		grid_cell(&grid,
			  process->parent == TRACE_NONE ? "-" : arena_format(&grid.arena, "%" PRIu32, process->parent));
		grid_cell(&grid, text_duration(process->start_ns).data);
		grid_cell(&grid, trace_process_end_is_known(process) ? text_duration(process->end_ns).data : "-");
		grid_cell(&grid, ends_text(process).data);
		grid_cell(&grid, is_untraced ? "-" : text_count(info->process_threads[i]).data);
		grid_cell(&grid, is_untraced ? "-" : text_count(info->process_events[i]).data);
		grid_cell(&grid, is_forked ? text_bytes(info->table->processes[i].inherited_bytes).data : "-");
		grid_cell(&grid, known(*process->command ? process->command : process->image));
		if (is_untraced)
			text_note(&grid, process->note);
		else
			text_cause(&grid, info->dictionary, i);
	}
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

/* Each process where its resident memory was largest. Kinds that no process has are left out. */
static void text_residents(const struct info *info, struct sink *out)
{
	enum { FIXED = 4 };
	static const char *const fixed[FIXED] = {">id", ">resident", ">at", ">read"};
	const char *titles[GRID_COLUMNS_MAX];
	unsigned kind_of[GRID_COLUMNS_MAX], columns = FIXED;
	struct grid grid = {.layout = info->layout};
	memcpy(titles, fixed, sizeof(fixed));
	for (unsigned kind = 0; kind < TRACE_MAPPING_KIND_COUNT; kind++) {
		bool has_any = false;
		for (uint32_t i = 0; i < info->dictionary->process_count; i++)
			has_any |= info->residents[i].split && info->residents[i].split->bytes[kind];
		if (!has_any)
			continue;
		kind_of[columns] = kind;
		titles[columns++] = arena_format(&grid.arena, ">%s", resident_kind_key(kind));
	}
	grid_columns(&grid, columns, titles);
	for (unsigned i = 2; i < columns; i++)
		grid.rank[i] = i < FIXED ? columns : i;
	for (uint32_t i = 0; i < info->dictionary->process_count; i++) {
		const struct resident *resident = &info->residents[i];
		if (!resident->largest)
			continue;
		grid_row(&grid);
		grid_cell(&grid, arena_format(&grid.arena, "%" PRIu32, i));
		grid_cell(&grid, text_bytes(resident->largest->resident_bytes).data);
		grid_cell(&grid, text_duration(resident->largest->time_ns).data);
		grid_cell(&grid, resident->split ? text_bytes(resident->bytes).data : "-");
		for (unsigned column = FIXED; column < columns; column++)
			grid_cell(&grid,
				  resident->split ? text_bytes(resident->split->bytes[kind_of[column]]).data : "-");
	}
	grid_print(&grid, out, 2);
	grid_fini(&grid);
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
		    losses_is_complete(dictionary) ? "complete"
		    : dictionary->is_complete      ? "not complete"
						   : "cut short",
		    *missing.data ? ": " : "", missing.data);
	arena_fini(&arena);
	if (!dictionary->is_complete)
		sink_format(out, "  the trace is cut at byte %" PRIu64 ": %s\n", dictionary->cut_offset,
			    dictionary->cut_reason ? text_shown(dictionary->cut_reason) : "");
	early_end_text(out, dictionary, "  ");
	losses_text_earlier(out, dictionary, "  ");
	sink_format(out, "  %s events lost, %s stacks lost", text_count(losses.events).data,
		    text_count(losses.stacks).data);
	losses_text_reason(out, dictionary);
	sink_put(out, '\n');
	losses_text_gaps(out, dictionary);
	losses_text_calls(out, dictionary);
	losses_text_unwindless(out, dictionary);
	losses_text_dropped(out, dictionary);
	losses_text_folded(out, dictionary);
	if (dictionary->fold_count)
		sink_text(out, "  events of processes are those that are not folded\n");
	text_inactive(out, dictionary);
}

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
	text_processes(info, out);
	if (info->residents) {
		sink_text(out, "\nResident memory at its largest, by kind of mapping\n");
		text_residents(info, out);
	}
}

/* ---- the command ---- */

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
