/* SPDX-License-Identifier: MIT */
#include "action/summary/forecast.h"

#include "query/resident.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

/* The growth of a process, in bytes a second. */
static struct growth_rate rate_of(const struct survey *survey, uint32_t process)
{
	struct growth_rate sum = {0};
	for (size_t i = 0; i < survey->grows_count; i++) {
		const struct survey_growth *own = &survey->growths[i];
		if (own->process != process)
			continue;
		sum.mean += own->growth.bytes.mean;
		sum.low += own->growth.bytes.low;
		sum.high += own->growth.bytes.high;
	}
	return sum;
}

/* Return the last sample of a process up to a time; NULL: there is none. */
static const struct trace_sample *last_sample(const struct trace_dictionary *dictionary, uint32_t process,
					      int64_t until_ns)
{
	for (uint32_t i = dictionary->sample_count; i-- > 0;)
		if (dictionary->samples[i].process == process && dictionary->samples[i].time_ns <= until_ns)
			return &dictionary->samples[i];
	return NULL;
}

/* Up to when the growth of a process that has ended is judged. */
static int64_t judged_until(const struct survey *survey, const struct trace_dictionary *dictionary, uint32_t process)
{
	for (size_t i = 0; i < survey->grows_count; i++)
		if (survey->growths[i].process == process && dictionary->processes[process].end != TRACE_END_OPEN)
			return survey->growths[i].clock.to_ns;
	return INT64_MAX;
}

/* The nearest limit of one process. */
static struct forecast forecast_process(const struct survey *survey, const struct trace_dictionary *dictionary,
					uint32_t process)
{
	const struct trace_limit *limit = resident_limit(dictionary, process);
	const struct growth_rate rate = rate_of(survey, process);
	/* While it exits it gives its memory back. */
	const struct trace_sample *sample = last_sample(dictionary, process, judged_until(survey, dictionary, process));
	struct forecast forecast = {.process = process};
	if (!limit || !sample || !sample->resident_bytes || rate.low <= 0)
		return forecast;
	forecast.used_bytes = sample->resident_bytes;
	forecast.used_ns = sample->time_ns;
	const struct {
		const char *key, *words;
		uint64_t bytes;
	} rows[] = {{"cgroup", "the memory limit of its cgroup", limit->cgroup_bytes},
		    {"address_space", "RLIMIT_AS", limit->address_space_bytes},
		    {"data", "RLIMIT_DATA", limit->data_bytes},
		    {"machine", "the machine's memory", limit->machine_bytes}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].bytes == TRACE_LIMIT_NONE || (forecast.limit && rows[i].bytes >= forecast.limit_bytes))
			continue;
		forecast.limit = rows[i].key;
		forecast.words = rows[i].words;
		forecast.limit_bytes = rows[i].bytes;
	}
	if (!forecast.limit)
		return forecast;
	double left =
		forecast.limit_bytes > forecast.used_bytes ? (double)(forecast.limit_bytes - forecast.used_bytes) : 0;
	forecast.seconds = left / rate.mean;
	forecast.least_seconds = left / rate.high;
	forecast.most_seconds = left / rate.low;
	return forecast;
}

struct forecast forecast_make(const struct survey *survey, const struct trace_dictionary *dictionary)
{
	struct forecast nearest = {.limit = NULL};
	for (size_t i = 0; i < survey->grows_count; i++) {
		struct forecast own = forecast_process(survey, dictionary, survey->growths[i].process);
		if (own.limit && (!nearest.limit || own.seconds < nearest.seconds))
			nearest = own;
	}
	return nearest;
}
