/* SPDX-License-Identifier: MIT */
#include "export/export.h"

#include "export/block_times.h"
#include "export/collapsed.h"

const struct export_format export_formats[REPORT_FORMAT_COUNT] = {
#define X(id, name, flags, writer) {name, flags, writer, NULL, NULL},
	REPORT_FORMATS(X)
#undef X
#define X(id, name, flags, writer, tool, lacks) {name, flags, writer, tool, lacks},
		TOOL_FORMATS(X)
#undef X
};

void export_prepare(struct report *report, enum report_format format, uint64_t top)
{
	if (export_formats[format].flags & EXPORT_EACH_BLOCK)
		export_blocks_check(report);
	if (export_formats[format].flags & EXPORT_ALL_STACKS)
		collapsed_name(report->diff.input);
	else
		report_make(report, top);
}
