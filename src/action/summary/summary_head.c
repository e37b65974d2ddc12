/* SPDX-License-Identifier: MIT */
#include "action/summary/summary_head.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/caveats.h"
#include "action/report/ends.h"
#include "action/report/losses.h"
#include "action/report/report_columns.h"
#include "action/summary/summary_lines.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

static void title_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	const char *command = dictionary->process_count ? text_shown(dictionary->processes[0].command) : "";
	char line[SUMMARY_LINE_BYTES];
	snprintf(line, sizeof(line), "%.500s  ", text_shown(summary->source->path));
	summary_line_put(screen, line, command);
	uint32_t threads = report_thread_count(dictionary);
	const struct text missing = losses_missing_text(dictionary);
	snprintf(line, sizeof(line), "%s, %" PRIu32 " process%s, %" PRIu32 " thread%s, %s events%s%s",
		 text_duration(summary->source->table->duration_ns).data, dictionary->process_count,
		 dictionary->process_count == 1 ? "" : "es", threads, summary_plural(threads),
		 text_count(dictionary->event_count).data, *missing.data ? "; not complete: " : "", missing.data);
	summary_words_put(screen, 2, line, "");
}

/* The newest reason why a trigger wrote the file. */
static void trigger_put(const struct summary_screen *screen)
{
	const struct trace_dictionary *dictionary = screen->summary->source->table->dictionary;
	char line[SUMMARY_LINE_BYTES];
	for (uint32_t i = dictionary->option_count; i-- > 0;) {
		if (strcmp(dictionary->options[i].name, TRACE_OPTION_TRIGGERED) != 0)
			continue;
		snprintf(line, sizeof(line), "Triggered: %.500s", text_shown(dictionary->options[i].value));
		summary_words_put(screen, 2, line, "");
		return;
	}
}

/* The first process that ended by a signal, or else with a failure; and how many others did so. */
static void ends_put(const struct summary_screen *screen)
{
	const struct trace_dictionary *dictionary = screen->summary->source->table->dictionary;
	uint32_t first = TRACE_NONE, count = 0;
	struct sink sink;
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		const struct trace_process *process = &dictionary->processes[i];
		if (!ends_are_notable(process))
			continue;
		if (first == TRACE_NONE ||
		    (process->end == TRACE_END_SIGNAL && dictionary->processes[first].end != TRACE_END_SIGNAL))
			first = i;
		count++;
	}
	if (!count)
		return;
	const struct trace_process *process = &dictionary->processes[first];
	sink_to_memory(&sink);
	sink_format(&sink, "Ended: pid %s, %s", text_pid(process->pid).data,
		    process->end == TRACE_END_UNKNOWN ? "how is unknown" : ends_text(process).data);
	if (trace_process_end_is_known(process))
		sink_format(&sink, " at %s", text_duration(process->end_ns).data);
	ends_explain(dictionary, first, ": ", &sink);
	if (count > 1)
		sink_format(&sink, "; %" PRIu32 " more: xheap info", count - 1);
	char *text = sink_take(&sink, NULL);
	summary_words_put(screen, 2, text, "");
	free(text);
}

/* Whether the line continues a caveat: its words stand further to the right, behind the style. */
static bool is_continued(const char *line)
{
	enum { INDENT = 2 };
	if (*line == '\033')
		line += strcspn(line, "m") + 1;
	return strspn(line, " ") > INDENT;
}

/* What keeps the numbers from being exact; the first caveats unless all are wanted. */
static void caveats_put(const struct summary_screen *screen)
{
	struct sink sink;
	enum { LINES_EACH = 3 };
	size_t most = screen->view->lines ? 3 : SIZE_MAX, count = 0, lines = 0;
	sink_to_memory(&sink);
	/* No rows of an action were made. */
	action_input_settle(screen->summary->input);
	caveats_text(&sink, screen->summary->input);
	char *text = sink_take(&sink, NULL), *next = text;
	/* The lines are laid out already, and may have a style, which takes no columns. A caveat is there with all of
	   its lines, or not at all; only gaps may be more than a screen has room for. */
	for (char *line; (line = strsep(&next, "\n")) && *line;) {
		count += !is_continued(line);
		if (count <= most && lines++ < most * LINES_EACH)
			sink_format(screen->out, "%s\n", line);
	}
	if (count > most)
		sink_format(screen->out, "  %zu more caveat%s: -more\n", count - most, summary_plural(count - most));
	free(text);
}

static void filters_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	char line[SUMMARY_LINE_BYTES];
	if (summary->has_range) {
		snprintf(line, sizeof(line), "  in the range from %s us to %s us",
			 text_microseconds(summary->source->window->range.from_ns).data,
			 text_microseconds(summary->source->window->range.to_ns).data);
		summary_line_put(screen, line, "");
	}
	for (size_t i = 0; i < summary->filter_count; i++) {
		snprintf(line, sizeof(line), "  only -%s ", summary->filters[i].name);
		summary_line_put(screen, line, text_shown(summary->filters[i].text));
	}
}

void summary_head_put(const struct summary_screen *screen)
{
	title_put(screen);
	trigger_put(screen);
	ends_put(screen);
	caveats_put(screen);
	filters_put(screen);
}
