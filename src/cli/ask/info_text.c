/* SPDX-License-Identifier: MIT */
#include "cli/ask/info_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "action/report/early_end.h"
#include "action/report/losses.h"
#include "action/report/report_columns.h"
#include "base/events.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/ask/info.h"
#include "cli/ask/info_options.h"
#include "cli/ask/info_processes.h"
#include "trace/option_names.h"
#include "trace/trace.h"

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
	losses_text_calls(out, dictionary, "the list of processes has the reasons");
	losses_text_unwindless(out, dictionary);
	losses_text_dropped(out, dictionary);
	losses_text_folded(out, dictionary);
	if (dictionary->fold_count)
		sink_text(out, "  events of processes are those that are not folded\n");
	text_inactive(out, dictionary);
}

void info_text(const struct info *info, struct sink *out)
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
