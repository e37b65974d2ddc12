/* SPDX-License-Identifier: MIT */
#include "export/diff_report.h"

#include <stdlib.h>

#include "base/memory.h"
#include "export/collapsed.h"

void diff_report_make(struct diff_report *report, uint64_t top)
{
	for (unsigned i = 0; i < report->part_count; i++) {
		struct diff_part *part = &report->parts[i];
		diff_rows_make(&part->rows, &part->counts, &report->diff, part->action, part->sort, top);
	}
}

void diff_report_fini(struct diff_report *report)
{
	for (unsigned i = 0; i < report->part_count; i++)
		action_rows_fini(&report->parts[i].rows);
}

bool diff_report_is_empty(const struct diff_report *report)
{
	for (unsigned i = 0; i < report->part_count; i++)
		if (report->parts[i].rows.count)
			return false;
	return !diff_totals_are_changed(&report->diff);
}

char *diff_row_by(const struct diff_report *report, const struct diff_part *part, const struct action_row *row)
{
	const struct action_source *source = &report->diff.input->sources[row->source];
	return heap_by_text(action_window(source, part->action), source->table, row->by);
}

static void diff_folded(const struct diff_report *report, struct sink *out)
{
	const struct diff *diff = &report->diff;
	struct collapsed_side *sides = memory_zeroed(diff->input->source_count, sizeof(*sides));
	for (unsigned i = 0; i < diff->input->source_count; i++) {
		const unsigned side = i >= diff->runs[DIFF_A];
		sides[i] = (struct collapsed_side){side, (diff->scales ? diff->scales[i] : 1) / diff->runs[side]};
	}
	const struct collapsed_choice choice = {.number = action_sort_number(report->parts[0].sort),
						.is_reversed = report->is_reversed,
						.sides = sides};
	collapsed_write(diff->input, &choice, out);
	free(sides);
}

void diff_report_write(const struct diff_report *report, enum report_format format, struct sink *out)
{
	static void (*const writers[])(const struct diff_report *, struct sink *) = {diff_text, diff_csv, diff_json,
										     diff_folded};
	writers[format](report, out);
}
