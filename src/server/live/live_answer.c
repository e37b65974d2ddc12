/* SPDX-License-Identifier: MIT */
#include "server/live/live_answer.h"

#include <stdbool.h>

#include "action/report/action.h"
#include "base/json.h"
#include "base/text.h"
#include "cells/cells.h"
#include "match/sums_window.h"
#include "server/answer/trace_facts.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

static void json_totals(struct json *json, const struct matching_sums *sums, const struct heap_numbers *totals)
{
	json_begin_object(json, "totals");
	json_count(json, "total_count", totals->total_count);
	json_count(json, "total_bytes", totals->total_bytes);
	json_count(json, "outstanding_count", totals->outstanding_count);
	json_count(json, "outstanding_bytes", totals->outstanding_bytes);
	if (sums->is_peak_known) {
		json_count(json, "peak_bytes", sums->peak.bytes);
		json_number(json, "peak_at_ns", sums->peak.time_ns);
	}
	json_end_object(json);
}

static void trace_write(const struct action_source *source, const struct matching_sums *sums, struct sink *out)
{
	const struct trace_dictionary *dictionary = source->table->dictionary;
	struct json json = {.out = out, .line_depth = 2, .is_for_script = true};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_bool(&json, "live", true);
	json_begin_array(&json, "traces");
	json_end_array(&json);
	json_text(&json, "path", source->path);
	json_text(&json, "command", dictionary->process_count ? dictionary->processes[0].command : "");
	json_number(&json, "duration_ns", sums->until_ns);
	trace_facts_lists(&json, source);
	json_count(&json, "events", dictionary->event_count);
	json_totals(&json, sums, &source->window->totals);
	json_count(&json, "sample_bytes", sums->sample_bytes);
	trace_facts_state(&json, source, &(struct trace_facts_plan){.is_growing = true});
	json_end_object(&json);
	json_end(&json);
}

static int source_write(const struct live_facts *facts, struct action_source *source, struct sink *json,
			struct sink *cells, struct diag *diag)
{
	struct heap_cull cull = {.with_entries = false};
	heap_cull_use_default(&cull);
	const struct cells_source asked = {.table = source->table,
					   .names = source->names,
					   .filter = source->filter,
					   .cull = &cull,
					   .growing = facts->cells,
					   .growing_max_bytes = facts->sums->chart.most};
	const struct cells_request whole = {.has_range = false};
	int error = cells_write(cells, &asked, &whole, diag);
	if (!error)
		trace_write(source, facts->sums, json);
	heap_cull_fini(&cull);
	return error;
}

int live_answer_write(const struct live_facts *facts, struct sink *json, struct sink *cells, struct diag *diag)
{
	const struct matching_sums *sums = facts->sums;
	bool is_damaged = false;
	const struct heap_table table = {.trace = facts->trace,
					 .dictionary = trace_dictionary(facts->trace),
					 .is_damaged = &is_damaged,
					 .sites = sums->sites,
					 .site_count = sums->site_count,
					 .sample_bytes = sums->sample_bytes,
					 .duration_ns = sums->until_ns};
	struct heap_filter filter;
	struct heap_window window;
	heap_filter_init_for(&filter, &table);
	sums_window_make(&window, sums);
	struct action_source source = {.path = facts->path,
				       .trace = facts->trace,
				       .table = &table,
				       .filter = &filter,
				       .names = heap_names_new(facts->trace, facts->symbols, false),
				       .window = &window};
	int error = source_write(facts, &source, json, cells, diag);
	heap_names_free(source.names);
	heap_window_fini(&window);
	heap_filter_fini(&filter);
	return error;
}
