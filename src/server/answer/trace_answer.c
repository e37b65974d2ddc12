/* SPDX-License-Identifier: MIT */
#include "server/answer/trace_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/early_end.h"
#include "action/report/stack_view.h"
#include "action/summary/summary.h"
#include "action/summary/summary_json.h"
#include "base/memory.h"
#include "base/text.h"
#include "server/answer/function_json.h"
#include "server/answer/trace_facts.h"
#include "table/weight.h"
#include "trace/gap_rows.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

enum {
	ROWS = 5, /* of each list, as xheap report has it */
	STACK_FRAMES_MAX = 200,
	SENTENCE_BYTES = 1000
};

struct trace_answer {
	struct shown_trace *shown;
	const struct trace_answer_plan *plan;
	struct sink *out;
	struct json json;
	struct analysis *analysis;
	struct summary summary;
};

/* ---- the sentence that answers ---- */

/* The function with most bytes at the peak; its bytes. */
static uint64_t peak_function(struct trace_answer *answer, uint32_t *name)
{
	struct action_input *input = &answer->analysis->input;
	const struct heap_window *window = input->sources->window;
	struct heap_names *names = action_names(input);
	heap_names_name_sites(names, input->sources->table);
	uint64_t most = 0, *sums = memory_zeroed((size_t)heap_names_count(names) + 1, sizeof(*sums));
	for (uint32_t i = 0; i < window->cell_count; i++) {
		uint32_t node = action_site_node(input, input->sources, &window->cells[i]);
		if (!node)
			continue;
		uint32_t of = heap_names_frame(names, node)->name;
		sums[of] += window->numbers[i].peak_bytes;
		if (sums[of] > most) {
			most = sums[of];
			*name = of;
		}
	}
	free(sums);
	return most;
}

/* Which sites have the function as their first frame. The caller frees the array. */
static bool *sites_of(const struct trace_answer *answer, uint32_t name)
{
	struct action_input *input = &answer->analysis->input;
	const struct heap_table *table = input->sources->table;
	bool *sites = memory_zeroed(table->site_count, sizeof(*sites));
	for (uint32_t i = 0; i < table->site_count; i++) {
		uint32_t node = action_site_node(input, input->sources, &(struct heap_cell){.site = i});
		sites[i] = node && heap_names_frame(input->sources->names, node)->name == name;
	}
	return sites;
}

/* The process that has most of the function's bytes at the peak: a pass over what lived then. Sums in place of blocks
   have no process. */
static void json_peak_process(struct trace_answer *answer, uint32_t name)
{
	const struct action_source *source = answer->analysis->input.sources;
	const struct trace_dictionary *dictionary = source->table->dictionary;
	const int64_t at_ns = source->window->peak_at_ns;
	if (dictionary->process_count < 2)
		return;
	bool *sites = sites_of(answer, name);
	uint64_t *sums = memory_zeroed(dictionary->process_count, sizeof(*sums));
	const struct heap_scan_plan plan = {at_ns, at_ns, at_ns - 1, PACK_ALL, source->filter, sites};
	struct heap_scan scan;
	const struct heap_rows *rows;
	uint32_t largest = 0;
	heap_scan_begin(&scan, source->table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		heap_rows_each (rows, i) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			if (sites[row.site] && heap_is_live_at(&row, at_ns))
				sums[dictionary->threads[row.thread].process] += heap_weigh(source->table, &row).bytes;
		}
	heap_scan_end(&scan);
	for (uint32_t i = 1; i < dictionary->process_count; i++)
		largest = sums[i] > sums[largest] ? i : largest;
	if (sums[largest])
		json_count(&answer->json, "peak_process", largest);
	free(sums);
	free(sites);
}

static void json_growth(struct trace_answer *answer)
{
	const struct survey *survey = &answer->summary.survey;
	const struct survey_growth *growth = survey->growths;
	struct json *json = &answer->json;
	json_known_text(json, "growth_unknown", survey->growth_unknown.data);
	if (!survey->grows_count) {
		json_literal(json, "growth", "null");
		return;
	}
	json_begin_object(json, "growth");
	if (growth->stack_count)
		function_json(json, "function", &answer->analysis->input, growth->node);
	else
		json_count(json, "pid", answer->summary.source->table->dictionary->processes[growth->process].pid);
	json_number(json, "bytes_per_second", (int64_t)growth->growth.bytes.mean);
	json_number(json, "from_ns", growth->clock.from_ns);
	json_number(json, "to_ns", growth->clock.to_ns);
	json_end_object(json);
}

