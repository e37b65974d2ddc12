/* SPDX-License-Identifier: MIT */
/*
 * The summary for people: a screen. It is written with many rows first, and again with fewer until it fits. Names are
 * cut to the width, numbers never.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/ends.h"
#include "action/forecast.h"
#include "action/losses.h"
#include "action/stack_view.h"
#include "action/summary.h"
#include "base/style.h"

enum {
	PERCENT = 100,
	EIGHTHS = 8,
	CHART_ROWS = 3,
	INDENT = 6,
	FRAMES_MAX = 12,
	CALLERS_INDENT = 12,
	CHART_MARGIN = 13,
	LEVELS = 5,
	LINE_BYTES = 1024
};

/* A level of detail: fewer rows and parts from level to level. */
struct summary_screen {
	const struct summary *summary;
	const struct summary_view *view;
	struct sink *out;
	size_t rows;                    /* of each list */
	bool has_chart, has_more_lists; /* lists beside the peak and growth with their rows, not as one line */
};

/* ---- lines ---- */

static struct text bytes_of(const struct summary_screen *screen, uint64_t bytes)
{
	return report_bytes(screen->summary->source, bytes);
}

static struct text count_of(const struct summary_screen *screen, uint64_t count)
{
	return report_count(screen->summary->source, count);
}

static unsigned percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)((unsigned __int128)part * PERCENT / whole) : 0;
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* The columns of a line. */
static size_t width_of(const struct summary_screen *screen)
{
	unsigned width = screen->summary->input->layout.width;
	return width ? width : LINE_BYTES;
}

/* Write the text, without its middle if it has more columns. */
static void put_cut(const struct summary_screen *screen, const char *text, size_t columns)
{
	const struct text_layout *layout = &screen->summary->input->layout;
	struct arena arena = {0};
	sink_text(screen->out,
		  layout->has_full_names ? text : text_fit(&arena, text, (unsigned)columns, layout->has_unicode));
	arena_fini(&arena);
}

/* Write a line: numbers, and a name in the rest of it. */
static void line_put(const struct summary_screen *screen, const char *numbers, const char *name)
{
	size_t used = text_width(numbers), width = width_of(screen);
	put_cut(screen, numbers, width);
	if (used < width)
		put_cut(screen, name, width - used);
	sink_put(screen->out, '\n');
}

/* Write words, with line breaks between them; `joint` ends each line but the last. A word that is wider than a line
   loses its middle, except in lines that are joined: those are commands, to be typed as they are. */
static void words_put(const struct summary_screen *screen, unsigned indent, const char *text, const char *joint)
{
	size_t at = indent, width = width_of(screen) - strlen(joint);
	sink_format(screen->out, "%*s", (int)indent, "");
	while (*text) {
		size_t length = strcspn(text, " ");
		char word[LINE_BYTES];
		snprintf(word, sizeof(word), "%.*s", (int)(length < sizeof(word) ? length : sizeof(word) - 1), text);
		size_t columns = text_width(word);
		if (at > indent && at + 1 + columns > width) {
			sink_format(screen->out, "%s\n%*s", joint, (int)indent, "");
			at = indent;
		} else if (at > indent) {
			sink_put(screen->out, ' ');
			at++;
		}
		if (columns > width - indent && !*joint)
			put_cut(screen, word, width - indent);
		else
			sink_bytes(screen->out, text, length);
		at += columns;
		text += length + (text[length] == ' ');
	}
	sink_put(screen->out, '\n');
}

/* Write words as words_put() does, in a style. */
static void styled_put(const struct summary_screen *screen, enum style style, unsigned indent, const char *text,
		       const char *joint)
{
	struct sink sink;
	struct summary_screen own = *screen;
	own.out = &sink;
	sink_to_memory(&sink);
	words_put(&own, indent, text, joint);
	char *lines = sink_take(&sink, NULL);
	style_lines(screen->out, screen->summary->input->is_colored, style, lines);
	free(lines);
}

static void heading(const struct summary_screen *screen, const char *text)
{
	sink_put(screen->out, '\n');
	styled_put(screen, STYLE_HEADING, 0, text, "");
}

/* The name of a frame for people. */
static const char *frame_text(const struct summary_screen *screen, uint32_t node, bool with_image)
{
	struct heap_names *names = action_names(screen->summary->input);
	const struct heap_name *name = heap_names_name(names, heap_names_frame(names, node)->name);
	bool is_full = screen->summary->input->layout.has_full_names;
	const char *symbol = is_full ? name->symbol : name->short_symbol,
		   *text = is_full ? name->text : name->short_text;
	return text_shown(!with_image && symbol ? symbol : text);
}

