/* SPDX-License-Identifier: MIT */
#include "action/report/early_end.h"

#include <inttypes.h>

#include "trace/gap_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum { PROCESS_LINES_MAX = 10 };

static bool is_of_recording(const struct trace_early_end *end)
{
	return end->process == TRACE_NONE;
}

/* Rows of one recording have one time; rows of another one, in a merged trace, have another. */
static bool is_same_recording(const struct trace_early_end *one, const struct trace_early_end *other)
{
	return one->time_ns == other->time_ns;
}

const struct trace_early_end *early_end_first(const struct trace_dictionary *dictionary)
{
	const struct trace_early_end *first = NULL;
	for (uint32_t i = 0; i < dictionary->early_end_count; i++)
		if (is_of_recording(&dictionary->early_ends[i]) &&
		    (!first || dictionary->early_ends[i].time_ns < first->time_ns))
			first = &dictionary->early_ends[i];
	return first;
}

static uint64_t calls_of(const struct trace_dictionary *dictionary, const struct trace_early_end *end)
{
	uint64_t calls = 0;
	for (uint32_t i = 0; i < dictionary->early_end_count; i++)
		if (is_same_recording(&dictionary->early_ends[i], end))
			calls += dictionary->early_ends[i].calls;
	return calls;
}

static void text_processes(struct sink *out, const struct trace_dictionary *dictionary,
			   const struct trace_early_end *end, const char *lead)
{
	uint32_t shown = 0, more = 0;
	for (uint32_t i = 0; i < dictionary->early_end_count; i++) {
		const struct trace_early_end *row = &dictionary->early_ends[i];
		if (is_of_recording(row) || !is_same_recording(row, end) || !row->calls)
			continue;
		if (shown == PROCESS_LINES_MAX)
			more++;
		else if (++shown)
			sink_format(out, "%s  %s calls after that in process %s\n", lead, text_count(row->calls).data,
				    text_pid(dictionary->processes[row->process].pid).data);
	}
	if (more)
		sink_format(out, "%s  and calls in %" PRIu32 " more processes\n", lead, more);
}

void early_end_text(struct sink *out, const struct trace_dictionary *dictionary, const char *lead)
{
	for (uint32_t i = 0; i < dictionary->early_end_count; i++) {
		const struct trace_early_end *end = &dictionary->early_ends[i];
		if (!is_of_recording(end))
			continue;
		sink_format(out, "%srecording ended at %s: %s; %s later calls were not recorded\n", lead,
			    text_duration(end->time_ns).data, text_shown(end->reason),
			    text_count(calls_of(dictionary, end)).data);
		text_processes(out, dictionary, end, lead);
	}
}

static void json_processes(struct json *json, const struct trace_dictionary *dictionary,
			   const struct trace_early_end *end)
{
	json_begin_array(json, "processes");
	for (uint32_t i = 0; i < dictionary->early_end_count; i++) {
		const struct trace_early_end *row = &dictionary->early_ends[i];
		if (is_of_recording(row) || !is_same_recording(row, end))
			continue;
		json_begin_object(json, NULL);
		json_count(json, "process", row->process);
		if (dictionary->processes[row->process].pid)
			json_count(json, "pid", dictionary->processes[row->process].pid);
		json_count(json, "calls", row->calls);
		json_end_object(json);
	}
	json_end_array(json);
}

void early_end_json(struct json *json, const struct trace_dictionary *dictionary)
{
	if (!early_end_first(dictionary))
		return;
	json_begin_array(json, "ended_early");
	for (uint32_t i = 0; i < dictionary->early_end_count; i++) {
		const struct trace_early_end *end = &dictionary->early_ends[i];
		if (!is_of_recording(end))
			continue;
		json_begin_object(json, NULL);
		json_time(json, "at_us", end->time_ns);
		json_text(json, "reason", end->reason);
		json_count(json, "calls_after", calls_of(dictionary, end));
		json_processes(json, dictionary, end);
		json_end_object(json);
	}
	json_end_array(json);
}

bool early_end_has(const struct trace_dictionary *dictionary, uint32_t process)
{
	for (uint32_t i = 0; i < dictionary->early_end_count; i++)
		if (dictionary->early_ends[i].process == process)
			return true;
	return false;
}
