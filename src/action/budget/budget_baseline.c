/* SPDX-License-Identifier: MIT */
#include "action/budget/budget_baseline.h"

#include <stdlib.h>

#include "action/actions/action_table.h"
#include "action/budget/budget_update.h"
#include "action/report/report_columns.h"
#include "base/memory.h"
#include "base/text.h"

/* The limit of a metric: the greatest figure of the baseline's runs, at least `least`. */
static void limit_put(const struct budget_baseline *baseline, const struct budget_metric *metric,
		      const uint64_t *figures, uint64_t least, struct sink *out)
{
	uint64_t most = figures[baseline->first], fewest = most;
	for (unsigned i = baseline->first; i < baseline->first + baseline->run_count; i++) {
		most = figures[i] > most ? figures[i] : most;
		fewest = figures[i] < fewest ? figures[i] : fewest;
	}
	const struct budget_limit limit = {.metric = metric};
	bool is_outstanding = metric->number == ACTION_NUMBER_outstanding_bytes ||
			      metric->number == ACTION_NUMBER_outstanding_count;
	struct budget_change change = {.value = most > least ? most : least,
				       .tolerance = is_outstanding ? baseline->outstanding_tolerance
								   : baseline->tolerance};
	change.variation = budget_share_for(change.value, most - fewest);
	sink_text(out, " <= ");
	budget_change_put(out, &limit, &change);
	sink_put(out, '\n');
}

/* What the totals are compared by: those that a sample has, too, if one of the sources is one. */
static bool is_compared(const struct action_input *input, const struct budget_metric *metric)
{
	for (unsigned i = 0; i < input->source_count; i++)
		if (!report_source_has_number(&input->sources[i], metric->number))
			return false;
	return metric->number != ACTION_NUMBER_peak_count && metric->number != ACTION_NUMBER_realloc_count;
}

static void totals_put(const struct budget_baseline *baseline, const struct action_input *input, uint64_t *figures,
		       struct sink *out)
{
	for (int m = 0; m < BUDGET_METRIC_COUNT; m++) {
		const struct budget_metric *metric = &budget_metrics[m];
		if (!is_compared(input, metric))
			continue;
		for (unsigned i = baseline->first; i < baseline->first + baseline->run_count; i++)
			figures[i] = report_number_at(&input->sources[i].window->totals, metric->number);
		sink_text(out, metric->word);
		limit_put(baseline, metric, figures, 0, out);
	}
}

/* As a whole name, between quotes. */
static void name_put(struct sink *out, const char *name)
{
	sink_text(out, "\"=");
	for (; *name; name++) {
		if (*name == '"' || *name == '\\')
			sink_put(out, '\\');
		sink_put(out, *name);
	}
	sink_put(out, '"');
}

static void function_put(const struct budget_baseline *baseline, const struct action_input *input,
			 const struct action_row *row, const struct budget_metric *metric, uint64_t *figures,
			 struct sink *out)
{
	uint64_t most = 0;
	for (unsigned i = 0; i < input->source_count; i++) {
		figures[i] = report_number_at(&row->figures[i].numbers, metric->number);
		most = figures[i] > most ? figures[i] : most;
	}
	if (most < baseline->least_bytes)
		return;
	sink_format(out, "%s self ", metric->word);
	name_put(out, row->text);
	limit_put(baseline, metric, figures, baseline->least_bytes, out);
}

static void functions_put(const struct budget_baseline *baseline, struct action_input *input, uint64_t *figures,
			  struct sink *out)
{
	struct action_rows rows;
	const struct action_choice choice = {
		.sort = action_sort_by(ACTION_NUMBER_total_bytes), .top = UINT64_MAX, .is_brief = true};
	action_rows_make(&rows, input, &action_frames, &choice);
	for (size_t i = 0; i < rows.shown; i++) {
		const struct action_row *row = rows.rows[i];
		const struct heap_name *name = row->group ? heap_names_name(action_names(input), row->group - 1) : NULL;
		for (int m = 0; name && name->symbol && text_shown(row->text) == row->text && m < BUDGET_METRIC_COUNT;
		     m++)
			if (budget_metrics[m].number == ACTION_NUMBER_total_bytes ||
			    budget_metrics[m].number == ACTION_NUMBER_outstanding_bytes)
				function_put(baseline, input, row, &budget_metrics[m], figures, out);
	}
	action_rows_fini(&rows);
}

void budget_baseline_put(const struct budget_baseline *baseline, struct action_input *input, struct sink *out)
{
	struct heap_window *windows = memory_zeroed(input->source_count, sizeof(*windows));
	uint64_t *figures = memory_zeroed(input->source_count, sizeof(*figures));
	for (unsigned i = 0; i < input->source_count; i++) {
		struct action_source *source = &input->sources[i];
		heap_window_make(&windows[i], source->table, source->filter,
				 (struct heap_range){0, source->table->duration_ns}, HEAP_BY_NONE);
		source->window = &windows[i];
	}
	totals_put(baseline, input, figures, out);
	if (baseline->is_by_function)
		functions_put(baseline, input, figures, out);
	for (unsigned i = 0; i < input->source_count; i++) {
		input->sources[i].window = NULL;
		heap_window_fini(&windows[i]);
	}
	free(windows);
	free(figures);
}