/* Write the frames that fit into the columns, from both ends of the list; an ellipsis stands for those in the middle.
   The first one is always there, without its middle if need be. */
static void frames_put(const struct summary_screen *screen, const char *const *frames, unsigned count, unsigned columns)
{
	const struct text_layout *layout = &screen->summary->input->layout;
	const char *gap = layout->has_unicode ? " …" : " ...";
	unsigned first = 1, last = count, used = text_width(frames[0]), mark = text_width(gap);
	bool is_first = false;
	for (; first < last; is_first = !is_first) {
		unsigned width = 1 + text_width(frames[is_first ? first : last - 1]);
		if (used + width + (last - first > 1 ? mark : 0) > columns && !layout->has_full_names)
			break;
		used += width;
		is_first ? first++ : last--;
	}
	put_cut(screen, frames[0], columns - (first < last ? mark : 0));
	for (unsigned i = 1; i < count; i++)
		if (i < first || i >= last)
			sink_format(screen->out, " %s", frames[i]);
		else if (i == first)
			sink_text(screen->out, gap);
}

/* The library's function that a stack's function called, and its callers, on one line: without those of libraries that
   all programs have. */
static void callers_put(const struct summary_screen *screen, uint32_t innermost, uint32_t node)
{
	struct heap_names *names = action_names(screen->summary->input);
	struct arena arena = {0};
	const char *frames[FRAMES_MAX + 1];
	unsigned count = 0, most = FRAMES_MAX + (innermost != node);
	uint32_t at = node;
	if (innermost != node)
		frames[count++] = arena_format(&arena, "via %s", frame_text(screen, innermost, false));
	while ((at = heap_names_frame(names, at)->parent) && count < most)
		if (!heap_names_name(names, heap_names_frame(names, at)->name)->is_library)
			frames[count++] = arena_format(&arena, "< %s", frame_text(screen, at, false));
	if (count) {
		sink_format(screen->out, "%*s", CALLERS_INDENT, "");
		frames_put(screen, frames, count, (unsigned)width_of(screen) - CALLERS_INDENT);
		sink_put(screen->out, '\n');
	}
	arena_fini(&arena);
}

/* Print a row: its numbers with the function of the user's code, and its callers below. */
static void stack_put(const struct summary_screen *screen, const char *numbers, uint32_t node)
{
	struct action_input *input = screen->summary->input;
	if (!node || node == HEAP_NONE) {
		line_put(screen, numbers, "[no stack]");
		return;
	}
	uint32_t user = stack_view_user_node(input, node);
	line_put(screen, numbers, frame_text(screen, user, true));
	if (!input->layout.has_all_frames)
		callers_put(screen, node, user);
	else
		stack_view_print(&(struct stack_view){.input = input, .indent = INDENT * 2}, node, screen->out);
}

/* ---- the parts ---- */

static void title_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	const char *command = dictionary->process_count ? text_shown(dictionary->processes[0].command) : "";
	char line[LINE_BYTES];
	snprintf(line, sizeof(line), "%.500s  ", text_shown(summary->source->path));
	line_put(screen, line, command);
	uint32_t threads = report_thread_count(dictionary);
	const struct text missing = losses_missing_text(dictionary);
	snprintf(line, sizeof(line), "%s, %" PRIu32 " process%s, %" PRIu32 " thread%s, %s events%s%s",
		 text_duration(summary->source->table->duration_ns).data, dictionary->process_count,
		 dictionary->process_count == 1 ? "" : "es", threads, plural(threads),
		 text_count(dictionary->event_count).data, *missing.data ? "; not complete: " : "", missing.data);
	words_put(screen, 2, line, "");
}

