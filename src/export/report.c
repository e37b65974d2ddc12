/* SPDX-License-Identifier: MIT */
#include "export/report.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/cancel.h"
#include "base/check.h"
#include "base/text.h"
#include "query/by.h"
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
		if (report_is_diff(report))
			diff_rows_make(&part->rows, &part->counts, &report->diff, part->action, part->sort, top);
		else
			action_rows_make(&part->rows, report->diff.input, part->action,
					 &(struct action_choice){.sort = part->sort, .top = top});
	}
	CHECK_VALID(cancel_is_asked(heap_names_cancelled_by(action_names(report->diff.input))) ||
		    report_is_valid(report));
}

static bool part_is_valid(const struct report *report, const struct report_part *part)
{
	const struct diff_counts *counts = &part->counts;
	uint64_t sum = 0;
	for (unsigned i = 0; i < sizeof(counts->states) / sizeof(*counts->states); i++)
		sum += counts->states[i];
	return part->action && (part->sort || !part->action->groups) &&
	       sum == (report_is_diff(report) ? part->rows.memory_count : 0) &&
	       counts->by_offset <= counts->states[DIFF_IN_BOTH] && counts->unchanged <= counts->states[DIFF_IN_BOTH] &&
	       counts->changed_by_sort <= part->rows.count &&
	       action_rows_are_valid(&part->rows, report->diff.input->source_count);
}

bool report_is_valid(const struct report *report)
{
	const struct diff *diff = &report->diff;
	bool is_valid = diff->runs[DIFF_A] && diff->input->source_count == diff->runs[DIFF_A] + diff->runs[DIFF_B] &&
			(report_is_diff(report) || diff->input->source_count == 1);
	for (unsigned i = 0; is_valid && i < diff->input->source_count; i++) {
		const struct action_source *source = &diff->input->sources[i];
		is_valid = source->trace && source->table && source->filter && source->window && source->names;
	}
	for (unsigned i = 0; is_valid && i < report->part_count; i++)
		is_valid = part_is_valid(report, &report->parts[i]);
	return is_valid;
}

void report_fini(struct report *report)
{
	for (unsigned i = 0; i < report->part_count; i++)
		action_rows_fini(&report->parts[i].rows);
}

bool report_is_diff(const struct report *report)
{
	return diff_side_count(&report->diff) > 1;
}

bool report_is_empty(const struct report *report)
{
	for (unsigned i = 0; i < report->part_count; i++)
		if (report->parts[i].rows.count)
			return false;
	return !diff_totals_are_changed(&report->diff);
}

char *report_row_by(const struct report *report, const struct report_part *part, const struct action_row *row)
{
	assert(row->source < report->diff.input->source_count);
	const struct action_source *source = &report->diff.input->sources[row->source];
	return heap_by_text(action_window(source, part->action), source->table, row->by);
}

const struct action_source *report_source(const struct report *report)
{
	assert(report->diff.input->source_count == 1);
	return &report->diff.input->sources[0];
}

bool report_is_sample(const struct report *report)
{
	return report_source(report)->table->sample_bytes > 0;
}

unsigned report_extra_count(const struct report *report, const struct action *action)
{
	return report_is_sample(report) || heap_is_folded(report_source(report)->table) ? 0 : action->extra_count;
}
