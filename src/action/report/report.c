/* SPDX-License-Identifier: MIT */
#include "action/report/report.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "action/report/collapsed.h"
#include "action/report/report_columns.h"
#include "base/text.h"
#include "query/folded.h"

const struct report_number report_numbers[ACTION_NUMBER_COUNT] = {
#define X(name, key, title) {#name, offsetof(struct heap_numbers, name)},
	ACTION_NUMBERS(X)
#undef X
};

const struct report_error report_errors[REPORT_ERRORS] = {
#define ERROR(part, unit) \
	{ \
#part "_" #unit "_error", ACTION_NUMBER_##part##_##unit, \
			offsetof(struct heap_numbers, part##_variance.unit) \
	}
	ERROR(total, count),       ERROR(total, bytes), ERROR(outstanding, count),
	ERROR(outstanding, bytes), ERROR(peak, count),  ERROR(peak, bytes),
};

const struct report_by_id report_by_ids[REPORT_BY_IDS] = {
	{"process_id", heap_by_process, 1 << HEAP_BY_PROCESS | 1 << HEAP_BY_THREAD | 1 << HEAP_BY_HEAP},
	{"thread_id", heap_by_thread, 1 << HEAP_BY_THREAD},
};

uint64_t report_number_at(const struct heap_numbers *from, size_t offset)
{
	uint64_t number;
	memcpy(&number, (const char *)from + offset, sizeof(number));
	return number;
}

double report_error_at(const struct heap_numbers *from, int i)
{
	double variance;
	memcpy(&variance, (const char *)from + report_errors[i].variance, sizeof(variance));
	return sqrt(variance);
}

bool report_is_sample(const struct report *report)
{
	return report_source(report)->table->sample_bytes > 0;
}

static bool source_has_peak(const struct action_source *source)
{
	return source->window->peak_from_ns <= source->window->range.to_ns;
}

bool report_has_peak(const struct report *report)
{
	return source_has_peak(report_source(report));
}

bool report_source_has_number(const struct action_source *source, size_t offset)
{
	bool is_of_peak = offset == offsetof(struct heap_numbers, peak_count) ||
			  offset == offsetof(struct heap_numbers, peak_bytes);
	if (is_of_peak && !source_has_peak(source))
		return false;
	return !source->table->sample_bytes || offset != offsetof(struct heap_numbers, temporary_count);
}

bool report_has_number(const struct report *report, size_t offset)
{
	return report_source_has_number(report_source(report), offset);
}

unsigned report_extra_count(const struct report *report, const struct action *action)
{
	return report_is_sample(report) || heap_is_folded(report_source(report)->table) ? 0 : action->extra_count;
}

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

const struct action_source *report_source(const struct report *report)
{
	assert(report->input->source_count == 1);
	return &report->input->sources[0];
}

const struct heap_window *report_window(const struct report *report, const struct report_part *part)
{
	return action_window(report_source(report), part->action);
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