/* The newest reason why a trigger wrote the file. */
static void trigger_put(const struct summary_screen *screen)
{
	const struct trace_dictionary *dictionary = screen->summary->source->table->dictionary;
	char line[LINE_BYTES];
	for (uint32_t i = dictionary->option_count; i-- > 0;) {
		if (strcmp(dictionary->options[i].name, TRACE_OPTION_TRIGGERED) != 0)
			continue;
		snprintf(line, sizeof(line), "Triggered: %.500s", text_shown(dictionary->options[i].value));
		words_put(screen, 2, line, "");
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
	words_put(screen, 2, text, "");
	free(text);
}

/* What keeps the numbers from being exact; the first lines of it unless all are wanted. */
static void caveats_put(const struct summary_screen *screen)
{
	const struct report report = {.input = screen->summary->input};
	struct sink sink;
	size_t most = screen->view->lines ? 3 : SIZE_MAX, count = 0;
	sink_to_memory(&sink);
	report_text_caveats(&report, &sink);
	char *text = sink_take(&sink, NULL), *next = text;
	/* The lines are laid out already, and may have a style, which takes no columns. */
	for (char *line; (line = strsep(&next, "\n")) && *line; count++)
		if (count < most)
			sink_format(screen->out, "%s\n", line);
	if (count > most)
		sink_format(screen->out, "  %zu more line%s about this: -more\n", count - most, plural(count - most));
	free(text);
}

static void filters_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	char line[LINE_BYTES];
	if (summary->has_range) {
		snprintf(line, sizeof(line), "  in the range from %s us to %s us",
			 text_microseconds(summary->source->window->range.from_ns).data,
			 text_microseconds(summary->source->window->range.to_ns).data);
		line_put(screen, line, "");
	}
	for (size_t i = 0; i < summary->filter_count; i++) {
		snprintf(line, sizeof(line), "  only -%s ", summary->filters[i].name);
		line_put(screen, line, text_shown(summary->filters[i].text));
	}
}

/* Write what allocators gave beyond the bytes that were asked for, of the blocks of the peak. */
static void rounding_text(const struct summary_screen *screen, char *text, size_t size)
{
	const struct summary *summary = screen->summary;
	const struct survey_rounding *rounding = &summary->survey.at_peak;
	const struct heap_window *window = summary->source->window;
	char unknown[LINE_BYTES] = "";
	*text = 0;
	if (summary->source->table->sample_bytes || window->is_peak_folded)
		return;
	if (rounding->unknown_count)
		snprintf(unknown, sizeof(unknown), "; not known of %s block%s",
			 text_count(rounding->unknown_count).data, plural(rounding->unknown_count));
	snprintf(text, size, ", rounded up by %s (%u %%%.100s)", text_bytes(rounding->bytes).data,
		 percent(rounding->bytes, window->totals.peak_bytes), unknown);
}

static void peak_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	const struct heap_window *window = summary->source->window;
	const struct summary_list *list = &summary->lists[SUMMARY_PEAK];
	char line[LINE_BYTES], rounding[LINE_BYTES / 2];
	rounding_text(screen, rounding, sizeof(rounding));
	snprintf(line, sizeof(line), "Peak: %s in %s block%s at %s%s", bytes_of(screen, window->totals.peak_bytes).data,
		 count_of(screen, window->totals.peak_count).data, plural(window->totals.peak_count),
		 text_duration(window->peak_at_ns).data, rounding);
	heading(screen, line);
	for (size_t i = 0; i < list->count && i < screen->rows; i++) {
		const struct heap_numbers *numbers = &list->rows.rows[i]->figures->numbers;
		snprintf(line, sizeof(line), "  %10s %3u %%  %s block%s  ", bytes_of(screen, numbers->peak_bytes).data,
			 percent(numbers->peak_bytes, window->totals.peak_bytes),
			 count_of(screen, numbers->peak_count).data, plural(numbers->peak_count));
		stack_put(screen, line, list->rows.rows[i]->group);
	}
}

static void outstanding_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	const struct heap_numbers *totals = &summary->source->window->totals;
	const struct summary_list *list = &summary->lists[SUMMARY_OUTSTANDING];
	char line[LINE_BYTES];
	snprintf(line, sizeof(line), "Never freed: %s in %s block%s", bytes_of(screen, totals->outstanding_bytes).data,
		 count_of(screen, totals->outstanding_count).data, plural(totals->outstanding_count));
	heading(screen, line);
	for (size_t i = 0; i < list->count && i < screen->rows; i++) {
		const struct heap_numbers *numbers = &list->rows.rows[i]->figures->numbers;
		snprintf(line, sizeof(line), "  %10s %3u %%  %s block%s  ",
			 bytes_of(screen, numbers->outstanding_bytes).data,
			 percent(numbers->outstanding_bytes, totals->outstanding_bytes),
			 count_of(screen, numbers->outstanding_count).data, plural(numbers->outstanding_count));
		stack_put(screen, line, list->rows.rows[i]->group);
	}
}

