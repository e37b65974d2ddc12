/* SPDX-License-Identifier: MIT */
#include "action/summary/summary_json.h"

#include <inttypes.h>
#include <math.h>

#include "action/actions/stacks.h"
#include "action/report/caveats.h"
#include "action/report/culled.h"
#include "action/report/early_end.h"
#include "action/report/ends.h"
#include "action/report/losses.h"
#include "action/summary/forecast.h"
#include "action/summary/summary.h"
#include "trace/memory_rows.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

const char *const summary_kind_words[] = {
#define X(id, name) name,
	SUMMARY_KINDS(X)
#undef X
};

/* Thousandths of a number: JSON has no other numbers here. */
static int64_t thousandths(double number)
{
	double rounded = round(number * 1000);
	return rounded > 9e18 ? INT64_MAX : rounded < -9e18 ? INT64_MIN : (int64_t)rounded;
}

static void json_rate(struct json *json, const char *key, const struct growth_rate *rate)
{
	json_begin_object(json, key);
	json_signed_thousandths(json, "mean", thousandths(rate->mean));
	json_signed_thousandths(json, "low", thousandths(rate->low));
	json_signed_thousandths(json, "high", thousandths(rate->high));
	json_end_object(json);
}

static void json_numbers(struct json *json, const struct summary *summary, const struct heap_numbers *numbers)
{
	json_count(json, "total_count", numbers->total_count);
	json_count(json, "total_bytes", numbers->total_bytes);
	json_count(json, "outstanding_count", numbers->outstanding_count);
	json_count(json, "outstanding_bytes", numbers->outstanding_bytes);
	json_count(json, "realloc_count", numbers->realloc_count);
	json_count(json, "realloc_moved_count", numbers->realloc_moved_count);
	if (!summary->source->table->sample_bytes)
		json_count(json, "temporary_count", numbers->temporary_count);
	json_count(json, "peak_count", numbers->peak_count);
	json_count(json, "peak_bytes", numbers->peak_bytes);
}

void summary_json_totals(struct json *json, const struct summary *summary)
{
	const struct heap_window *window = summary->source->window;
	const struct survey *survey = &summary->survey;
	json_begin_object(json, "totals");
	json_numbers(json, summary, &window->totals);
	json_time(json, "peak_at_us", window->peak_at_ns);
	json_count(json, "short_lived_count", survey->short_count);
	json_count(json, "short_lived_bytes", survey->short_bytes);
	json_count(json, "freed_by_others_count", survey->crossed_count);
	json_count(json, "freed_by_others_bytes", survey->crossed_bytes);
	json_end_object(json);
}

static void json_function(void *context, struct action_input *input, uint32_t node)
{
	struct json *json = context;
	json_begin_object(json, NULL);
	action_json_node(input, node, json);
	json_end_object(json);
}

/* The functions that may have been put into that of a row. */
static void json_put_in(struct json *json, const struct summary *summary, uint32_t node)
{
	const struct put_in_row *row = put_in_row(&summary->put_in, node);
	if (!row)
		return;
	json_begin_array(json, "may_be_of");
	put_in_each(summary->input, row, json_function, json);
	json_end_array(json);
}

static void json_row(struct json *json, const struct summary *summary, const struct summary_list *list,
		     const struct action_row *row)
{
	char id[17];
	snprintf(id, sizeof(id), "%016" PRIx64, action_row_id(&list->rows, row, ""));
	json_begin_object(json, NULL);
	json_text(json, "id", id);
	json_numbers(json, summary, &row->figures->numbers);
	for (unsigned i = 0; i < list->action->extra_count; i++)
		if (list->action->extra[i].kind == EXTRA_FACTOR)
			json_thousandths(json, list->action->extra[i].name, row->figures->extra[i]);
		else
			json_count(json, list->action->extra[i].name, row->figures->extra[i]);
	action_stack_json(summary->input, row->group, json);
	json_put_in(json, summary, row->group);
	json_end_object(json);
}

static void json_lists(struct json *json, const struct summary *summary)
{
	json_begin_object(json, "stacks");
	for (int id = 0; id < SUMMARY_LIST_COUNT; id++) {
		const struct summary_list *list = &summary->lists[id];
		json_begin_array(json, list->name);
		for (size_t i = 0; i < list->count; i++)
			json_row(json, summary, list, list->rows.rows[i]);
		json_end_array(json);
	}
	json_end_object(json);
}

