/* SPDX-License-Identifier: MIT */
/* A report as comma-separated values, of its only action. */
#include <inttypes.h>
#include <stdlib.h>

#include "action/diff/diff_words.h"
#include "action/report/report_columns.h"
#include "base/grid.h"
#include "base/text.h"
#include "export/export.h"
#include "export/report_values.h"
#include "query/by.h"

/* A line, which is the header or a row. */
struct csv_line {
	struct sink *out;
	bool is_header, has_cell;
};

/* Begin the next column. In the header it gets its name, and `key` behind it; in a row return true: the cell is to be
   written. */
static bool column(struct csv_line *line, const char *name, const char *key)
{
	if (line->has_cell)
		sink_put(line->out, ',');
	line->has_cell = true;
	if (line->is_header)
		sink_format(line->out, *key ? "%s_%s" : "%s", name, key);
	return !line->is_header;
}

static void count_column(struct csv_line *line, const char *name, uint64_t count)
{
	if (column(line, name, ""))
		sink_format(line->out, "%" PRIu64, count);
}

static void time_column(struct csv_line *line, const char *name, bool is_known, int64_t time_ns)
{
	if (column(line, name, "") && is_known)
		sink_text(line->out, text_microseconds(time_ns).data);
}

/* row NULL: of the totals. */
static void numbers(struct csv_line *line, const struct report *report, const struct action_row *row)
{
	for (int i = 0; i < ACTION_NUMBER_COUNT; i++) {
		const enum action_number number = (enum action_number)i;
		const bool is_known = diff_has_number(&report->diff, number);
		const struct diff_change change = report_change(report, row, number);
		for (const struct report_value *value = report_values; value->key; value++)
			if (report_has_value(report, value) && column(line, report_number_names[i], value->key) &&
			    is_known)
				sink_text(line->out, text_decimal(value->of(&change)).data);
	}
}

static void errors(struct csv_line *line, const struct heap_numbers *from)
{
	count_column(line, "recorded_count", from->recorded_count);
	for (int i = 0; i < REPORT_ERRORS; i++)
		if (column(line, report_errors[i].name, ""))
			sink_format(line->out, "%.0f", report_error_at(from, i));
}

/* What rows of one side have beside the numbers that a diff compares. */
static void details(struct csv_line *line, const struct report *report, const struct action *action,
		    const struct action_figures *figures)
{
	const bool is_known = figures->numbers.total_count > 0;
	for (unsigned i = 0; i < report_extra_count(report, action); i++)
		if (action->extra[i].kind != EXTRA_FACTOR)
			count_column(line, action->extra[i].name, figures->extra[i]);
		else if (column(line, action->extra[i].name, ""))
			sink_text(line->out, text_thousandths(figures->extra[i]).data);
	if (action->is_inclusive)
		return;
	time_column(line, "lifetime_min_us", is_known, figures->lifetime_min);
	time_column(line, "lifetime_median_us", is_known, figures->lifetime_median);
	time_column(line, "lifetime_max_us", is_known, figures->lifetime_max);
	count_column(line, "threads", figures->threads);
	count_column(line, "processes", figures->processes);
}

/* The label of the row's split; of one side, also its ids. */
static void split(struct csv_line *line, const struct report *report, const struct report_part *part,
		  const struct action_row *row)
{
	const struct action_source *source = report->diff.input->sources;
	const enum heap_by by = source->window->by;
	if (by == HEAP_BY_NONE)
		return;
	if (column(line, heap_by_name(by), "")) {
		char *label = report_row_by(report, part, row);
		csv_field(line->out, label);
		free(label);
	}
	for (int i = 0; i < REPORT_BY_IDS && !report_is_diff(report); i++)
		if (report_by_ids[i].splits & 1u << by && column(line, report_by_ids[i].name, "")) {
			uint32_t id = report_by_ids[i].of(source->window, source->table, row->by);
			if (id != HEAP_NONE)
				sink_format(line->out, "%" PRIu32, id);
		}
}

/* row NULL: the header. */
static void row_line(struct sink *out, const struct report *report, const struct report_part *part,
		     const struct action_row *row)
{
	static const struct action_figures none;
	const struct action_figures *figures = row ? row->figures : &none;
	struct csv_line line = {.out = out, .is_header = !row};
	const bool is_diff = report_is_diff(report);
	if (is_diff && column(&line, "state", ""))
		sink_text(out, diff_state_name(diff_row_state(&report->diff, row)));
	numbers(&line, report, row);
	if (!is_diff && report_is_sample(report))
		errors(&line, &figures->numbers);
	if (!is_diff)
		details(&line, report, part->action, figures);
	if (part->action->parent)
		count_column(&line, "depth", row ? row->depth : 0);
	split(&line, report, part, row);
	if (column(&line, part->action->label, ""))
		csv_field(out, row->text);
	sink_put(out, '\n');
}

static void totals_line(struct sink *out, bool is_header, const struct report *report)
{
	struct csv_line line = {.out = out, .is_header = is_header};
	const bool is_diff = report_is_diff(report);
	const struct heap_window *window = report->diff.input->sources->window;
	if (is_diff && column(&line, "state", ""))
		sink_text(out, diff_state_name(DIFF_IN_BOTH));
	numbers(&line, report, NULL);
	if (!is_diff && report_is_sample(report))
		errors(&line, &window->totals);
	if (!is_diff)
		time_column(&line, "peak_at_us", report_source_has_peak(report_source(report)), window->peak_at_ns);
	sink_put(out, '\n');
}

void report_csv(const struct report *report, struct sink *out)
{
	const struct report_part *part = &report->parts[0];
	if (!part->action->groups) {
		totals_line(out, true, report);
		totals_line(out, false, report);
		return;
	}
	row_line(out, report, part, NULL);
	for (size_t i = 0; i < part->rows.shown; i++)
		row_line(out, report, part, part->rows.rows[i]);
}