static void growth_row_put(const struct summary_screen *screen, const struct survey_growth *own)
{
	const struct growth *growth = &own->growth;
	char line[LINE_BYTES];
	if (growth->verdict == GROWTH_GROWS)
		snprintf(line, sizeof(line), "  %s/s (%s to %s), %s block%s  ",
			 bytes_of(screen, (uint64_t)growth->bytes.mean).data,
			 text_bytes((uint64_t)growth->bytes.low).data, text_bytes((uint64_t)growth->bytes.high).data,
			 count_of(screen, (uint64_t)growth->grown_count).data, plural((uint64_t)growth->grown_count));
	else
		snprintf(line, sizeof(line), "  no finding, %s: ", growth_sentence(growth->verdict));
	stack_put(screen, line, own->node);
}

static struct text text_seconds(double seconds)
{
	/* Longer ones are years. */
	return text_duration(seconds < 9e9 ? (int64_t)(seconds * 1e9) : INT64_MAX);
}

static void forecast_put(const struct summary_screen *screen)
{
	const struct trace_dictionary *dictionary = screen->summary->source->table->dictionary;
	const struct forecast forecast = forecast_make(&screen->summary->survey, dictionary);
	char line[LINE_BYTES];
	if (!screen->summary->survey.grows_count)
		return;
	if (!forecast.limit)
		snprintf(line, sizeof(line), "When a limit would be reached is unknown: the trace has no %s.",
			 dictionary->limit_count ? "limit of that process" : "limits");
	else
		snprintf(line, sizeof(line),
			 "At this rate pid %s reaches %s, %s, in %s (%s to %s); %s was resident at the end.",
			 text_pid(dictionary->processes[forecast.process].pid).data, forecast.words,
			 text_bytes(forecast.limit_bytes).data, text_seconds(forecast.seconds).data,
			 text_seconds(forecast.least_seconds).data, text_seconds(forecast.most_seconds).data,
			 text_bytes(forecast.used_bytes).data);
	words_put(screen, 2, line, "");
}

static void growth_put(const struct summary_screen *screen)
{
	const struct survey *survey = &screen->summary->survey;
	char line[LINE_BYTES];
	if (*survey->growth_unknown.data)
		snprintf(line, sizeof(line), "Growth: unknown, the trace is too short (%s)",
			 survey->growth_unknown.data);
	else if (!survey->grows_count)
		snprintf(line, sizeof(line), "Growth: no stack grows steadily");
	else
		snprintf(line, sizeof(line), "Growth: %zu stack%s (bytes a second, 95 %% interval)",
			 survey->grows_count, plural(survey->grows_count));
	heading(screen, line);
	size_t most = survey->grows_count ? survey->grows_count : screen->view->lines ? 0 : screen->rows;
	for (size_t i = 0; i < survey->growth_count && i < most && i < screen->rows; i++)
		growth_row_put(screen, &survey->growths[i]);
	forecast_put(screen);
	struct summary_note notes[SUMMARY_NOTES];
	unsigned count = summary_growth_notes(screen->summary, notes);
	for (unsigned i = 0; i < count; i++)
		words_put(screen, 2, notes[i].text, "");
}