static void json_answer(struct trace_answer *answer)
{
	struct action_input *input = &answer->analysis->input;
	const uint64_t whole = input->sources->window->totals.peak_bytes;
	uint32_t name = 0;
	json_begin_object(&answer->json, "answer");
	uint64_t bytes = peak_function(answer, &name);
	if (bytes && whole) {
		function_json_name(&answer->json, "peak_function", action_names(input), name);
		json_thousandths(&answer->json, "peak_share", (uint64_t)((unsigned __int128)bytes * 1000 / whole));
		json_peak_process(answer, name);
	}
	json_growth(answer);
	json_end_object(&answer->json);
}

/* ---- findings ---- */

static void json_window(struct json *json, int64_t from_ns, int64_t to_ns, const char *class)
{
	json_begin_object(json, "select");
	json_number(json, "from_ns", from_ns);
	json_number(json, "to_ns", to_ns);
	json_begin_array(json, "classes");
	json_text(json, NULL, class);
	json_end_array(json);
	json_end_object(json);
}

static void json_moment(struct json *json, int64_t at_ns)
{
	json_begin_object(json, "select");
	json_number(json, "at_ns", at_ns);
	json_end_object(json);
}

/* The stack that a finding is about, as requests name it; nothing of one that is deeper than pages need. */
static void json_stack(struct trace_answer *answer, uint32_t node)
{
	struct action_input *input = &answer->analysis->input;
	const struct heap_names *names = action_names(input);
	uint32_t path[STACK_FRAMES_MAX], depth = 0;
	function_json(&answer->json, "function", input, node);
	for (; node && node != HEAP_NONE && depth < STACK_FRAMES_MAX; node = heap_names_frame(names, node)->parent)
		path[depth++] = heap_names_frame(names, node)->name;
	if (!depth || node)
		return;
	json_begin_array(&answer->json, "stack");
	while (depth-- > 0)
		function_json_name(&answer->json, NULL, names, path[depth]);
	json_end_array(&answer->json);
}

/* The stack of the first row of a list. */
static void json_first(struct trace_answer *answer, enum summary_list_id id)
{
	const struct summary_list *list = &answer->summary.lists[id];
	if (list->count)
		json_stack(answer, list->rows.rows[0]->group);
}

/* The time of the gaps, or the end of the recording. */
static void json_losses(struct trace_answer *answer)
{
	const struct trace_dictionary *dictionary = answer->summary.source->table->dictionary;
	const struct trace_early_end *end = early_end_first(dictionary);
	int64_t from_ns = INT64_MAX, to_ns = INT64_MIN;
	for (uint32_t i = 0; i < dictionary->gap_count; i++) {
		const struct trace_gap *gap = &dictionary->gaps[i];
		from_ns = gap->from_ns < from_ns ? gap->from_ns : from_ns;
		to_ns = gap->to_ns > to_ns ? gap->to_ns : to_ns;
	}
	if (end)
		json_moment(&answer->json, end->time_ns);
	else if (from_ns < to_ns)
		json_window(&answer->json, from_ns, to_ns, "AIFO");
}

/* What the page selects for a finding. grown: which of the findings of growth it is. */
static void json_selection(struct trace_answer *answer, enum summary_finding_kind kind, unsigned grown)
{
	const struct summary *summary = &answer->summary;
	struct action_source *source = summary->source;
	const int64_t duration_ns = source->table->duration_ns;
	struct json *json = &answer->json;
	if (kind == FINDING_GROWTH) {
		const struct survey_growth *growth = &summary->survey.growths[grown];
		json_window(json, growth->clock.from_ns, growth->clock.to_ns, "AIFO");
		if (growth->stack_count > 1)
			function_json(json, "function", &answer->analysis->input, growth->node);
		else if (growth->stack_count)
			json_stack(answer, growth->node);
	} else if (kind == FINDING_PEAK) {
		json_moment(json, source->window->peak_at_ns);
		json_first(answer, SUMMARY_PEAK);
	} else if (kind == FINDING_ARENAS) {
		json_moment(json, source->window->peak_at_ns);
	} else if (kind == FINDING_OUTSTANDING) {
		json_window(json, -1, duration_ns, "AIFO");
		json_first(answer, SUMMARY_OUTSTANDING);
	} else if (kind == FINDING_SHORT || kind == FINDING_REALLOC) {
		json_window(json, -1, duration_ns, "AIFI");
		json_first(answer, kind == FINDING_SHORT ? SUMMARY_SHORT : SUMMARY_REALLOC);
	} else if (kind == FINDING_CROSSED) {
		const struct heap_cell cell = {.site = summary->survey.handovers[0].site};
		json_window(json, -1, duration_ns, "AIFI");
		json_stack(answer, action_site_node(&answer->analysis->input, source, &cell));
	} else if (kind == FINDING_PINNED) {
		json_moment(json, summary->pinned.at_ns);
		json_stack(answer, summary->pinned.node);
	} else if (kind == FINDING_RESIDENT || kind == FINDING_FREE) {
		json_moment(json, summary_resident_parts(summary).time_ns);
	} else {
		json_losses(answer);
	}
}