static void json_growth_row(struct json *json, const struct summary *summary, const struct survey_growth *own)
{
	const struct growth *growth = &own->growth;
	json_begin_object(json, NULL);
	json_text(json, "verdict", growth_word(growth->verdict));
	json_count(json, "process", own->process);
	json_count(json, "stack_count", own->stack_count);
	json_time(json, "from_us", own->clock.from_ns);
	json_time(json, "to_us", own->clock.to_ns);
	json_number(json, "grown_bytes", growth->grown_bytes);
	json_number(json, "grown_count", growth->grown_count);
	json_rate(json, "bytes_per_second", &growth->bytes);
	json_rate(json, "blocks_per_second", &growth->count);
	json_rate(json, "recent_bytes_per_second", &growth->recent_bytes);
	json_signed_thousandths(json, "replaced_bytes_per_second", thousandths(growth->replaced_bytes));
	json_bool(json, "by_realloc", growth->is_of_buffers);
	if (growth->survival >= 0)
		json_signed_thousandths(json, "survival", thousandths(growth->survival));
	action_stack_json(summary->input, own->stack_count ? own->node : 0, json);
	if (own->stack_count)
		json_put_in(json, summary, own->node);
	json_end_object(json);
}

static void json_forecast(struct json *json, const struct summary *summary)
{
	const struct forecast forecast = forecast_make(&summary->survey, summary->source->table->dictionary);
	if (!forecast.limit)
		return;
	const struct growth_rate seconds = {forecast.seconds, forecast.least_seconds, forecast.most_seconds};
	json_begin_object(json, "forecast");
	json_count(json, "process", forecast.process);
	json_text(json, "limit", forecast.limit);
	json_count(json, "limit_bytes", forecast.limit_bytes);
	json_count(json, "used_bytes", forecast.used_bytes);
	json_rate(json, "seconds", &seconds);
	json_end_object(json);
}

static void json_growth(struct json *json, const struct summary *summary, size_t top)
{
	const struct survey *survey = &summary->survey;
	json_begin_object(json, "growth");
	json_known_text(json, "unknown", survey->growth_unknown.data);
	json_count(json, "grows_count", survey->grows_count);
	json_time(json, "from_us", summary_growth_from(summary));
	struct summary_note notes[SUMMARY_NOTES];
	unsigned note_count = summary_growth_notes(summary, notes);
	json_begin_array(json, "notes");
	for (unsigned i = 0; i < note_count; i++)
		json_text(json, NULL, notes[i].word);
	json_end_array(json);
	json_begin_array(json, "rows");
	for (size_t i = 0; i < survey->growth_count && i < survey->grows_count + top; i++)
		json_growth_row(json, summary, &survey->growths[i]);
	json_end_array(json);
	json_forecast(json, summary);
	json_end_object(json);
}

static void json_handovers(struct json *json, const struct summary *summary, size_t top)
{
	const struct survey *survey = &summary->survey;
	json_begin_array(json, "handovers");
	for (size_t i = 0; i < survey->handover_count && i < top; i++) {
		json_begin_object(json, NULL);
		json_text(json, "from", survey_role(survey, survey->handovers[i].from));
		json_text(json, "to", survey_role(survey, survey->handovers[i].to));
		json_count(json, "count", survey->handovers[i].count);
		json_count(json, "bytes", survey->handovers[i].bytes);
		json_end_object(json);
	}
	json_end_array(json);
}

void summary_json_resident(struct json *json, const struct summary *summary)
{
	if (!summary->resident)
		return;
	const struct summary_resident part = summary_resident_parts(summary);
	const struct resident *kinds = &summary->resident_kinds;
	json_begin_object(json, "resident");
	json_count(json, "process", summary->resident->process);
	json_time(json, "at_us", summary->resident->time_ns);
	json_count(json, "bytes", summary->resident->resident_bytes);
	if (kinds->split) {
		json_count(json, "read_bytes", part.bytes);
		json_time(json, "read_at_us", part.time_ns);
	}
	if (summary->is_split) {
		json_count(json, "live_bytes", part.live_bytes);
		json_count(json, "rounding_bytes", part.rounding_bytes);
		json_count(json, "free_bytes", part.free_bytes);
		json_count(json, "other_bytes", part.bytes - part.heap_bytes);
	}
	if (kinds->split) {
		json_begin_object(json, "others");
		for (unsigned kind = 0; kind < TRACE_MAPPING_KIND_COUNT; kind++)
			if (kinds->rest[kind])
				json_count(json, resident_kind_key(kind), kinds->rest[kind]);
		json_end_object(json);
	}
	json_end_object(json);
}

