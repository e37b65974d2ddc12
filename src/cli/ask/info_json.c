/* SPDX-License-Identifier: MIT */
/* The facts about a trace as JSON: docs/schema/info.json. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "action/report/early_end.h"
#include "action/report/ends.h"
#include "action/report/losses.h"
#include "action/report/report_columns.h"
#include "base/text.h"
#include "cli/ask/info.h"

/* The largest sample of a process, and the largest one that was read by kind of mapping. */
static void json_resident(struct json *json, const struct resident *resident)
{
	char key[64];
	if (!resident->largest)
		return;
	json_begin_object(json, "resident");
	json_count(json, "max_bytes", resident->largest->resident_bytes);
	json_time(json, "max_at_us", resident->largest->time_ns);
	if (resident->split) {
		json_count(json, "read_bytes", resident->bytes);
		json_time(json, "read_at_us", resident->split->time_ns);
		json_count(json, "mappings", resident->split->mapping_count);
		for (unsigned kind = 0; kind < TRACE_MAPPING_KIND_COUNT; kind++) {
			snprintf(key, sizeof(key), "%s_bytes", resident_kind_key(kind));
			json_count(json, key, resident->split->bytes[kind]);
		}
	}
	json_end_object(json);
}

/* The limits of a process's memory; only those that there are. */
static void json_limits(struct json *json, const struct trace_dictionary *dictionary, uint32_t process)
{
	const struct trace_limit *limit = resident_limit(dictionary, process);
	if (!limit)
		return;
	const struct {
		const char *key;
		uint64_t bytes;
	} rows[] = {{"address_space_bytes", limit->address_space_bytes},
		    {"data_bytes", limit->data_bytes},
		    {"cgroup_bytes", limit->cgroup_bytes},
		    {"machine_bytes", limit->machine_bytes}};
	json_begin_object(json, "memory_limits");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].bytes != TRACE_LIMIT_NONE)
			json_count(json, rows[i].key, rows[i].bytes);
	json_end_object(json);
}

static void json_process(struct json *json, const struct info *info, uint32_t id)
{
	assert(id < info->dictionary->process_count);
	const struct trace_process *process = &info->dictionary->processes[id];
	json_begin_object(json, NULL);
	json_count(json, "id", id);
	if (process->pid)
		json_count(json, "pid", process->pid);
	if (process->parent != TRACE_NONE)
		json_count(json, "parent", process->parent);
	if (process->forked_from != TRACE_NONE)
		json_count(json, "forked_from", process->forked_from);
	json_count(json, "exec_generation", process->exec_generation);
	json_known_text(json, "image", process->image);
	json_known_text(json, "command", process->command);
	json_time(json, "start_us", process->start_ns);
	if (trace_process_end_is_known(process))
		json_time(json, "end_us", process->end_ns);
	ends_json(json, info->dictionary, id);
	json_known_text(json, "note", process->note);
	if (!trace_process_is_untraced(process)) {
		json_count(json, "threads", info->process_threads[id]);
		json_count(json, "events", info->process_events[id]);
	}
	if (info->table && process->forked_from != TRACE_NONE) {
		json_count(json, "inherited_count", info->table->processes[id].inherited_count);
		json_count(json, "inherited_bytes", info->table->processes[id].inherited_bytes);
	}
	if (info->residents)
		json_resident(json, &info->residents[id]);
	json_limits(json, info->dictionary, id);
	json_end_object(json);
}

static void json_cost(struct json *json, const struct trace_statistics *statistics)
{
	json_begin_object(json, "cost");
	json_count(json, "waits", statistics->waits);
	json_time(json, "wait_us", (int64_t)statistics->wait_ns);
	json_time(json, "logger_cpu_us", (int64_t)statistics->logger_cpu_ns);
	if (statistics->recorder_ns)
		json_time(json, "recorder_us", (int64_t)statistics->recorder_ns);
	json_count(json, "buffers_written", statistics->buffers_written);
	json_count(json, "buffer_size", statistics->buffer_size);
	json_count(json, "peak_buffers", statistics->peak_buffers);
	json_count(json, "suppressed", statistics->suppressed);
	json_end_object(json);
}