static void cell_put(const struct summary_screen *screen, unsigned eighths)
{
	static const char *const blocks[EIGHTHS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	sink_text(screen->out, screen->summary->input->layout.has_unicode ? blocks[eighths]
			       : eighths > EIGHTHS / 2                    ? "#"
			       : eighths                                  ? "."
									  : " ");
}

/* Each column has the most of some parts of the time. */
static void chart_put(const struct summary_screen *screen)
{
	const struct survey *survey = &screen->summary->survey;
	uint32_t parts = survey->plan.chart_parts, each = 1;
	uint64_t columns[SUMMARY_CHART_PARTS] = {0}, highest = 0;
	while (parts / each + CHART_MARGIN > width_of(screen))
		each++;
	uint32_t count = parts / each;
	for (uint32_t i = 0; i < count * each; i++) {
		uint64_t *column = &columns[i / each];
		*column = survey->chart[i].bytes > *column ? survey->chart[i].bytes : *column;
		highest = *column > highest ? *column : highest;
	}
	if (!highest)
		return;
	heading(screen, "Live bytes over time");
	for (unsigned row = CHART_ROWS; row-- > 0;) {
		sink_format(screen->out, "  %10s ",
			    row == CHART_ROWS - 1 ? bytes_of(screen, highest).data
			    : row                 ? ""
						  : "0");
		sink_text(screen->out, style_begin(screen->summary->input->is_colored, STYLE_CHART));
		for (uint32_t i = 0; i < count; i++) {
			uint64_t filled = (uint64_t)((unsigned __int128)columns[i] * CHART_ROWS * EIGHTHS / highest),
				 floor = (uint64_t)row * EIGHTHS;
			filled += !filled && columns[i];
			cell_put(screen, filled <= floor            ? 0
					 : filled - floor > EIGHTHS ? EIGHTHS
								    : (unsigned)(filled - floor));
		}
		sink_format(screen->out, "%s\n", style_end(screen->summary->input->is_colored, STYLE_CHART));
	}
	const struct text from =
		survey->chart_range.from_ns ? text_duration(survey->chart_range.from_ns) : (struct text){"0"};
	sink_format(screen->out, "  %10s %s%*s\n", "", from.data, (int)count - (int)strlen(from.data),
		    text_duration(survey->chart_range.to_ns).data);
}

static void resident_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	const struct survey *survey = &summary->survey;
	struct sink sink;
	if (!summary->resident)
		return;
	const struct summary_resident part = summary_resident_parts(summary);
	sink_to_memory(&sink);
	sink_format(&sink, "Resident: %s at %s", text_bytes(part.bytes).data, text_duration(part.time_ns).data);
	if (part.bytes < summary->resident->resident_bytes)
		sink_format(&sink, " (%s at %s)", text_bytes(summary->resident->resident_bytes).data,
			    text_duration(summary->resident->time_ns).data);
	if (summary->is_split) {
		sink_format(&sink, ": %s live, %s rounding, ", text_bytes(survey->live_bytes).data,
			    text_bytes(survey->resident.bytes).data);
		sink_format(&sink, "%s free inside heaps, ", text_bytes(part.free_bytes).data);
		sink_format(&sink, "%s not heap", text_bytes(part.bytes - part.heap_bytes).data);
	}
	if (summary->resident_kinds.split) {
		sink_text(&sink, ": ");
		resident_rest_text(&summary->resident_kinds, TRACE_MAPPING_KIND_COUNT, &sink);
	}
	char *text = sink_take(&sink, NULL);
	words_put(screen, 2, text, "");
	free(text);
}

static void traffic_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	const struct heap_numbers *totals = &summary->source->window->totals;
	const struct survey *survey = &summary->survey;
	struct sink sink;
	heading(screen, "All blocks");
	sink_to_memory(&sink);
	sink_format(&sink, "Allocated: %s in %s block%s, %s by realloc (%s moved); ",
		    bytes_of(screen, totals->total_bytes).data, count_of(screen, totals->total_count).data,
		    plural(totals->total_count), count_of(screen, totals->realloc_count).data,
		    count_of(screen, totals->realloc_moved_count).data);
	if (!summary->source->table->sample_bytes)
		sink_format(&sink, "%u %% temporary, ", percent(totals->temporary_count, totals->total_count));
	sink_format(&sink, "%u %% live for less than %s, %u %% are freed by another thread",
		    percent(survey->short_count, totals->total_count), text_duration(survey->plan.short_ns).data,
		    percent(survey->crossed_count, totals->total_count));
	char *text = sink_take(&sink, NULL);
	words_put(screen, 2, text, "");
	free(text);
	for (size_t i = 0; i < survey->handover_count && i < screen->rows / 2 + 1; i++) {
		char line[LINE_BYTES];
		snprintf(line, sizeof(line), "  %10s freed by ", count_of(screen, survey->handovers[i].count).data);
		char names[LINE_BYTES];
		snprintf(names, sizeof(names), "%.100s, made by %.100s",
			 text_shown(survey_role(survey, survey->handovers[i].to)),
			 text_shown(survey_role(survey, survey->handovers[i].from)));
		line_put(screen, line, names);
	}
	resident_put(screen);
}

/* The number of a row of the further lists. */
static void more_row_put(const struct summary_screen *screen, enum summary_list_id id, const struct action_row *row)
{
	const struct action_figures *figures = row->figures;
	char line[LINE_BYTES] = "";
	if (id == SUMMARY_REALLOC)
		snprintf(line, sizeof(line), "  %10s copied in %s steps  ",
			 text_bytes(figures->extra[CHAINS_COPIED]).data, text_count(figures->extra[CHAINS_STEPS]).data);
	else if (id == SUMMARY_ALLOCATED)
		snprintf(line, sizeof(line), "  %10s  %s block%s  ",
			 bytes_of(screen, figures->numbers.total_bytes).data,
			 count_of(screen, figures->numbers.total_count).data, plural(figures->numbers.total_count));
	else
		snprintf(line, sizeof(line), "  %10s of %s  ",
			 count_of(screen, id == SUMMARY_SHORT     ? figures->extra[SURVEYED_SHORT]
					  : id == SUMMARY_CROSSED ? figures->extra[SURVEYED_CROSSED]
								  : figures->numbers.temporary_count)
				 .data,
			 count_of(screen, figures->numbers.total_count).data);
	stack_put(screen, line, row->group);
}

