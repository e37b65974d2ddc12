/* SPDX-License-Identifier: MIT */
#include "action/report/ends.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

struct text ends_text(const struct trace_process *process)
{
	struct text text;
	const char *name = process->end == TRACE_END_SIGNAL ? sigabbrev_np(process->end_status) : NULL;
	if (name)
		snprintf(text.data, sizeof(text.data), "SIG%s", name);
	else if (process->end == TRACE_END_EXIT || process->end == TRACE_END_SIGNAL)
		snprintf(text.data, sizeof(text.data), "%s %" PRId32, trace_end_word(process), process->end_status);
	else
		snprintf(text.data, sizeof(text.data), "%s", trace_end_word(process));
	return text;
}

/* The last row of a process holds. */
static const struct trace_cause *cause_of(const struct trace_dictionary *dictionary, uint32_t process)
{
	if (dictionary->processes[process].end != TRACE_END_SIGNAL)
		return NULL;
	for (uint32_t i = dictionary->cause_count; i-- > 0;)
		if (dictionary->causes[i].process == process)
			return &dictionary->causes[i];
	return NULL;
}

static bool is_some(uint64_t count)
{
	return count != TRACE_CAUSE_UNKNOWN && count;
}

/* Return the cause of an end by a signal, as a word: "memory_limit" (of its cgroup), "out_of_memory"; NULL: none is
   known. The kernel counts by cgroup, or for the machine: with several ends at a time it may be that of another. */
static const char *cause_word(const struct trace_dictionary *dictionary, uint32_t process)
{
	const struct trace_cause *cause = cause_of(dictionary, process);
	if (!cause || dictionary->processes[process].end_status != SIGKILL)
		return NULL;
	/* Where the kernel counts by cgroup, kills elsewhere are those of others. */
	if (cause->cgroup_kills != TRACE_CAUSE_UNKNOWN)
		return !is_some(cause->cgroup_kills) ? NULL
		       : is_some(cause->cgroup_hits) ? "memory_limit"
						     : "out_of_memory";
	return is_some(cause->machine_kills) ? "out_of_memory" : NULL;
}

bool ends_explain(const struct trace_dictionary *dictionary, uint32_t process, const char *lead, struct sink *out)
{
	const struct trace_cause *cause = cause_of(dictionary, process);
	const char *word = cause_word(dictionary, process);
	if (word) {
		bool is_group = is_some(cause->cgroup_kills);
		uint64_t kills = is_group ? cause->cgroup_kills : cause->machine_kills;
		sink_format(out, "%sfor want of memory, the kernel killed %s process%s of %s", lead,
			    text_count(kills).data, kills == 1 ? "" : "es", is_group ? "its cgroup" : "the machine");
		if (is_some(cause->cgroup_hits))
			sink_text(out, ", whose memory limit was reached");
		return true;
	}
	if (cause && cause->has_core) {
		sink_format(out, "%sa core was dumped", lead);
		return true;
	}
	if (cause && (cause->cgroup_kills == 0 || cause->machine_kills == 0)) {
		sink_format(out, "%sthe kernel killed no process for want of memory", lead);
		return true;
	}
	return false;
}

void ends_json(struct json *json, const struct trace_dictionary *dictionary, uint32_t process)
{
	const struct trace_process *row = &dictionary->processes[process];
	const struct trace_cause *cause = cause_of(dictionary, process);
	json_text(json, "end", trace_end_word(row));
	if (row->end == TRACE_END_EXIT)
		json_number(json, "status", row->end_status);
	if (row->end == TRACE_END_SIGNAL)
		json_number(json, "signal", row->end_status);
	if (!cause)
		return;
	json_bool(json, "core_dumped", cause->has_core);
	if (cause_word(dictionary, process))
		json_text(json, "end_cause", cause_word(dictionary, process));
	const struct {
		const char *key;
		uint64_t count;
	} counts[] = {{"cgroup", cause->cgroup_kills},
		      {"cgroup_limit_hits", cause->cgroup_hits},
		      {"machine", cause->machine_kills}};
	json_begin_object(json, "memory_kills");
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		if (counts[i].count != TRACE_CAUSE_UNKNOWN)
			json_count(json, counts[i].key, counts[i].count);
	json_end_object(json);
}

const char *ends_outstanding(const struct trace_dictionary *dictionary)
{
	uint32_t detached = 0;
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		detached += dictionary->processes[i].end == TRACE_END_DETACHED;
	return !detached                               ? "never freed"
	       : detached == dictionary->process_count ? "live at the end"
						       : "not freed by the end";
}

bool ends_are_notable(const struct trace_process *process)
{
	if (trace_process_is_untraced(process) || process->end == TRACE_END_OPEN)
		return false;
	bool has_failed = process->end == TRACE_END_UNKNOWN || (process->end == TRACE_END_EXIT && process->end_status);
	return process->end == TRACE_END_SIGNAL || (process->parent == TRACE_NONE && has_failed);
}