static void json_inactive(struct json *json, const struct trace_dictionary *dictionary)
{
	struct inactive_process inactive;
	bool has_any = false;
	for (uint32_t i = 0; i < dictionary->option_count; i++) {
		if (!inactive_read(&inactive, &dictionary->options[i]))
			continue;
		if (!has_any)
			json_begin_array(json, "inactive");
		has_any = true;
		json_begin_object(json, NULL);
		json_number(json, "pid", inactive.pid);
		json_text(json, "command", inactive.command);
		json_count(json, "bytes", inactive.bytes);
		json_count(json, "threads", inactive.threads);
		json_end_object(json);
	}
	if (has_any)
		json_end_array(json);
}

/* The reasons why triggers wrote the file, the oldest first. */
static void json_triggers(struct json *json, const struct trace_dictionary *dictionary)
{
	bool has_any = false;
	for (uint32_t i = 0; i < dictionary->option_count; i++) {
		if (strcmp(dictionary->options[i].name, TRACE_OPTION_TRIGGERED) != 0)
			continue;
		if (!has_any)
			json_begin_array(json, "triggers");
		has_any = true;
		json_text(json, NULL, dictionary->options[i].value);
	}
	if (has_any)
		json_end_array(json);
}

void info_json(const struct info *info, struct sink *out)
{
	const struct trace_dictionary *dictionary = info->dictionary;
	struct json json = {.out = out, .line_depth = 2};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_text(&json, "trace", info->path);
	json_bool(&json, "complete", losses_is_complete(dictionary));
	if (!dictionary->is_complete) {
		json_count(&json, "cut_offset", dictionary->cut_offset);
		json_text(&json, "cut_reason", dictionary->cut_reason ? text_shown(dictionary->cut_reason) : "");
	}
	json_count(&json, "size_bytes", dictionary->size_bytes);
	json_time(&json, "duration_us", dictionary->duration_ns);
	if (dictionary->start_realtime_ns)
		json_time(&json, "start_realtime_us", dictionary->start_realtime_ns);
	json_known_text(&json, "clock", dictionary->clock);
	json_known_text(&json, "host", dictionary->host);
	json_count(&json, "event_count", dictionary->event_count);
	json_begin_object(&json, "events");
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
		json_count(&json, info_kind_words[kind], dictionary->kind_count[kind]);
	json_end_object(&json);
	json_count(&json, "failed", dictionary->failed_count);
	json_count(&json, "in_flight", dictionary->in_flight_count);
	losses_json_calls(&json, dictionary);
	early_end_json(&json, dictionary);
	losses_json_gaps(&json, dictionary);
	losses_json_dropped(&json, dictionary);
	losses_json_folded(&json, dictionary);
	losses_json_stack_ends(&json, dictionary);
	if (dictionary->statistics.heapless)
		json_count(&json, "events_without_heap", dictionary->statistics.heapless);
	json_count(&json, "stacks", dictionary->node_count ? dictionary->node_count - 1 : 0);
	json_count(&json, "frames", dictionary->frame_count);
	json_count(&json, "images", dictionary->image_count);
	json_count(&json, "heaps", dictionary->heap_count);
	json_count(&json, "threads", report_thread_count(dictionary));
	losses_json_earlier(&json, "earlier_missing", dictionary);
	info_options_json(&json, dictionary);
	if (dictionary->statistics.is_known)
		json_cost(&json, &dictionary->statistics);
	json_begin_array(&json, "processes");
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		json_process(&json, info, i);
	json_end_array(&json);
	json_triggers(&json, dictionary);
	json_inactive(&json, dictionary);
	json_end_object(&json);
	json_end(&json);
}
