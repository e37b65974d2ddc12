/* SPDX-License-Identifier: MIT */
#include "cli/ask/info_json.h"

#include <string.h>

#include "action/report/early_end.h"
#include "action/report/losses.h"
#include "action/report/report_columns.h"
#include "base/events.h"
#include "base/text.h"
#include "cli/ask/info.h"
#include "cli/ask/info_options.h"
#include "cli/ask/info_processes.h"
#include "trace/option_names.h"
#include "trace/trace.h"

struct trace_statistics;

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
	info_processes_json(info, &json);
	json_triggers(&json, dictionary);
	json_inactive(&json, dictionary);
	json_end_object(&json);
	json_end(&json);
}
