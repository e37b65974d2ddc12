/* SPDX-License-Identifier: MIT */
#include "action/budget/budget_text.h"

#include <stdarg.h>
#include <stdlib.h>

#include "action/actions/stacks.h"
#include "action/report/culled.h"
#include "action/report/losses.h"
#include "base/grid.h"
#include "base/text.h"
#include "base/text_nearest.h"
#include "query/nearest.h"
#include "trace/reader.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

#define LEAST_PART 0.1 /* percent */
enum { COLUMNS = 5, COLUMNS_OF_RUNS = 6, ROWS_MAX = 30, LIMITS_MAX = 100, MATCHES_MAX = 10, PERCENT = 100 };

struct text budget_missing(const struct action_source *source)
{
	const struct trace_dictionary *dictionary = trace_dictionary(source->trace);
	struct text text = losses_missing_text(dictionary);
	if (!*text.data && !losses_is_complete(dictionary))
		text = losses_is_being_written(source->path, dictionary) ? (struct text){"the trace is being written"}
									 : (struct text){"the trace is cut"};
	return text;
}

/* ---- sentences ---- */

/* Return the number as a text; if the figure would read like what is allowed, with all of its digits. */
static struct text number_text(const struct budget_limit *limit, const struct verdict *verdict, uint64_t number)
{
	const struct text most = budget_number_text(limit, verdict->most);
	bool reads_alike = verdict->most > verdict->allowed &&
			   !strcmp(most.data, budget_number_text(limit, verdict->allowed).data);
	if (!reads_alike)
		return budget_number_text(limit, number);
	struct text text = text_count(number);
	strcat(text.data, " B");
	return text;
}

/* "5.1 MiB (7.6 %) more than the 67.2 MiB allowed" */
static void over_put(struct sink *out, const struct budget_limit *limit, const struct verdict *verdict)
{
	uint64_t figure = verdict->most, allowed = verdict->allowed;
	sink_format(out, "%s", budget_number_text(limit, figure - allowed).data);
	if (allowed)
		sink_format(out, " (%.1f %%)", PERCENT * (double)(figure - allowed) / (double)allowed);
	sink_format(out, " more than the %s allowed", number_text(limit, verdict, allowed).data);
}

/* "72.3 MiB", "1 block", or "70.1 MiB to 72.3 MiB" */
static void figure_put(struct sink *out, const struct budget_limit *limit, const struct verdict *verdict)
{
	sink_text(out, number_text(limit, verdict, verdict->least).data);
	if (verdict->most != verdict->least)
		sink_format(out, " to %s", number_text(limit, verdict, verdict->most).data);
	if (limit->metric->is_count)
		sink_text(out, verdict->most == 1 ? " block" : " blocks");
}

static struct text_nearest nearest_begin(const char *wanted)
{
	return (struct text_nearest){wanted, NULL, strlen(wanted) / 2 + 1};
}

static void nearest_put(struct sink *out, const struct text_nearest *nearest)
{
	if (nearest->best)
		sink_format(out, "; the nearest is %s", nearest->best);
}

/* No frame has the whole name. */
static void whole_name_put(struct sink *out, const struct heap_names *names, const char *wanted)
{
	struct text_nearest nearest = nearest_begin(wanted);
	for (uint32_t i = 0; i < heap_names_count(names); i++)
		text_nearest_try(&nearest, heap_names_name(names, i)->text);
	sink_format(out, "\"%s\" is the name of no frame", wanted);
	nearest_put(out, &nearest);
}

/* No thread, or process, that the limit counts has the name. */
static void thread_put(struct sink *out, const struct budget_check *check, const struct budget_list *lists,
		       const char *wanted)
{
	struct text_nearest nearest = nearest_begin(wanted);
	bool is_thread = lists[BUDGET_THREAD].count;
	for (unsigned run = 0; run < check->input->source_count; run++) {
		const struct trace_dictionary *dictionary = trace_dictionary(check->input->sources[run].trace);
		for (uint32_t i = 0; i < dictionary->thread_count && is_thread; i++)
			text_nearest_try(&nearest, dictionary->threads[i].name);
		for (uint32_t i = 0; i < dictionary->process_count && !is_thread; i++)
			text_nearest_try(&nearest, text_file_name(dictionary->processes[i].image));
	}
	sink_format(out, "no %s is called \"%s\"%s", is_thread ? "thread" : "process", wanted,
		    is_thread && lists[BUDGET_PROCESS].count ? " in such a process" : "");
	/* It may be in another process, which the limit does not count. */
	if (!nearest.best || strcmp(nearest.best, wanted) != 0)
		nearest_put(out, &nearest);
}

