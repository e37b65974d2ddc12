/* SPDX-License-Identifier: MIT */
#include "action/report/report_columns.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "query/by.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

const char *const report_number_names[ACTION_NUMBER_COUNT] = {
#define X(name, key, title) #name,
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

uint64_t report_number_at(const struct heap_numbers *from, enum action_number number)
{
	switch (number) {
#define X(name, key, title) \
	case ACTION_NUMBER_##name: \
		return from->name;
		ACTION_NUMBERS(X)
#undef X
	case ACTION_NUMBER_COUNT:
		break;
	}
	return 0;
}

double report_error_at(const struct heap_numbers *from, int i)
{
	assert(i >= 0 && i < REPORT_ERRORS);
	double variance;
	memcpy(&variance, (const char *)from + report_errors[i].variance, sizeof(variance));
	return sqrt(variance);
}

bool report_source_has_peak(const struct action_source *source)
{
	return source->window->peak_from_ns <= source->window->range.to_ns;
}

bool report_source_has_number(const struct action_source *source, enum action_number number)
{
	const bool is_of_peak = number == ACTION_NUMBER_peak_count || number == ACTION_NUMBER_peak_bytes;
	if (is_of_peak && !report_source_has_peak(source))
		return false;
	return !source->table->sample_bytes || number != ACTION_NUMBER_temporary_count;
}

struct text report_count(const struct action_source *source, uint64_t count)
{
	struct text text;
	snprintf(text.data, sizeof(text.data), "%s%.40s", source->table->sample_bytes && count ? "~" : "",
		 text_count(count).data);
	return text;
}

struct text report_bytes(const struct action_source *source, uint64_t bytes)
{
	struct text text;
	snprintf(text.data, sizeof(text.data), "%s%.40s", source->table->sample_bytes && bytes ? "~" : "",
		 text_bytes(bytes).data);
	return text;
}

uint32_t report_thread_count(const struct trace_dictionary *dictionary)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < dictionary->thread_count; i++)
		count += dictionary->threads[i].tid != TRACE_TID_NONE;
	return count;
}
