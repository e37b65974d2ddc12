/* SPDX-License-Identifier: MIT */
/* A report as JSON: docs/schema/heap.json. */
#include <inttypes.h>
#include <stdlib.h>

#include "action/diff/diff_match.h"
#include "action/diff/diff_words.h"
#include "action/report/caveats.h"
#include "action/report/culled.h"
#include "action/report/losses.h"
#include "action/report/report_columns.h"
#include "base/text.h"
#include "export/export.h"
#include "export/report_values.h"
#include "query/by.h"
#include "trace/reader.h"

/* known: by number, NULL for one that is not known. */
static void values_put(struct json *json, const struct report_value *value, const struct diff_change *const *known)
{
	if (*value->key)
		json_begin_object(json, value->key);
	for (int i = 0; i < ACTION_NUMBER_COUNT; i++)
		if (known[i])
			json_literal(json, report_number_names[i], text_decimal(value->of(known[i])).data);
	if (*value->key)
		json_end_object(json);
}

/* The names of the numbers for which the claim is true. */
static void claims_put(struct json *json, const struct report_value *value, const struct diff_change *const *known)
{
	json_begin_array(json, value->key);
	for (int i = 0; i < ACTION_NUMBER_COUNT; i++)
		if (known[i] && value->of(known[i]) != 0)
			json_text(json, NULL, report_number_names[i]);
	json_end_array(json);
}

/* row NULL: of the totals. */
static void numbers(struct json *json, const struct report *report, const struct action_row *row)
{
	struct diff_change changes[ACTION_NUMBER_COUNT];
	const struct diff_change *known[ACTION_NUMBER_COUNT] = {NULL};
	for (enum action_number i = 0; i < ACTION_NUMBER_COUNT; i++)
		if (diff_has_number(&report->diff, i)) {
			changes[i] = report_change(report, row, i);
			known[i] = &changes[i];
		}
	for (const struct report_value *value = report_values; value->key; value++)
		if (report_has_value(report, value))
			(value->kind == VALUE_CLAIM ? claims_put : values_put)(json, value, known);
}

static void errors(struct json *json, const struct heap_numbers *from)
{
	json_count(json, "recorded_count", from->recorded_count);
	for (int i = 0; i < REPORT_ERRORS; i++)
		json_count(json, report_errors[i].name, (uint64_t)report_error_at(from, i));
}

/* ---- rows ---- */

/* What rows of one side have beside the numbers that a diff compares. */
static void details(struct json *json, const struct report *report, const struct action *action,
		    const struct action_figures *figures)
{
	if (report_is_sample(report))
		errors(json, &figures->numbers);
	for (unsigned i = 0; i < report_extra_count(report, action); i++)
		(action->extra[i].kind == EXTRA_FACTOR ? json_thousandths : json_count)(json, action->extra[i].name,
											figures->extra[i]);
	if (action->is_inclusive)
		return;
	if (figures->numbers.total_count) {
		json_begin_object(json, "lifetime_us");
		json_time(json, "min", figures->lifetime_min);
		json_time(json, "median", figures->lifetime_median);
		json_time(json, "max", figures->lifetime_max);
		json_end_object(json);
	}
	json_count(json, "threads", figures->threads);
	json_count(json, "processes", figures->processes);
}

/* The label of the row's split; of one side, also its ids. */
static void split(struct json *json, const struct report *report, const struct report_part *part,
		  const struct action_row *row, const char *label)
{
	const struct action_source *source = report->diff.input->sources;
	const struct heap_window *window = source->window;
	/* Rows of heaps have their process under the same name. */
	if (*label && !(window->by == HEAP_BY_PROCESS && part->action->is_by_heap))
		json_text(json, heap_by_name(window->by), label);
	for (int i = 0; i < REPORT_BY_IDS && !report_is_diff(report); i++) {
		uint32_t id = report_by_ids[i].of(window, source->table, row->by);
		if (id != HEAP_NONE)
			json_count(json, report_by_ids[i].name, id);
	}
}

static void row_put(struct json *json, const struct report *report, const struct report_part *part,
		    const struct action_row *row)
{
	char id[17], *label = report_row_by(report, part, row);
	/* A row's name for programs: the same for the same group in other traces of the program. */
	snprintf(id, sizeof(id), "%016" PRIx64, action_row_id(&part->rows, row, label));
	json_begin_object(json, NULL);
	json_text(json, "id", id);
	if (report_is_diff(report))
		json_text(json, "state", diff_state_name(diff_row_state(&report->diff, row)));
	split(json, report, part, row, label);
	if (part->action->parent)
		json_count(json, "depth", row->depth);
	numbers(json, report, row);
	if (!report_is_diff(report))
		details(json, report, part->action, row->figures);
	part->action->json(report->diff.input, row->group, json);
	json_end_object(json);
	free(label);
}