static void unmatched_put(struct sink *out, const struct budget_check *check, const struct budget_limit *limit,
			  const struct verdict *verdict)
{
	const struct budget_list *lists = budget_selection_of(check->budget, limit)->lists;
	const struct heap_pattern *pattern = budget_match_pattern(check->match, verdict->unmatched);
	const char *word = budget_word(check->budget, verdict->unmatched);
	char text[400];
	if (!verdict->is_unmatched_frame)
		thread_put(out, check, lists, word);
	else if (pattern)
		heap_pattern_missing(pattern, action_names(check->input), text, sizeof(text));
	else
		whole_name_put(out, action_names(check->input), word + 1);
	if (verdict->is_unmatched_frame && pattern)
		sink_text(out, text);
	sink_text(out, ": nothing is counted");
}

/* What is not known of the allocations that may belong to a limit. */
static const char *doubt_text(const struct budget_check *check, const struct budget_limit *limit)
{
	bool has_cut = false, has_unnamed = false;
	const struct budget_list *lists = budget_selection_of(check->budget, limit)->lists;
	for (unsigned run = 0; run < check->input->source_count; run++) {
		has_cut |= check->runs[run].has_cut_stacks;
		has_unnamed |= check->runs[run].has_unnamed_threads;
	}
	has_cut = has_cut && lists[BUDGET_IN].count;
	has_unnamed = has_unnamed && lists[BUDGET_THREAD].count;
	return has_cut && has_unnamed ? "stacks that end early and threads without a name"
	       : has_cut              ? "stacks that end early"
				      : "threads without a name";
}

char *budget_sentence(const struct budget_check *check, size_t number)
{
	const struct budget_limit *limit = &check->budget->limits[number];
	const struct verdict *verdict = &check->verdicts[number];
	struct sink out;
	sink_to_memory(&out);
	if (verdict->state == VERDICT_UNMATCHED) {
		unmatched_put(&out, check, limit, verdict);
		return sink_take(&out, NULL);
	}
	bool holds = verdict->state == VERDICT_OK || verdict->state == VERDICT_UNCERTAIN;
	figure_put(&out, limit, verdict);
	if (holds)
		sink_format(&out, " of %s", budget_number_text(limit, verdict->allowed).data);
	if (check->input->source_count > 1)
		sink_format(&out, " in %u runs", check->input->source_count);
	if (!holds) {
		sink_text(&out, ": ");
		over_put(&out, limit, verdict);
	}
	if (verdict->state == VERDICT_UNCERTAIN)
		sink_format(&out, ", but up to %s if %s belong to it",
			    budget_number_text(limit, verdict->possible).data, doubt_text(check, limit));
	if (verdict->state == VERDICT_UNSTABLE)
		sink_text(&out, check->input->sources[verdict->highest].table->sample_bytes
					? "; the error of the sample is too large for a verdict"
					: "; it varies by more than the tolerance from run to run");
	return sink_take(&out, NULL);
}

/* ---- limits with their stacks ---- */

struct text budget_before_text(const struct budget_check *check, const struct budget_limit *limit,
			       const struct verdict_stack *stack)
{
	struct text text = {""};
	if (budget_check_has_before(check))
		snprintf(text.data, sizeof(text.data), ", before %.30s", budget_number_text(limit, stack->before).data);
	return text;
}

static void stacks_put(struct sink *out, const struct budget_check *check, const struct budget_limit *limit,
		       const struct verdict *verdict)
{
	for (size_t i = 0; i < verdict->stack_count; i++) {
		char *lines = action_stack_lines(check->input, verdict->stacks[i].node);
		sink_format(out, "      %s%s\n", budget_number_text(limit, verdict->stacks[i].number).data,
			    budget_before_text(check, limit, &verdict->stacks[i]).data);
		sink_text(out, lines);
		free(lines);
	}
	size_t more = verdict->stacks_in_all - verdict->stack_count;
	if (more && verdict->stack_count)
		sink_format(out, "      %zu more stack%s\n\n", more, more == 1 ? "" : "s");
}

