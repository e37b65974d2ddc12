/* SPDX-License-Identifier: MIT */
#include "action/summary/summary_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/actions/action_table.h"
#include "action/explain/explanation.h"
#include "action/explain/explanation_end.h"
#include "action/explain/explanation_memory.h"
#include "action/report/caveats.h"
#include "action/report/ends.h"
#include "action/report/losses.h"
#include "action/report/report_columns.h"
#include "action/report/stack_view.h"
#include "action/summary/forecast.h"
#include "action/summary/function_sum.h"
#include "action/summary/summary_lines.h"
#include "base/text.h"
#include "query/frame_names.h"
#include "query/missing_symbols.h"
#include "trace/memory_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* ---- the head ---- */

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
	snprintf(line, sizeof(line), "%s, %" PRIu32 " process%s, %" PRIu32 " thread%s with heap calls, %s event%s%s%s",
		 text_duration(summary->source->table->duration_ns).data, dictionary->process_count,
		 dictionary->process_count == 1 ? "" : "es", threads, text_plural(threads),
		 text_count(dictionary->event_count).data, text_plural(dictionary->event_count),
		 *missing.data ? "; not complete: " : "", missing.data);
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

/* Add the heap call that failed for want of memory, if it explains the end best. Return whether it does. */
static bool memory_put(const struct summary_screen *screen, uint32_t process, struct sink *out)
{
	struct action_input *input = screen->summary->input;
	struct explanation explanation = {.input = input, .source = &input->sources[0], .process = process};
	struct diag diag = {""};
	if (!screen->summary->source->table->dictionary->failed_count || explanation_end_find(&explanation, &diag))
		return false;
	const struct explain_call *call = explanation_call(&explanation);
	if (!call || call->fault != EXPLAIN_NO_MEMORY)
		return false;
	sink_format(out, "; %s: ", explain_certainty_words[call->certainty]);
	explanation_memory_put(&explanation, call, out);
	return true;
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
	bool is_crash = process->end == TRACE_END_SIGNAL && explain_is_crash(process->end_status);
	if (memory_put(screen, first, &sink) || is_crash)
		sink_text(&sink, "; why: xheap explain");
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
	enum { LINES_EACH = 3 };
	size_t most = screen->view->lines ? 3 : SIZE_MAX, count = 0, lines = 0, length;
	/* The lines are laid out already, and may have a style, which takes no columns. A caveat is there with all of
	   its lines, or not at all; only gaps may be more than a screen has room for. */
	for (const char *line = screen->caveats; (length = strcspn(line, "\n")); line += length + 1) {
		count += !is_continued(line);
		if (count <= most && lines++ < most * LINES_EACH)
			sink_bytes(screen->out, line, length + 1);
	}
	if (count > most)
		sink_format(screen->out, "  %zu more caveat%s: -more\n", count - most, text_plural(count - most));
}

static void filters_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	char line[SUMMARY_LINE_BYTES];
	if (summary->has_range) {
		const struct heap_range range = summary->source->window->range;
		snprintf(line, sizeof(line), "  in the range %s", text_span(range.from_ns, range.to_ns).data);
		summary_line_put(screen, line, "");
	}
	if (summary->is_by_object)
		summary_words_put(screen, 2,
				  "objects of Python count in place of their arenas, each by the line that took its "
				  "memory, which may be of an object before it; [pool overhead] is what remains of "
				  "the arenas (-innermost)",
				  "");
	for (size_t i = 0; i < summary->filter_count && !summary->is_by_object; i++) {
		snprintf(line, sizeof(line), "  only -%s ", summary->filters[i].name);
		summary_line_put(screen, line, text_shown(summary->filters[i].text));
	}
}

/* Write the trace, how its processes ended, why numbers are not exact, and the filters. */
static void summary_head_put(const struct summary_screen *screen)
{
	title_put(screen);
	trigger_put(screen);
	ends_put(screen);
	caveats_put(screen);
	filters_put(screen);
}

/* ---- the chart ---- */

enum { EIGHTHS = 8, CHART_ROWS = 3, CHART_MARGIN = 13 };

