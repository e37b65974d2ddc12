/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/memory.h"
#include "export/collapsed.h"
#include "export/report.h"

static void report_folded(const struct report *report, struct sink *out)
{
	const struct diff *diff = &report->diff;
	struct collapsed_side *sides = memory_zeroed(diff->input->source_count, sizeof(*sides));
	for (unsigned i = 0; i < diff->input->source_count; i++) {
		const unsigned side = i >= diff->runs[DIFF_A];
		sides[i] = (struct collapsed_side){side, (diff->scales ? diff->scales[i] : 1) / diff->runs[side]};
	}
	const struct collapsed_choice choice = {.number = action_sort_number(report->parts[0].sort),
						.is_reversed = report->is_reversed,
						.columns = diff_side_count(diff),
						.sides = sides};
	collapsed_write(diff->input, &choice, out);
	free(sides);
}

void report_write(const struct report *report, enum report_format format, struct sink *out)
{
	static void (*const writers[])(const struct report *, struct sink *) = {report_text, report_csv, report_json,
										report_folded};
	writers[format](report, out);
}
