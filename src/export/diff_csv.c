/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "action/diff/diff_words.h"
#include "action/report/report_columns.h"
#include "base/grid.h"
#include "base/text.h"
#include "export/report.h"

/* The columns of each number: of all reports, and of those with runs or samples only. */
enum column_kind { COLUMN_ALWAYS, COLUMN_OF_RUNS, COLUMN_OF_ESTIMATES };

#define COLUMNS(X) \
	X("_a", ALWAYS, change->sides[DIFF_A].mean) \
	X("_b", ALWAYS, change->sides[DIFF_B].mean) \
	X("_change", ALWAYS, change->change) \
	X("_a_min", OF_RUNS, change->sides[DIFF_A].min) \
	X("_a_max", OF_RUNS, change->sides[DIFF_A].max) \
	X("_a_deviation", OF_RUNS, change->sides[DIFF_A].deviation) \
	X("_b_min", OF_RUNS, change->sides[DIFF_B].min) \
	X("_b_max", OF_RUNS, change->sides[DIFF_B].max) \
	X("_b_deviation", OF_RUNS, change->sides[DIFF_B].deviation) \
	X("_change_error", OF_ESTIMATES, change->error) \
	X("_in_spread", OF_ESTIMATES, change->is_in_spread)

static bool has_column(const struct report *report, enum column_kind kind)
{
	return kind == COLUMN_ALWAYS || diff_has_runs(&report->diff) ||
	       (kind == COLUMN_OF_ESTIMATES && diff_is_sample(&report->diff));
}

static void number_names(const struct report *report, struct sink *out)
{
	for (int i = 0; i < ACTION_NUMBER_COUNT; i++) {
		const char *name = report_numbers[i].name;
#define X(suffix, kind, value) \
	if (has_column(report, COLUMN_##kind)) \
		sink_format(out, ",%s%s", name, suffix);
		COLUMNS(X)
#undef X
	}
}

static void numbers(const struct report *report, const struct action_row *row, struct sink *out)
{
	for (int i = 0; i < ACTION_NUMBER_COUNT; i++) {
		enum action_number number = (enum action_number)i;
		const bool is_known = diff_has_number(&report->diff, number);
		const struct diff_change of = row ? diff_of_row(&report->diff, row, number)
						  : diff_of_totals(&report->diff, number),
					 *change = &of;
#define X(suffix, kind, value) \
	if (has_column(report, COLUMN_##kind)) \
		sink_format(out, ",%s", is_known ? text_decimal(value).data : "");
		COLUMNS(X)
#undef X
	}
}

void diff_csv(const struct report *report, struct sink *out)
{
	const struct report_part *part = &report->parts[0];
	const enum heap_by by = report->diff.input->sources[0].window->by;
	sink_text(out, "state");
	number_names(report, out);
	if (!part->action->groups) {
		sink_text(out, "\nboth");
		numbers(report, NULL, out);
		sink_put(out, '\n');
		return;
	}
	sink_format(out, "%s%s%s,%s\n", part->action->parent ? ",depth" : "", by != HEAP_BY_NONE ? "," : "",
		    heap_by_name(by), part->action->label);
	for (size_t i = 0; i < part->rows.shown; i++) {
		const struct action_row *row = part->rows.rows[i];
		sink_text(out, diff_state_name(diff_row_state(&report->diff, row)));
		numbers(report, row, out);
		if (part->action->parent)
			sink_format(out, ",%u", (unsigned)row->depth);
		if (by != HEAP_BY_NONE) {
			char *label = report_row_by(report, part, row);
			sink_put(out, ',');
			csv_field(out, label);
			free(label);
		}
		sink_put(out, ',');
		csv_field(out, row->text);
		sink_put(out, '\n');
	}
}
