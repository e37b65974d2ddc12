/* SPDX-License-Identifier: MIT */
#include "action/report/report_columns.h"

#include <assert.h>
#include <math.h>
#include <string.h>

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

const struct action_source *report_source(const struct report *report)
{
	assert(report->input->source_count == 1);
	return &report->input->sources[0];
}

const struct heap_window *report_window(const struct report *report, const struct report_part *part)
{
	return action_window(report_source(report), part->action);
}
