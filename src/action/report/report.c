/* SPDX-License-Identifier: MIT */
#include "action/report/report.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "action/report/collapsed.h"
#include "action/report/report_columns.h"
#include "base/text.h"
#include "query/folded.h"

int report_check(const struct report_part *parts, unsigned count, const struct heap_table *table,
		 const struct heap_filter *filter, struct heap_range range, enum heap_by by, struct diag *diag)
{
	assert(count > 0);
	struct text until = text_duration(heap_folded_until_ns(table));
	bool knows_peak = heap_folded_knows_peak(table, filter, range);
	for (unsigned i = 0; i < count && heap_is_folded(table); i++) {
		const char *key = parts[i].sort ? parts[i].sort->key : "";
		if (parts[i].action->needs_each_block)
			return diag_fail(diag, ENOTSUP,
					 "-%s is not known up to %s: blocks that had ended by then are folded into "
					 "sums; -stacks src tells which stacks reallocate",
					 parts[i].action->name, until.data);
		if (!knows_peak && (!strcmp(key, "sp") || !strcmp(key, "spc")))
			return diag_fail(diag, ENOTSUP,
					 "%s: what of this question was live up to %s is not known: blocks that had "
					 "ended by then are folded into sums;"
					 " ask without filters, or for a -range behind that time",
					 key, until.data);
	}
	return heap_folded_check(table, filter, range, by, diag);
}

void report_make(struct report *report, uint64_t top)
{
	for (unsigned i = 0; i < report->part_count; i++) {
		struct report_part *part = &report->parts[i];
		action_rows_make(&part->rows, report->input, part->action,
				 &(struct action_choice){.sort = part->sort, .top = top});
	}
}

void report_fini(struct report *report)
{
	for (unsigned i = 0; i < report->part_count; i++)
		action_rows_fini(&report->parts[i].rows);
}

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

uint32_t report_thread_count(const struct trace_dictionary *dictionary)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < dictionary->thread_count; i++)
		count += dictionary->threads[i].tid != TRACE_TID_NONE;
	return count;
}