static void more_lists_put(const struct summary_screen *screen)
{
	static const enum summary_list_id ids[] = {SUMMARY_ALLOCATED, SUMMARY_TEMPORARY, SUMMARY_SHORT, SUMMARY_CROSSED,
						   SUMMARY_REALLOC};
	for (size_t i = 0; screen->has_more_lists && i < sizeof(ids) / sizeof(*ids); i++) {
		const struct summary_list *list = &screen->summary->lists[ids[i]];
		if (list->count)
			heading(screen, list->title);
		for (size_t k = 0; k < list->count && k < screen->rows; k++)
			more_row_put(screen, ids[i], list->rows.rows[k]);
	}
}

static void processes_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	size_t most = screen->view->lines ? screen->rows : summary->process_count;
	most = most < summary->process_count ? most : summary->process_count;
	char line[LINE_BYTES];
	if (!summary->process_count)
		return;
	snprintf(line, sizeof(line), "Processes: %zu of %" PRIu32 ", by their own peaks", most,
		 dictionary->process_count);
	heading(screen, line);
	for (size_t i = 0; i < most; i++) {
		const struct summary_process *own = &summary->processes[i];
		const struct trace_process *process = &dictionary->processes[own->process];
		char name[LINE_BYTES];
		const char *function = "";
		if (own->top_node != HEAP_NONE && own->top_node)
			function = frame_text(screen, stack_view_user_node(summary->input, own->top_node), false);
		snprintf(line, sizeof(line), "  %10s peak, %s left, %s resident  ",
			 own->has_peak ? bytes_of(screen, own->peak_bytes).data : "unknown",
			 own->has_peak ? bytes_of(screen, own->outstanding_bytes).data : "unknown",
			 own->resident ? text_bytes(own->resident->resident_bytes).data : "unknown");
		snprintf(name, sizeof(name), "%s %.100s%s%.800s", text_pid(process->pid).data,
			 text_shown(text_file_name(process->image ? process->image : "")), *function ? ": " : "",
			 function);
		line_put(screen, line, name);
	}
}

static void findings_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	if (summary->finding_count)
		heading(screen, "Findings");
	for (unsigned i = 0; i < summary->finding_count; i++) {
		const struct summary_finding *finding = &summary->findings[i];
		words_put(screen, 2, text_shown(finding->text), "");
		styled_put(screen, STYLE_QUIET, INDENT, text_shown(finding->command), " \\");
	}
}

static void screen_put(const struct summary_screen *screen)
{
	title_put(screen);
	trigger_put(screen);
	ends_put(screen);
	caveats_put(screen);
	filters_put(screen);
	peak_put(screen);
	growth_put(screen);
	/* A screen of 24 lines has them; what follows is evidence. */
	findings_put(screen);
	if (!screen->summary->survey.grows_count)
		outstanding_put(screen);
	if (screen->has_chart)
		chart_put(screen);
	traffic_put(screen);
	processes_put(screen);
	more_lists_put(screen);
}

static size_t lines_of(const char *text)
{
	size_t lines = 0;
	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

void summary_text(const struct summary *summary, const struct summary_view *view, struct sink *out)
{
	/* Which images have no symbols is known when the stacks have names. */
	for (uint32_t i = 0; i < summary->source->table->site_count; i++)
		heap_names_site(summary->source->names, &summary->source->table->sites[i]);
	for (int level = 0; level < LEVELS; level++) {
		struct sink own;
		const size_t rows[LEVELS] = {3, 3, 2, 2, 1};
		sink_to_memory(&own);
		const struct summary_screen screen = {.summary = summary,
						      .view = view,
						      .out = &own,
						      .rows = !view->lines || rows[level] > summary->top ? summary->top
													 : rows[level],
						      .has_chart = level != 1 && level != 3 && level != 4,
						      .has_more_lists = !view->lines};
		screen_put(&screen);
		char *text = sink_take(&own, NULL);
		bool fits = !view->lines || lines_of(text) <= view->lines;
		if (fits || level == LEVELS - 1) {
			sink_text(out, text);
			free(text);
			return;
		}
		free(text);
	}
}