static void cell_put(const struct summary_screen *screen, unsigned eighths)
{
	static const char *const blocks[EIGHTHS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	sink_text(screen->out, screen->summary->input->layout.has_unicode ? blocks[eighths]
			       : eighths > EIGHTHS / 2                    ? "#"
			       : eighths                                  ? "."
									  : " ");
}

/* Each column has the most of some parts of the time. */
static void summary_chart_put(const struct summary_screen *screen)
{
	const struct survey *survey = &screen->summary->survey;
	uint32_t parts = survey->plan.chart_parts, each = 1;
	uint64_t columns[SUMMARY_CHART_PARTS] = {0}, highest = 0;
	while (parts / each + CHART_MARGIN > summary_width_of(screen))
		each++;
	uint32_t count = parts / each;
	for (uint32_t i = 0; i < count * each; i++) {
		uint64_t *column = &columns[i / each];
		*column = survey->chart[i].bytes > *column ? survey->chart[i].bytes : *column;
		highest = *column > highest ? *column : highest;
	}
	if (!highest)
		return;
	summary_heading(screen, "Live bytes over time");
	for (unsigned row = CHART_ROWS; row-- > 0;) {
		sink_format(screen->out, "  %10s ",
			    row == CHART_ROWS - 1 ? summary_bytes_of(screen, highest).data
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

enum { LEVELS = 5 };

/* Write what allocators gave beyond the bytes that were asked for, of the blocks of the peak. */
static void rounding_text(const struct summary_screen *screen, char *text, size_t size)
{
	const struct summary *summary = screen->summary;
	const struct survey_rounding *rounding = &summary->survey.at_peak;
	const struct heap_window *window = summary->source->window;
	char unknown[SUMMARY_LINE_BYTES] = "";
	*text = 0;
	if (summary->source->table->sample_bytes || window->is_peak_folded)
		return;
	if (rounding->unknown_count)
		snprintf(unknown, sizeof(unknown), "; not known of %s block%s",
			 text_count(rounding->unknown_count).data, text_plural(rounding->unknown_count));
	snprintf(text, size, ", rounded up by %s (%u %%%.100s)", text_bytes(rounding->bytes).data,
		 text_percent(rounding->bytes, window->totals.peak_bytes), unknown);
}

/* Say how many rows of a list are not shown, and how to see them. */
static void cut_put(const struct summary_screen *screen, size_t shown, size_t count)
{
	enum { MOST = 50 }; /* rows that one asks for at first */
	char line[SUMMARY_LINE_BYTES];
	if (shown >= count)
		return;
	snprintf(line, sizeof(line), "  %s and %s more: -top %zu",
		 screen->summary->input->layout.has_unicode ? "…" : "...", text_count(count - shown).data,
		 count <= MOST || shown >= MOST ? count : MOST);
	summary_line_put(screen, line, "");
}

/* Return how many rows of a list have some of its number, whether they are shown or not. */
static size_t list_total(const struct summary_list *list)
{
	size_t total = 0;
	for (size_t i = 0; i < list->rows.count; i++)
		total += list->sort.number(list->rows.rows[i]->figures) != 0;
	return total;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Below a function that has no name: which function with a name calls it most, and what would name it. */
static void nameless_put(const struct summary_screen *screen, const struct function_sum *sum)
{
	const struct summary *summary = screen->summary;
	struct heap_names *names = action_names(summary->input);
	const uint32_t node = sum->node ? stack_view_user_node(summary->input, sum->node) : 0; /* 0: no stack */
	const struct summary_list *list = &summary->lists[SUMMARY_PEAK];
	const char *package = screen->package;
	struct sink sink;
	if (!node || !heap_name_is_offset(heap_names_name(names, heap_names_frame(names, node)->name)))
		return;
	const struct function_sum caller =
		function_sum_named_caller(summary->input, &list->rows, &list->sort, sum->node);
	if (!*package && !caller.node)
		return;
	sink_to_memory(&sink);
	sink_text(&sink, "no name here");
	if (*package)
		sink_format(&sink, " (debug symbols of %s have it)", package);
	if (caller.node)
		sink_format(&sink, "; the named caller with the most, %u %%: %s",
			    text_percent(caller.figures.numbers.peak_bytes, sum->figures.numbers.peak_bytes),
			    summary_frame_text(screen, caller.node, true));
	char *text = sink_take(&sink, NULL);
	summary_words_put(screen, SUMMARY_INDENT * 2, text, "");
	free(text);
}

/* Return whether the function with most of the peak has a line of its own: its stacks have far more together than the
   first stack has. */
static bool has_function_line(const struct summary *summary)
{
	const struct summary_list *list = &summary->lists[SUMMARY_PEAK];
	const struct function_sum *sum = &summary->peak_function;
	return sum->stack_count >= 2 && list->count &&
	       sum->figures.numbers.peak_bytes >= 2 * list->rows.rows[0]->figures->numbers.peak_bytes;
}

/* Write this function, if it has. */
static void function_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	const struct function_sum sum = summary->peak_function;
	const struct heap_numbers *numbers = &sum.figures.numbers;
	char line[SUMMARY_LINE_BYTES];
	if (!has_function_line(summary))
		return;
	snprintf(line, sizeof(line), "  %10s %3u %%  %s block%s of %s stacks  ",
		 summary_bytes_of(screen, numbers->peak_bytes).data,
		 text_percent(numbers->peak_bytes, summary->source->window->totals.peak_bytes),
		 summary_count_of(screen, numbers->peak_count).data, text_plural(numbers->peak_count),
		 text_count(sum.stack_count).data);
	summary_line_put(screen, line, summary_function(summary, sum.node));
	nameless_put(screen, &sum);
}

/* Return how many rows of the peak are shown: those that matter are, though the screen becomes longer. */
static size_t peak_rows(const struct summary_screen *screen)
{
	enum { NOTABLE_PERCENT = 10, MOST = 3 };
	const struct summary_list *list = &screen->summary->lists[SUMMARY_PEAK];
	const uint64_t all = screen->summary->source->window->totals.peak_bytes;
	size_t rows = screen->rows;
	while (rows < MOST && rows < list->count &&
	       text_percent(list->rows.rows[rows]->figures->numbers.peak_bytes, all) >= NOTABLE_PERCENT)
		rows++;
	return rows;
}

/* Write the rows of a list with two of their numbers, and the share of all bytes. */
static void shares_put(const struct summary_screen *screen, enum summary_list_id id, enum action_number bytes,
		       enum action_number blocks)
{
	const struct summary_list *list = &screen->summary->lists[id];
	uint64_t all = report_number_at(&screen->summary->source->window->totals, bytes);
	const struct function_sum *largest = &screen->summary->peak_function;
	/* Of the function with most of the peak, the first stack says what would name it. */
	bool is_named = id != SUMMARY_PEAK || has_function_line(screen->summary);
	const size_t rows = least(list->count, id == SUMMARY_PEAK ? peak_rows(screen) : screen->rows);
	char line[SUMMARY_LINE_BYTES];
	for (size_t i = 0; i < rows; i++) {
		const struct heap_numbers *numbers = &list->rows.rows[i]->figures->numbers;
		uint64_t own = report_number_at(numbers, bytes), count = report_number_at(numbers, blocks);
		snprintf(line, sizeof(line), "  %10s %3u %%  %s block%s  ", summary_bytes_of(screen, own).data,
			 text_percent(own, all), summary_count_of(screen, count).data, text_plural(count));
		summary_stack_put(screen, line, list->rows.rows[i]->group, bytes);
		if (!is_named && function_sum_has(screen->summary->input, largest, list->rows.rows[i]->group)) {
			nameless_put(screen, largest);
			is_named = true;
		}
	}
	cut_put(screen, rows, list_total(list));
}

/* Say how much the program has mapped by itself, if that is more than the peak. */
static void mapped_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	const uint64_t mapped = summary_mapped_bytes(summary);
	char line[SUMMARY_LINE_BYTES], who[SUMMARY_LINE_BYTES / 4];
	if (mapped <= summary->source->window->totals.peak_bytes)
		return;
	const struct trace_process *process =
		&summary->source->table->dictionary->processes[summary->resident->process];
	const struct text pid = text_pid(process->pid);
	if (process->image && *process->image)
		snprintf(who, sizeof(who), "%.100s (pid %s)", text_shown(text_file_name(process->image)), pid.data);
	else
		snprintf(who, sizeof(who), "pid %s", pid.data);
	snprintf(line, sizeof(line), "Not in it: %s of memory that %s maps by itself, %s", text_bytes(mapped).data, who,
		 summary_maps_old_arenas(summary)
			 ? "also arenas that Python took before the attach: which, and by what lines, is not known."
			 : "not by an allocator. Its stacks are not recorded.");
	summary_words_put(screen, 2, line, "");
}

/* Say before all that follows whose most of the peak is, where that is no line's. */
static void arenas_put(const struct summary_screen *screen)
{
	enum { MOST_PERCENT = 50 };
	const struct summary *summary = screen->summary;
	const unsigned percent = text_percent(summary->arena_bytes, summary->source->window->totals.peak_bytes);
	char line[SUMMARY_LINE_BYTES];
	if (percent < MOST_PERCENT || !summary_has_arenas_alone(summary))
		return;
	snprintf(line, sizeof(line),
		 "%u %% of it is in arenas of Python: a line has the arenas that it needed, with objects of other "
		 "lines in them.",
		 percent);
	summary_words_put(screen, 2, line, "");
}

/* Return whether Java was asked to keep methods apart. */
static bool keeps_apart(const struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		if (dictionary->processes[i].command && strstr(dictionary->processes[i].command, "-XX:-Inline"))
			return true;
	return false;
}

/* Say what would name the methods that a JVM interprets, or has put into others: no row has these names. */
static void java_put(const struct summary_screen *screen, enum summary_list_id id)
{
	const struct summary *summary = screen->summary;
	struct heap_names *names = action_names(summary->input);
	const struct summary_list *list = &summary->lists[id];
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	bool is_compiled = false, is_interpreted = false, is_inlined = trace_has_inlined_jit(dictionary),
	     is_apart = is_inlined || keeps_apart(dictionary);
	if (!heap_names_has_image(names, "libjvm.so"))
		return;
	for (size_t i = 0; i < list->count && i < screen->rows; i++) {
		uint32_t user = stack_view_user_node(summary->input, list->rows.rows[i]->group);
		const struct heap_name *name = heap_names_name(names, heap_names_frame(names, user)->name);
		is_interpreted |= user && name->is_interpreted;
		is_compiled |= user && name->is_jit && !name->is_interpreted && !name->is_library && !is_apart;
	}
	if (is_interpreted && is_compiled)
		summary_words_put(screen, 2,
				  "Interpreter: all methods that Java interprets, which have no names. Others may be "
				  "inside of those that call them, too. With java -Xcomp -XX:-Inline each has its own, "
				  "and Java is slower (docs/jit.md).",
				  "");
	else if (is_interpreted) {
		char line[SUMMARY_LINE_BYTES];
		snprintf(line, sizeof(line),
			 "Interpreter: all methods that Java interprets, which have no names. With java -Xcomp%s each "
			 "has its own (docs/jit.md).",
			 is_inlined ? "" : " -XX:-Inline");
		summary_words_put(screen, 2, line, "");
	} else if (is_compiled) {
		summary_words_put(screen, 2,
				  "Java puts methods into those that call them: the true one may be inside. With java "
				  "-XX:-Inline each has its own row, and Java is slower (docs/jit.md).",
				  "");
	}
}

static void peak_put(const struct summary_screen *screen)
{
	const struct heap_window *window = screen->summary->source->window;
	char line[SUMMARY_LINE_BYTES], rounding[SUMMARY_LINE_BYTES / 2];
	rounding_text(screen, rounding, sizeof(rounding));
	snprintf(line, sizeof(line), "Peak: %s in %s block%s at %s%s",
		 summary_bytes_of(screen, window->totals.peak_bytes).data,
		 summary_count_of(screen, window->totals.peak_count).data, text_plural(window->totals.peak_count),
		 text_duration(window->peak_at_ns).data, rounding);
	summary_heading(screen, line);
	mapped_put(screen);
	arenas_put(screen);
	function_put(screen);
	shares_put(screen, SUMMARY_PEAK, ACTION_NUMBER_peak_bytes, ACTION_NUMBER_peak_count);
	java_put(screen, SUMMARY_PEAK);
}

static void outstanding_put(const struct summary_screen *screen)
{
	const struct heap_numbers *totals = &screen->summary->source->window->totals;
	char line[SUMMARY_LINE_BYTES];
	snprintf(line, sizeof(line), "%s: %s in %s block%s%s",
		 ends_outstanding(screen->summary->source->table->dictionary),
		 summary_bytes_of(screen, totals->outstanding_bytes).data,
		 summary_count_of(screen, totals->outstanding_count).data, text_plural(totals->outstanding_count),
		 summary_less_earlier(screen->summary));
	*line = (char)toupper(*line);
	summary_heading(screen, line);
	shares_put(screen, SUMMARY_OUTSTANDING, ACTION_NUMBER_outstanding_bytes, ACTION_NUMBER_outstanding_count);
}

static void growth_row_put(const struct summary_screen *screen, const struct survey_growth *own)
{
	const struct growth *growth = &own->growth;
	char line[SUMMARY_LINE_BYTES], stacks[SUMMARY_LINE_BYTES] = "";
	if (own->stack_count > 1)
		snprintf(stacks, sizeof(stacks), " of %s stacks", text_count(own->stack_count).data);
	if (growth->verdict == GROWTH_GROWS)
		snprintf(line, sizeof(line), "  %s/s (%s to %s), %s block%s%.100s  ",
			 summary_bytes_of(screen, (uint64_t)growth->bytes.mean).data,
			 text_bytes((uint64_t)growth->bytes.low).data, text_bytes((uint64_t)growth->bytes.high).data,
			 summary_count_of(screen, (uint64_t)growth->grown_count).data,
			 text_plural((uint64_t)growth->grown_count), stacks);
	else
		snprintf(line, sizeof(line), "  no finding, %s: ", growth_sentence(growth->verdict));
	struct text pid;
	if (own->stack_count)
		summary_stack_put(screen, line, own->node, ACTION_NUMBER_outstanding_bytes);
	else
		summary_line_put(screen, line, summary_growth_name(screen->summary, own, &pid));
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
	char line[SUMMARY_LINE_BYTES];
	if (!screen->summary->survey.grows_count)
		return;
	if (!forecast.limit)
		snprintf(line, sizeof(line), "When a limit would be reached is unknown: the trace has no %s.",
			 dictionary->limit_count ? "limit of that process" : "limits");
	else
		snprintf(line, sizeof(line),
			 "At this rate pid %s reaches %s, %s, in %s (%s to %s); %s was resident at %s.",
			 text_pid(dictionary->processes[forecast.process].pid).data, forecast.words,
			 text_bytes(forecast.limit_bytes).data, text_seconds(forecast.seconds).data,
			 text_seconds(forecast.least_seconds).data, text_seconds(forecast.most_seconds).data,
			 text_bytes(forecast.used_bytes).data, text_duration(forecast.used_ns).data);
	summary_words_put(screen, 2, line, "");
}

/* Write how many stacks grow by themselves, how many functions by several stacks together, and how many processes of
   which no stack does. */
static void growing_text(const struct survey *survey, char *text, size_t size)
{
	static const char *const words[] = {"stack", "function", "process"}, *const plurals[] = {"s", "s", "es"};
	size_t counts[3] = {0}, used = 0;
	for (size_t i = 0; i < survey->grows_count; i++) {
		uint32_t stacks = survey->growths[i].stack_count;
		counts[stacks == 1 ? 0 : stacks ? 1 : 2]++;
	}
	for (size_t kind = 0; kind < 3; kind++)
		if (counts[kind] && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%zu %s%s", used ? ", " : "", counts[kind],
						 words[kind], counts[kind] == 1 ? "" : plurals[kind]);
}

static bool has_small_growth(const struct survey *survey)
{
	for (size_t i = 0; i < survey->growth_count; i++)
		if (survey->growths[i].growth.verdict == GROWTH_SMALL)
			return true;
	return false;
}

/* Where nothing grows steadily: the stack with the largest increase, and which test it fails. */
static void increase_put(const struct summary_screen *screen)
{
	const struct survey *survey = &screen->summary->survey;
	const struct survey_growth *most = NULL;
	for (size_t i = 0; i < survey->growth_count; i++) {
		const struct survey_growth *own = &survey->growths[i];
		if (own->growth.verdict != GROWTH_FEW && own->growth.grown_bytes > 0 &&
		    (!most || own->growth.grown_bytes > most->growth.grown_bytes))
			most = own;
	}
	if (!most)
		return;
	struct sink sink;
	struct text pid;
	sink_to_memory(&sink);
	sink_format(&sink, "Largest increase, no finding: %s in %s block%s of %s: %s.",
		    summary_bytes_of(screen, (uint64_t)most->growth.grown_bytes).data,
		    summary_count_of(screen, (uint64_t)most->growth.grown_count).data,
		    text_plural((uint64_t)most->growth.grown_count),
		    summary_growth_name(screen->summary, most, &pid), growth_sentence(most->growth.verdict));
	char *text = sink_take(&sink, NULL);
	summary_words_put(screen, 2, text, "");
	free(text);
}

static void growth_put(const struct summary_screen *screen)
{
	const struct survey *survey = &screen->summary->survey;
	char line[SUMMARY_LINE_BYTES], growing[SUMMARY_LINE_BYTES / 8] = "";
	growing_text(survey, growing, sizeof(growing));
	if (*survey->growth_unknown.data)
		snprintf(line, sizeof(line), "Growth: unknown, the trace is too short (%s)",
			 survey->growth_unknown.data);
	else if (!survey->grows_count)
		snprintf(line, sizeof(line), "Growth: no stack grows steadily%s",
			 has_small_growth(survey) ? " by 1 KiB a second" : "");
	else
		snprintf(line, sizeof(line), "Growth: %s (bytes a second, 95 %% interval)", growing);
	summary_heading(screen, line);
	size_t most = survey->grows_count ? survey->grows_count : screen->view->lines ? 0 : survey->growth_count;
	size_t shown = least(most, screen->rows);
	for (size_t i = 0; i < shown; i++)
		growth_row_put(screen, &survey->growths[i]);
	cut_put(screen, shown, most);
	if (!most && !*survey->growth_unknown.data)
		increase_put(screen);
	forecast_put(screen);
	struct summary_note notes[SUMMARY_NOTES];
	unsigned count = summary_growth_notes(screen->summary, notes);
	for (unsigned i = 0; i < count; i++)
		summary_words_put(screen, 2, notes[i].text, "");
}

static void resident_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
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
		sink_format(&sink, ": %s live, %s rounding, ", text_bytes(part.live_bytes).data,
			    text_bytes(part.rounding_bytes).data);
		sink_format(&sink, "%s free inside heaps, ", text_bytes(part.free_bytes).data);
		sink_format(&sink, "%s not heap", text_bytes(part.bytes - part.heap_bytes).data);
	}
	if (summary->resident_kinds.split) {
		sink_text(&sink, ": ");
		resident_rest_text(&summary->resident_kinds, TRACE_MAPPING_KIND_COUNT, &sink);
	}
	char *text = sink_take(&sink, NULL);
	summary_words_put(screen, 2, text, "");
	free(text);
}

static void traffic_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	const struct heap_numbers *totals = &summary->source->window->totals;
	const struct survey *survey = &summary->survey;
	struct sink sink;
	summary_heading(screen, "All blocks");
	sink_to_memory(&sink);
	sink_format(&sink, "Allocated: %s in %s block%s, %s by realloc (%s moved); ",
		    summary_bytes_of(screen, totals->total_bytes).data,
		    summary_count_of(screen, totals->total_count).data, text_plural(totals->total_count),
		    summary_count_of(screen, totals->realloc_count).data,
		    summary_count_of(screen, totals->realloc_moved_count).data);
	if (!summary->source->table->sample_bytes)
		sink_format(&sink, "%u %% temporary, ", text_percent(totals->temporary_count, totals->total_count));
	sink_format(&sink, "%u %% live for less than %s, %u %% are freed by another thread",
		    text_percent(survey->short_count, totals->total_count), text_duration(survey->plan.short_ns).data,
		    text_percent(survey->crossed_count, totals->total_count));
	char *text = sink_take(&sink, NULL);
	summary_words_put(screen, 2, text, "");
	free(text);
	size_t most = screen->view->lines && !screen->view->has_top ? screen->rows / 2 + 1 : screen->rows;
	size_t shown = least(survey->handover_count, most);
	for (size_t i = 0; i < shown; i++) {
		char line[SUMMARY_LINE_BYTES];
		snprintf(line, sizeof(line), "  %10s freed by ",
			 summary_count_of(screen, survey->handovers[i].count).data);
		char names[SUMMARY_LINE_BYTES];
		snprintf(names, sizeof(names), "%.100s, made by %.100s",
			 text_shown(survey_role(survey, survey->handovers[i].to)),
			 text_shown(survey_role(survey, survey->handovers[i].from)));
		summary_line_put(screen, line, names);
	}
	cut_put(screen, shown, survey->handover_count);
	resident_put(screen);
}