static void json_processes(struct json *json, const struct summary *summary)
{
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	json_count(json, "process_count", dictionary->process_count);
	json_begin_array(json, "processes");
	for (size_t i = 0; i < summary->process_count; i++) {
		const struct summary_process *own = &summary->processes[i];
		const struct trace_process *process = &dictionary->processes[own->process];
		json_begin_object(json, NULL);
		json_count(json, "process", own->process);
		if (process->pid)
			json_count(json, "pid", process->pid);
		json_known_text(json, "command", process->command);
		if (own->has_peak) {
			json_count(json, "peak_bytes", own->peak_bytes);
			json_count(json, "peak_count", own->peak_count);
			json_time(json, "peak_at_us", own->peak_at_ns);
			json_count(json, "outstanding_bytes", own->outstanding_bytes);
			json_count(json, "outstanding_count", own->outstanding_count);
			json_count(json, "total_count", own->total_count);
		}
		if (own->resident)
			json_count(json, "resident_bytes", own->resident->resident_bytes);
		if (own->top_node != HEAP_NONE) {
			json_count(json, "top_bytes", own->top_bytes);
			action_stack_json(summary->input, own->top_node, json);
		}
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_ends(struct json *json, const struct summary *summary)
{
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	unsigned count = 0;
	json_begin_array(json, "ends");
	for (uint32_t i = 0; i < dictionary->process_count && count < SUMMARY_PROCESSES; i++) {
		const struct trace_process *process = &dictionary->processes[i];
		if (!ends_are_notable(process))
			continue;
		count++;
		json_begin_object(json, NULL);
		json_count(json, "process", i);
		if (process->pid)
			json_count(json, "pid", process->pid);
		if (trace_process_end_is_known(process))
			json_time(json, "time_us", process->end_ns);
		ends_json(json, dictionary, i);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_chart(struct json *json, const struct summary *summary)
{
	json_begin_array(json, "chart");
	for (uint32_t i = 0; i < summary->survey.plan.chart_parts; i++) {
		json_begin_object(json, NULL);
		json_time(json, "peak_at_us", summary->survey.chart[i].time_ns);
		json_count(json, "peak_bytes", summary->survey.chart[i].bytes);
		json_end_object(json);
	}
	json_end_array(json);
}

static void json_findings(struct json *json, const struct summary *summary)
{
	json_begin_array(json, "findings");
	for (unsigned i = 0; i < summary->finding_count; i++) {
		json_begin_object(json, NULL);
		json_text(json, "kind", summary_kind_words[summary->findings[i].kind]);
		json_text(json, "text", summary->findings[i].text);
		json_text(json, "command", summary->findings[i].command);
		json_end_object(json);
	}
	json_end_array(json);
}

void summary_json(const struct summary *summary, struct sink *out)
{
	const struct trace_dictionary *dictionary = summary->source->table->dictionary;
	struct json json = {.out = out, .line_depth = 4};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_text(&json, "trace", summary->source->path);
	json_bool(&json, "complete", losses_is_complete(dictionary));
	json_begin_object(&json, "filters");
	for (size_t i = 0; i < summary->filter_count; i++)
		json_text(&json, summary->filters[i].name, summary->filters[i].text);
	json_end_object(&json);
	culled_json(&json, summary->input);
	if (summary->source->table->sample_bytes)
		json_count(&json, "sample_bytes", summary->source->table->sample_bytes);
	json_count(&json, "missing_calls", losses_missing_calls(dictionary));
	early_end_json(&json, dictionary);
	losses_json_dropped(&json, dictionary);
	losses_json_folded(&json, dictionary);
	json_time(&json, "duration_us", summary->source->table->duration_ns);
	caveats_json_range(&json, summary->source);
	summary_json_totals(&json, summary);
	json_time(&json, "short_lived_us", summary->survey.plan.short_ns);
	json_ends(&json, summary);
	json_findings(&json, summary);
	json_growth(&json, summary, summary->top);
	json_lists(&json, summary);
	json_handovers(&json, summary, summary->top);
	summary_json_resident(&json, summary);
	json_processes(&json, summary);
	json_chart(&json, summary);
	json_end_object(&json);
	json_end(&json);
}