/* Write formatted lines within the width. */
__attribute__((format(printf, 4, 5))) static void lines_put(struct sink *out, const struct budget_check *check,
							    enum style style, const char *format, ...)
{
	struct sink lines;
	va_list arguments;
	sink_to_memory(&lines);
	va_start(arguments, format);
	sink_vformat(&lines, format, arguments);
	va_end(arguments);
	char *text = sink_take(&lines, NULL);
	text_wrap_styled(out, text, &check->input->layout, check->input->is_colored, style);
	free(text);
}

static void limit_put(struct sink *out, const struct budget_check *check, size_t number)
{
	const struct budget_limit *limit = &check->budget->limits[number];
	const struct verdict *verdict = &check->verdicts[number];
	char *text = budget_limit_text(check->budget, limit), *sentence = budget_sentence(check, number);
	lines_put(out, check, STYLE_HEADING, "%s  %s\n", verdict_words[verdict->state], text_shown(text));
	if (check->baseline)
		lines_put(out, check, STYLE_PLAIN, "      %s\n", text_make_harmless(sentence));
	else
		lines_put(out, check, STYLE_PLAIN, "      %s (%s:%u)\n", text_make_harmless(sentence),
			  text_shown(check->budget->path), limit->line);
	stacks_put(out, check, limit, verdict);
	free(sentence);
	free(text);
}

/* ---- limits that hold ---- */

/* A part in percent, "-" of nothing. */
static struct text part_text(uint64_t part, uint64_t whole, int digits)
{
	struct text text = {"-"};
	double percent = whole ? PERCENT * (double)part / (double)whole : 0;
	if (whole && digits && part && percent < LEAST_PART)
		snprintf(text.data, sizeof(text.data), "< %.1f %%", LEAST_PART);
	else if (whole)
		snprintf(text.data, sizeof(text.data), "%.*f %%", digits, percent);
	return text;
}

static void row_put(struct grid *grid, const struct budget_check *check, size_t number)
{
	const struct budget_limit *limit = &check->budget->limits[number];
	const struct verdict *verdict = &check->verdicts[number];
	char *text = budget_limit_text(check->budget, limit);
	grid_row(grid);
	grid_cell(grid, "ok");
	grid_cell(grid, budget_number_text(limit, verdict->most).data);
	grid_cell(grid, budget_number_text(limit, verdict->allowed).data);
	grid_cell(grid, part_text(verdict->most, verdict->allowed, 0).data);
	if (grid->columns == COLUMNS_OF_RUNS)
		grid_cell(grid, verdict->most == verdict->least
					? ""
					: part_text(verdict->most - verdict->least, verdict->most, 1).data);
	grid_cell(grid, text);
	free(text);
}

/* With several runs, a column has what varies: the difference of the runs as a part of the greatest figure. */
static void rows_put(struct sink *out, const struct budget_check *check)
{
	static const char *const titles[] = {"", ">figure", ">allowed", ">used", "limit"},
				 *const run_titles[] = {"", ">figure", ">allowed", ">used", ">varies", "limit"};
	struct grid grid = {.is_colored = check->input->is_colored, .layout = check->input->layout};
	bool has_runs = check->input->source_count > 1;
	size_t shown = 0;
	grid_columns(&grid, has_runs ? COLUMNS_OF_RUNS : COLUMNS, has_runs ? run_titles : titles);
	grid.is_text[grid.columns - 1] = true;
	/* In a narrow window what varies goes first, then what is used. */
	for (unsigned i = 3; i < grid.columns - 1; i++)
		grid.rank[i] = i;
	for (size_t i = 0; i < check->budget->limit_count && shown < ROWS_MAX; i++) {
		if (check->verdicts[i].state != VERDICT_OK)
			continue;
		row_put(&grid, check, i);
		shown++;
	}
	if (shown)
		grid_print(&grid, out, 0);
	grid_fini(&grid);
	if (shown < check->counts[VERDICT_OK])
		lines_put(out, check, STYLE_PLAIN, "and %zu more limits that are ok\n",
			  check->counts[VERDICT_OK] - shown);
}