/* The number of a row of the further lists. */
static void more_row_put(const struct summary_screen *screen, enum summary_list_id id, const struct action_row *row)
{
	const struct action_figures *figures = row->figures;
	char line[SUMMARY_LINE_BYTES] = "";
	if (id == SUMMARY_REALLOC)
		snprintf(line, sizeof(line), "  %10s copied in %s steps  ",
			 text_bytes(figures->extra[CHAINS_COPIED]).data, text_count(figures->extra[CHAINS_STEPS]).data);
	else if (id == SUMMARY_ALLOCATED)
		snprintf(line, sizeof(line), "  %10s  %s block%s  ",
			 summary_bytes_of(screen, figures->numbers.total_bytes).data,
			 summary_count_of(screen, figures->numbers.total_count).data,
			 text_plural(figures->numbers.total_count));
	else
		snprintf(line, sizeof(line), "  %10s of %s  ",
			 summary_count_of(screen, id == SUMMARY_SHORT     ? figures->extra[SURVEYED_SHORT]
						  : id == SUMMARY_CROSSED ? figures->extra[SURVEYED_CROSSED]
									  : figures->numbers.temporary_count)
				 .data,
			 summary_count_of(screen, figures->numbers.total_count).data);
	summary_stack_put(screen, line, row->group, ACTION_NUMBER_total_bytes);
}

