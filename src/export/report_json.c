/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/caveats.h"
#include "action/report/culled.h"
#include "action/report/losses.h"
#include "action/report/report_columns.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/report.h"

static void json_numbers(struct json *json, const struct report *report, const struct heap_numbers *from)
{
	for (int i = 0; i < ACTION_NUMBER_COUNT; i++)
		if (report_source_has_number(report_source(report), report_numbers[i].offset))
			json_count(json, report_numbers[i].name, report_number_at(from, report_numbers[i].offset));
	if (!report_is_sample(report))
		return;
	json_count(json, "recorded_count", from->recorded_count);
	for (int i = 0; i < REPORT_ERRORS; i++)
		json_count(json, report_errors[i].name, (uint64_t)report_error_at(from, i));
}

static void json_totals(struct json *json, const struct report *report)
{
	const struct heap_window *window = report_source(report)->window;
	caveats_json_range(json, report_source(report));
	json_begin_object(json, "totals");
	json_numbers(json, report, &window->totals);
	if (report_source_has_peak(report_source(report)))
		json_time(json, "peak_at_us", window->peak_at_ns);
	if (window->peak_from_ns > window->range.from_ns)
		json_time(json, "peak_from_us", window->peak_from_ns);
	json_end_object(json);
}

static void json_lifetimes(struct json *json, const struct action_row *row)
{
	json_begin_object(json, "lifetime_us");
	json_time(json, "min", row->figures->lifetime_min);
	json_time(json, "median", row->figures->lifetime_median);
	json_time(json, "max", row->figures->lifetime_max);
	json_end_object(json);
}

static void json_extra(struct json *json, const struct action_extra *extra, uint64_t value)
{
	if (extra->kind == EXTRA_FACTOR)
		json_thousandths(json, extra->name, value);
	else
		json_count(json, extra->name, value);
}

static void json_by(struct json *json, const struct report *report, const struct report_part *part,
		    const struct action_row *row, const char *by)
{
	const struct heap_window *window = report_window(report, part);
	/* Rows of heaps have their process under the same name. */
	if (*by && !(window->by == HEAP_BY_PROCESS && part->action->is_by_heap))
		json_text(json, heap_by_name(window->by), by);
	for (int i = 0; i < REPORT_BY_IDS; i++) {
		uint32_t id = report_by_ids[i].of(window, report_source(report)->table, row->by);
		if (id != HEAP_NONE)
			json_count(json, report_by_ids[i].name, id);
	}
}

static void json_row(struct json *json, const struct report *report, const struct report_part *part,
		     const struct action_row *row)
{
	const struct action *action = part->action;
	char id[17], *by = heap_by_text(report_window(report, part), report_source(report)->table, row->by);
	/* A row's name for programs: the same for the same group in other traces of the program. */
	snprintf(id, sizeof(id), "%016" PRIx64, action_row_id(&part->rows, row, by));
	json_begin_object(json, NULL);
	json_text(json, "id", id);
	json_by(json, report, part, row, by);
	if (action->parent)
		json_count(json, "depth", row->depth);
	json_numbers(json, report, &row->figures->numbers);
	for (unsigned i = 0; i < report_extra_count(report, action); i++)
		json_extra(json, &action->extra[i], row->figures->extra[i]);
	if (row->figures->numbers.total_count && !action->is_inclusive)
		json_lifetimes(json, row);
	if (!action->is_inclusive) {
		json_count(json, "threads", row->figures->threads);
		json_count(json, "processes", row->figures->processes);
	}
	action->json(report->diff.input, row->group, json);
	json_end_object(json);
	free(by);
}

static void json_part(struct json *json, const struct report *report, const struct report_part *part)
{
	json_begin_object(json, NULL);
	json_text(json, "action", part->action->name);
	json_text(json, "sort", part->sort->key);
	json_count(json, "row_count", part->rows.count);
	json_count(json, "cut", part->rows.count - part->rows.shown);
	json_begin_array(json, "rows");
	for (size_t i = 0; i < part->rows.shown; i++)
		json_row(json, report, part, part->rows.rows[i]);
	json_end_array(json);
	json_end_object(json);
}

void report_json_source(struct json *json, const struct report *report)
{
	json_text(json, "trace", report_source(report)->path);
	json_bool(json, "complete", losses_is_complete(trace_dictionary(report_source(report)->trace)));
	caveats_json(json, report_source(report));
	json_totals(json, report);
}

void report_json(const struct report *report, struct sink *out)
{
	const struct trace_dictionary *dictionary = trace_dictionary(report_source(report)->trace);
	struct json json = {.out = out, .line_depth = 4};
	json_begin_object(&json, NULL);
	json_count(&json, "schema", 1);
	json_text(&json, "trace", report_source(report)->path);
	json_bool(&json, "complete", losses_is_complete(dictionary));
	json_begin_object(&json, "filters");
	for (size_t i = 0; i < report->filter_count; i++)
		json_text(&json, report->filters[i].name, report->filters[i].text);
	json_end_object(&json);
	caveats_json(&json, report_source(report));
	culled_json(&json, report->diff.input);
	json_totals(&json, report);
	json_begin_array(&json, "actions");
	for (unsigned i = 0; i < report->part_count; i++)
		if (report->parts[i].action->groups)
			json_part(&json, report, &report->parts[i]);
	json_end_array(&json);
	json_end_object(&json);
	json_end(&json);
}
