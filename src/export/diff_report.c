/* SPDX-License-Identifier: MIT */
#include "export/diff_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "export/collapsed.h"

const char *diff_basis_name(enum diff_basis basis)
{
	static const char *const names[] = {
#define X(id, name) [DIFF_##id] = name,
		DIFF_BASES(X)
#undef X
	};
	return names[basis];
}

const char *diff_side_name(enum diff_side side)
{
	return side == DIFF_A ? "A" : "B";
}

const char *diff_state_name(enum diff_state state)
{
	static const char *const names[] = {[DIFF_IN_BOTH] = "both", [DIFF_IS_NEW] = "new", [DIFF_IS_GONE] = "gone"};
	return names[state];
}

void diff_report_make(struct diff_report *report, uint64_t top)
{
	for (unsigned i = 0; i < report->part_count; i++) {
		struct diff_part *part = &report->parts[i];
		diff_rows_make(&part->rows, &report->diff, part->action, part->sort, top);
	}
}

void diff_report_fini(struct diff_report *report)
{
	for (unsigned i = 0; i < report->part_count; i++)
		diff_rows_fini(&report->parts[i].rows);
}

bool diff_report_is_empty(const struct diff_report *report)
{
	for (unsigned i = 0; i < report->part_count; i++)
		if (report->parts[i].rows.rows.count)
			return false;
	return !diff_totals_are_changed(&report->diff);
}

char *diff_row_by(const struct diff_report *report, const struct diff_part *part, const struct action_row *row)
{
	const struct action_source *source = &report->diff.input->sources[row->source];
	return heap_by_text(action_window(source, part->action), source->table, row->by);
}

struct text diff_text_amount(enum action_number number, long double amount)
{
	const uint64_t rounded = (uint64_t)(fabsl(amount) + 0.5L);
	return diff_is_size(number) ? text_bytes(rounded) : text_count(rounded);
}

struct text diff_text_percent(const struct diff_change *change)
{
	struct text text = {""};
	double percent = diff_percent(change);
	if (change->change == 0 || isinf(percent))
		return text;
	snprintf(text.data, sizeof(text.data), fabs(percent) < 1000 ? "%+.1f %%" : "%+.0f %%", percent);
	return text;
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