/* The sentence in two parts: the evidence begins behind a colon, a comma, a semicolon or a blank. */
static void json_sentence(struct json *json, const struct summary_finding *finding)
{
	const char *evidence = finding->text + finding->title_bytes;
	char title[SENTENCE_BYTES];
	snprintf(title, sizeof(title), "%.*s", (int)finding->title_bytes, finding->text);
	json_text(json, "text", finding->text);
	json_text(json, "title", title);
	json_text(json, "evidence", evidence + strspn(evidence, ":,; "));
}

static void json_findings(struct trace_answer *answer)
{
	const struct summary *summary = &answer->summary;
	unsigned grown = 0;
	json_begin_array(&answer->json, "findings");
	for (unsigned i = 0; i < summary->finding_count; i++) {
		const struct summary_finding *finding = &summary->findings[i];
		json_begin_object(&answer->json, NULL);
		json_text(&answer->json, "kind", summary_kind_words[finding->kind]);
		json_sentence(&answer->json, finding);
		json_text(&answer->json, "command", finding->command);
		json_selection(answer, finding->kind, grown);
		grown += finding->kind == FINDING_GROWTH;
		json_end_object(&answer->json);
	}
	json_end_array(&answer->json);
}

/* ---- all of it ---- */

static void json_traces(struct trace_answer *answer)
{
	json_begin_array(&answer->json, "traces");
	for (unsigned i = 0; i < answer->plan->path_count; i++) {
		json_begin_object(&answer->json, NULL);
		json_text(&answer->json, "name", text_file_name(answer->plan->paths[i]));
		json_end_object(&answer->json);
	}
	json_end_array(&answer->json);
}

static void answer_write(struct trace_answer *answer)
{
	const struct action_source *source = answer->analysis->input.sources;
	const struct trace_dictionary *dictionary = source->table->dictionary;
	struct json *json = &answer->json;
	json_begin_object(json, NULL);
	json_count(json, "schema", 1);
	json_traces(answer);
	if (answer->plan->runs)
		json_count(json, "runs", answer->plan->runs);
	json_text(json, "path", answer->shown->path);
	json_text(json, "command", dictionary->process_count ? dictionary->processes[0].command : "");
	json_number(json, "duration_ns", source->table->duration_ns);
	trace_facts_lists(json, source);
	json_count(json, "events", dictionary->event_count);
	summary_json_totals(json, &answer->summary);
	json_answer(answer);
	summary_json_resident(json, &answer->summary);
	json_findings(answer);
	json_count(json, "sample_bytes", source->table->sample_bytes);
	const struct trace_facts_plan facts = {answer->plan->left_out, answer->shown->options.until_ns};
	trace_facts_state(json, source, &facts);
	json_end_object(json);
	json_end(json);
}

static int answer_make(void *context, struct analysis *analysis, struct diag *diag)
{
	struct trace_answer *answer = context;
	const struct summary_plan plan = {.short_ns = SUMMARY_SHORT_NS, .top = ROWS, .is_screen = true};
	(void)diag;
	answer->json = (struct json){.out = answer->out, .line_depth = 2, .is_for_script = true};
	answer->analysis = analysis;
	answer->out->used = 0;
	summary_make(&answer->summary, &analysis->input, &plan);
	answer_write(answer);
	summary_fini(&answer->summary);
	return 0;
}

int trace_answer_write(struct shown_trace *shown, const struct trace_answer_plan *plan, struct sink *out,
		       const struct analysis_caller *caller, struct diag *diag)
{
	struct trace_answer answer = {.shown = shown, .plan = plan, .out = out};
	const struct shown_question question = {
		.shown = shown, .with_window = true, .make = answer_make, .context = &answer};
	return shown_trace_ask(&question, caller, diag);
}