static void more_lists_put(const struct summary_screen *screen)
{
	static const enum summary_list_id ids[] = {SUMMARY_ALLOCATED, SUMMARY_TEMPORARY, SUMMARY_SHORT, SUMMARY_CROSSED,
						   SUMMARY_REALLOC};
	for (size_t i = 0; screen->has_more_lists && i < sizeof(ids) / sizeof(*ids); i++) {
		const struct summary_list *list = &screen->summary->lists[ids[i]];
		if (list->count)
			summary_heading(screen, list->title);
		for (size_t k = 0; k < list->count && k < screen->rows; k++)
			more_row_put(screen, ids[i], list->rows.rows[k]);
		cut_put(screen, least(list->count, screen->rows), list_total(list));
	}
}

static void processes_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	size_t most = least(screen->view->lines ? screen->rows : SIZE_MAX, summary->process_count);
	char line[SUMMARY_LINE_BYTES];
	if (!summary->process_count)
		return;
	snprintf(line, sizeof(line), "Processes: %zu of %" PRIu32 ", by their own peaks", most,
		 dictionary->process_count);
	summary_heading(screen, line);
	for (size_t i = 0; i < most; i++) {
		const struct summary_process *own = &summary->processes[i];
		const struct trace_process *process = &dictionary->processes[own->process];
		char numbers[SUMMARY_LINE_BYTES / 4], name[SUMMARY_LINE_BYTES / 4];
		const char *function = "";
		if (own->top_node != HEAP_NONE && own->top_node)
			function =
				summary_frame_text(screen, stack_view_user_node(summary->input, own->top_node), false);
		snprintf(numbers, sizeof(numbers), "  %10s peak, %s left, %s resident  ",
			 own->has_peak ? summary_bytes_of(screen, own->peak_bytes).data : "unknown",
			 own->has_peak ? summary_bytes_of(screen, own->outstanding_bytes).data : "unknown",
			 own->resident ? text_bytes(own->resident->resident_bytes).data : "unknown");
		snprintf(name, sizeof(name), "%s %.100s", text_pid(process->pid).data,
			 text_shown(text_file_name(process->image ? process->image : "")));
		/* The function is cut where both have no room. */
		bool has_function = *function && text_width(numbers) + text_width(name) + 2 < summary_width_of(screen);
		snprintf(line, sizeof(line), "%s%s: ", numbers, name);
		summary_line_put(screen, has_function ? line : numbers, has_function ? function : name);
	}
}

