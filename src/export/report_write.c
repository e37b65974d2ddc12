/* SPDX-License-Identifier: MIT */
#include "export/collapsed.h"

void report_write(const struct report *report, enum report_format format, struct sink *out)
{
	static void (*const writers[])(const struct report *, struct sink *) = {report_text, report_csv, report_json,
										report_collapsed};
	writers[format](report, out);
}
