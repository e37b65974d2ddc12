/* SPDX-License-Identifier: MIT */
/* Lost blocks as JSON: docs/schema/leaks.json. */
#include "action/actions/stacks.h"
#include "action/leaks/leaks.h"
#include "action/report/losses.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

static void put_sum(struct json *json, const char *key, const struct leak_sum *sum)
{
	json_begin_object(json, key);
	json_count(json, "count", sum->count);
	json_count(json, "bytes", sum->bytes);
	json_end_object(json);
}

static void put_sums(struct json *json, const struct leaks *leaks)
{
	json_begin_object(json, "sums");
	for (int i = 0; i < REACH_STATE_COUNT; i++)
		put_sum(json, reach_state_words[i], &leaks->sums[i]);
	json_end_object(json);
}

static void put_looks(struct json *json, const struct leaks *leaks)
{
	json_begin_object(json, "looks");
	json_count(json, "count", leaks->question.look);
	json_time(json, "first_us", leaks->first_ns);
	put_sum(json, "reachable", &leaks->cleared[LOOKED_REACHABLE]);
	put_sum(json, "freed", &leaks->cleared[LOOKED_FREED]);
	json_end_object(json);
}

static void put_row(struct json *json, const struct leaks *leaks, const struct leak_row *row)
{
	const struct trace_dictionary *dictionary = leaks->source->table->dictionary;
	json_begin_object(json, NULL);
	json_text(json, "state", reach_state_words[row->state]);
	json_count(json, "count", row->count);
	json_count(json, "bytes", row->bytes);
	json_bool(json, "earlier", row->is_earlier);
	if (!row->is_earlier) {
		json_time(json, "oldest_us", row->oldest_ns);
		json_time(json, "newest_us", row->newest_ns);
	}
	if (row->since) {
		json_count(json, "since_look", row->since);
		json_time(json, "since_us", row->since_ns);
		json_count(json, "since_count", row->since_count);
	}
	if (!row->is_of_threads && row->thread < dictionary->thread_count &&
	    dictionary->threads[row->thread].tid != TRACE_TID_NONE) {
		json_count(json, "thread", row->thread);
		json_count(json, "tid", dictionary->threads[row->thread].tid);
	}
	action_stack_json(leaks->input, row->node, json);
	json_end_object(json);
}

static void put_process(struct json *json, const struct leaks *leaks)
{
	const struct trace_process *process = &leaks->source->table->dictionary->processes[leaks->process];
	const size_t shown = leaks->row_count < leaks->question.top ? leaks->row_count : leaks->question.top;
	json_begin_object(json, NULL);
	json_count(json, "process", leaks->process);
	if (process->pid)
		json_count(json, "pid", process->pid);
	json_known_text(json, "command", process->command);
	json_time(json, "at_us", leaks->at_ns);
	if (leaks->question.is_running)
		json_time(json, "pause_us", (int64_t)leaks->question.pause_ns);
	if (leaks->question.looks)
		put_looks(json, leaks);
	put_sums(json, leaks);
	json_count(json, "row_count", leaks->row_count);
	json_count(json, "cut", leaks->row_count - shown);
	json_begin_array(json, "rows");
	for (size_t i = 0; i < shown; i++)
		put_row(json, leaks, &leaks->rows[i]);
	json_end_array(json);
	json_end_object(json);
}

void leaks_json(const struct leaks *leaks, size_t count, struct sink *out)
{
	const struct filter_request *asked = leaks->question.asked;
	struct json json = {.out = out, .line_depth = 3};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_text(&json, "trace", leaks->source->path);
	json_bool(&json, "complete", losses_is_complete(leaks->source->table->dictionary));
	json_begin_object(&json, "filters");
	for (size_t i = 0; i < asked->note_count; i++)
		json_text(&json, asked->notes[i].name, asked->notes[i].text);
	json_end_object(&json);
	if (leaks->question.has_range) {
		json_begin_object(&json, "range");
		json_time(&json, "from_us", leaks->source->window->range.from_ns);
		json_time(&json, "to_us", leaks->source->window->range.to_ns);
		json_end_object(&json);
	}
	json_begin_array(&json, "processes");
	for (size_t i = 0; i < count; i++)
		put_process(&json, &leaks[i]);
	json_end_array(&json);
	json_end_object(&json);
	json_end(&json);
}
