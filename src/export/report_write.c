/* SPDX-License-Identifier: MIT */
#include "export/collapsed.h"
#include "export/report.h"

static void report_folded(const struct report *report, struct sink *out)
{
	const struct collapsed_choice choice = {.number = action_sort_number(report->parts[0].sort),
						.is_reversed = report->is_reversed};
	collapsed_write(report->input, &choice, out);
}

void report_write(const struct report *report, enum report_format format, struct sink *out)
{
	static void (*const writers[])(const struct report *, struct sink *) = {report_text, report_csv, report_json,
										report_folded};
	writers[format](report, out);
}