static void findings_put(const struct summary_screen *screen)
{
	const struct summary *summary = screen->summary;
	if (summary->finding_count)
		summary_heading(screen, "Findings");
	for (unsigned i = 0; i < summary->finding_count; i++) {
		const struct summary_finding *finding = &summary->findings[i];
		summary_words_put(screen, 2, text_shown(finding->text), "");
		summary_styled_put(screen, STYLE_QUIET, SUMMARY_INDENT, text_shown(finding->command), " \\");
	}
}

static void screen_put(const struct summary_screen *screen)
{
	summary_head_put(screen);
	peak_put(screen);
	growth_put(screen);
	/* A screen of 24 lines has them; what follows is evidence. */
	findings_put(screen);
	if (!screen->summary->survey.grows_count)
		outstanding_put(screen);
	if (screen->has_chart)
		summary_chart_put(screen);
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

/* Write the package of the function with most of the peak, "" if it has a name. */
static void package_find(const struct summary *summary, char *package, size_t size)
{
	const uint32_t node = summary->peak_function.node;
	struct heap_names *names = action_names(summary->input);
	*package = 0;
	if (!node || node == HEAP_NONE || !summary->input->asks_packages)
		return;
	const struct heap_name *name =
		heap_names_name(names, heap_names_frame(names, stack_view_user_node(summary->input, node))->name);
	if (heap_name_is_offset(name))
		missing_symbols_package(names, name->image, package, size);
}

void summary_text(const struct summary *summary, const struct summary_view *view, struct sink *out)
{
	struct sink caveats;
	/* Which images have no symbols is known when the stacks have names. */
	for (uint32_t i = 0; i < summary->source->table->site_count; i++)
		heap_names_site(summary->source->names, &summary->source->table->sites[i]);
	sink_to_memory(&caveats);
	/* No rows of an action were made. */
	action_input_settle(summary->input);
	caveats_text_by_weight(&caveats, summary->input);
	char *caveats_found = sink_take(&caveats, NULL);
	char package[SUMMARY_LINE_BYTES / 4];
	package_find(summary, package, sizeof(package));
	for (int level = 0; level < LEVELS; level++) {
		struct sink own;
		const size_t rows[LEVELS] = {3, 3, 2, 2, 1};
		sink_to_memory(&own);
		const struct summary_screen screen = {.summary = summary,
						      .view = view,
						      .out = &own,
						      .caveats = caveats_found,
						      .package = package,
						      .rows = view->lines && !view->has_top
								      ? least(rows[level], summary->top)
								      : summary->top,
						      .has_chart = level != 1 && level != 3 && level != 4,
						      .has_more_lists = !view->lines};
		screen_put(&screen);
		char *text = sink_take(&own, NULL);
		/* So many rows as were asked for are wanted whatever the lines. */
		bool fits = !view->lines || view->has_top || lines_of(text) <= view->lines;
		bool is_last = fits || level == LEVELS - 1;
		if (is_last)
			sink_text(out, text);
		free(text);
		if (is_last)
			break;
	}
	free(caveats_found);
}