static void state_put(struct sink *out, const struct budget_check *check, enum verdict_state state)
{
	size_t shown = 0;
	for (size_t i = 0; i < check->budget->limit_count && shown < LIMITS_MAX; i++) {
		if (check->verdicts[check->order[i]].state != state)
			continue;
		limit_put(out, check, check->order[i]);
		shown++;
	}
	if (shown < check->counts[state])
		lines_put(out, check, STYLE_PLAIN, "and %zu more limits that are %s\n", check->counts[state] - shown,
			  verdict_words[state]);
}

static void trace_put(struct sink *out, const struct budget_check *check, const struct action_source *source)
{
	struct text missing = budget_missing(source);
	if (source->table->sample_bytes)
		sink_format(out, "%s is a sample, of one byte in %s: figures are estimates, with two standard errors\n",
			    text_shown(source->path), text_bytes(source->table->sample_bytes).data);
	if (*missing.data)
		sink_format(out, "%s is not complete: %s; %s\n", text_shown(source->path), missing.data,
			    check->takes_incomplete && !check->is_strict
				    ? "limits hold for the calls that it has"
				    : "the check fails (--allow-incomplete takes it)");
}

/* What keeps figures from being exact. */
static void traces_put(struct sink *out, const struct budget_check *check)
{
	struct sink lines;
	sink_to_memory(&lines);
	for (unsigned i = 0; check->baseline && i < check->baseline->source_count; i++)
		trace_put(&lines, check, &check->baseline->sources[i]);
	for (unsigned run = 0; run < check->input->source_count; run++)
		trace_put(&lines, check, &check->input->sources[run]);
	if (check->nameless.path)
		sink_format(&lines,
			    "%s has no names for %s, and others have: stacks are the largest ones, not those that "
			    "grew. xheap symbols %s stores names while the program is the one that was recorded\n",
			    text_shown(check->nameless.path), text_shown(check->nameless.image),
			    text_shown(check->nameless.path));
	char *text = sink_take(&lines, NULL);
	if (*text)
		text_wrap_styled(out, text, &check->input->layout, check->input->is_colored, STYLE_CAVEAT);
	free(text);
}

/* Wrappers, and names that frames of the budget match by their last part. */
static void names_put(struct sink *out, const struct budget_check *check)
{
	const struct action_input *input = check->input;
	struct sink lines;
	size_t shown = 0;
	culled_text(out, input);
	sink_to_memory(&lines);
	for (uint32_t word = 0; word < check->budget->words.count && shown < MATCHES_MAX; word++) {
		size_t count;
		const char **frames = budget_match_last_parts(check->match, action_names(input), word, &count);
		if (count)
			culled_last_parts_text(&lines, &input->layout, budget_word(check->budget, word), frames, count);
		shown += count > 0;
		free(frames);
	}
	char *text = sink_take(&lines, NULL);
	if (*text)
		text_wrap(out, text, &input->layout);
	free(text);
}

void budget_text(const struct budget_check *check, struct sink *out)
{
	traces_put(out, check);
	names_put(out, check);
	for (int state = VERDICT_STATE_COUNT; --state > VERDICT_OK;)
		state_put(out, check, (enum verdict_state)state);
	rows_put(out, check);
	struct sink line;
	size_t count = check->budget->limit_count;
	sink_to_memory(&line);
	sink_format(&line, "%s: %zu limit%s", budget_check_has_failed(check) ? "failed" : "passed", count,
		    count == 1 ? "" : "s");
	for (int state = VERDICT_STATE_COUNT; state-- > 0;)
		if (check->counts[state])
			sink_format(&line, ", %zu %s", check->counts[state], verdict_words[state]);
	/* A limit whose name is mistyped would pass for ever. */
	if (check->counts[VERDICT_UNMATCHED] && !budget_check_has_failed(check))
		sink_text(&line, "; unmatched limits hold nothing, and --strict refuses them");
	char *text = sink_take(&line, NULL);
	lines_put(out, check, STYLE_PLAIN, "%s\n", text);
	free(text);
}