static void part_put(struct json *json, const struct report *report, const struct report_part *part)
{
	const struct diff_counts *counts = &part->counts;
	json_begin_object(json, NULL);
	json_text(json, "action", part->action->name);
	json_text(json, "sort", part->sort->key);
	json_count(json, "row_count", part->rows.count);
	json_count(json, "cut", part->rows.count - part->rows.shown);
	if (report_is_diff(report)) {
		json_count(json, "unchanged", counts->unchanged);
		json_count(json, "new", counts->states[DIFF_IS_NEW]);
		json_count(json, "gone", counts->states[DIFF_IS_GONE]);
		json_count(json, "matched_by_name", counts->states[DIFF_IN_BOTH] - counts->by_offset);
		json_count(json, "matched_by_offset", counts->by_offset);
	}
	json_begin_array(json, "rows");
	for (size_t i = 0; i < part->rows.shown; i++)
		row_put(json, report, part, part->rows.rows[i]);
	json_end_array(json);
	json_end_object(json);
}

/* ---- sources ---- */

static void source_name(struct json *json, const struct action_source *source)
{
	json_text(json, "trace", source->path);
	json_bool(json, "complete", losses_is_complete(trace_dictionary(source->trace)));
}

/* Of a report over one source. */
static void source_totals(struct json *json, const struct report *report)
{
	const struct action_source *source = report_source(report);
	const struct heap_window *window = source->window;
	caveats_json_range(json, source);
	json_begin_object(json, "totals");
	numbers(json, report, NULL);
	if (report_is_sample(report))
		errors(json, &window->totals);
	if (report_source_has_peak(source))
		json_time(json, "peak_at_us", window->peak_at_ns);
	if (window->peak_from_ns > window->range.from_ns)
		json_time(json, "peak_from_us", window->peak_from_ns);
	json_end_object(json);
}

static void side_put(struct json *json, const struct report *report, enum diff_side side, const char *key)
{
	const struct diff *diff = &report->diff;
	json_begin_array(json, key);
	for (unsigned i = 0; i < diff->runs[side]; i++) {
		const unsigned number = diff_first_source(diff, side) + i;
		struct action_input alone = *diff->input;
		alone.sources = &diff->input->sources[number];
		alone.source_count = 1;
		const uint32_t lent = heap_names_lent_count(alone.sources->names);
		json_begin_object(json, NULL);
		source_name(json, alone.sources);
		caveats_json(json, alone.sources);
		if (alone.sources->filter->moment.is_asked)
			json_text(json, "at", position_text(alone.sources->filter->moment.at).data);
		source_totals(json, &(struct report){.diff = {.input = &alone, .runs = {1}}});
		if (lent)
			json_count(json, "lent_names", lent);
		if (diff->scales)
			json_literal(json, "factor", text_decimal(diff->scales[number]).data);
		json_end_object(json);
	}
	json_end_array(json);
}

static void sides(struct json *json, const struct report *report)
{
	size_t count;
	const char *const *programs = heap_names_matched_programs(action_names(report->diff.input), &count);
	json_bool(json, "different_programs", diff_is_of_other_programs(&report->diff));
	json_texts(json, "matched_programs", programs, count);
	const char *const *versioned = heap_names_versioned(action_names(report->diff.input), &count);
	json_texts(json, "versioned_images", versioned, count);
	char **others = diff_other_builds(&report->diff, &count);
	json_texts(json, "unmatched_images", (const char *const *)others, count);
	for (size_t i = 0; i < count; i++)
		free(others[i]);
	free(others);
	json_text(json, "normalise", diff_basis_name(report->basis));
	side_put(json, report, DIFF_A, "a");
	side_put(json, report, DIFF_B, "b");
	json_begin_object(json, "totals");
	numbers(json, report, NULL);
	json_end_object(json);
}

void report_json(const struct report *report, struct sink *out)
{
	const bool is_diff = report_is_diff(report);
	struct json json = {.out = out, .line_depth = 4};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	if (!is_diff)
		source_name(&json, report_source(report));
	json_begin_object(&json, "filters");
	for (size_t i = 0; i < report->filter_count; i++)
		json_text(&json, report->filters[i].name, report->filters[i].text);
	json_end_object(&json);
	if (!is_diff)
		caveats_json(&json, report_source(report));
	culled_json(&json, report->diff.input);
	(is_diff ? sides : source_totals)(&json, report);
	json_begin_array(&json, "actions");
	for (unsigned i = 0; i < report->part_count; i++)
		if (report->parts[i].action->groups)
			part_put(&json, report, &report->parts[i]);
	json_end_array(&json);
	json_end_object(&json);
	json_end(&json);
}
