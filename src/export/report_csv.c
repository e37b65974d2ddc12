/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/report_columns.h"
#include "base/grid.h"
#include "base/text.h"
#include "export/report.h"

static void csv_numbers(struct sink *out, const struct report *report, const struct heap_numbers *from)
{
	for (int i = 0; i < ACTION_NUMBER_COUNT; i++) {
		if (i)
			sink_put(out, ',');
		if (report_source_has_number(report_source(report), report_numbers[i].offset))
			sink_format(out, "%" PRIu64, report_number_at(from, report_numbers[i].offset));
	}
	if (!report_is_sample(report))
		return;
	sink_format(out, ",%" PRIu64, from->recorded_count);
	for (int i = 0; i < REPORT_ERRORS; i++)
		sink_format(out, ",%.0f", report_error_at(from, i));
}

static void csv_number_names(struct sink *out, const struct report *report)
{
	for (int i = 0; i < ACTION_NUMBER_COUNT; i++)
		sink_format(out, i ? ",%s" : "%s", report_numbers[i].name);
	if (!report_is_sample(report))
		return;
	sink_text(out, ",recorded_count");
	for (int i = 0; i < REPORT_ERRORS; i++)
		sink_format(out, ",%s", report_errors[i].name);
}

static void csv_details(const struct action_row *row, struct sink *out)
{
	if (row->figures->numbers.total_count)
		sink_format(out, ",%s,%s,%s", text_microseconds(row->figures->lifetime_min).data,
			    text_microseconds(row->figures->lifetime_median).data,
			    text_microseconds(row->figures->lifetime_max).data);
	else
		sink_text(out, ",,,");
	sink_format(out, ",%" PRIu32 ",%" PRIu32, row->figures->threads, row->figures->processes);
}

static void csv_extra(const struct action_extra *extra, uint64_t value, struct sink *out)
{
	if (extra->kind == EXTRA_FACTOR)
		sink_format(out, ",%s", text_thousandths(value).data);
	else
		sink_format(out, ",%" PRIu64, value);
}

/* The label of the row's split, then its ids. */
static void csv_by(const struct report *report, const struct report_part *part, const struct action_row *row,
		   struct sink *out)
{
	const struct heap_window *window = report_window(report, part);
	char *by = heap_by_text(window, report_source(report)->table, row->by);
	sink_put(out, ',');
	csv_field(out, by);
	free(by);
	for (int i = 0; i < REPORT_BY_IDS; i++) {
		uint32_t id = report_by_ids[i].of(window, report_source(report)->table, row->by);
		if (report_by_ids[i].splits & 1u << window->by)
			sink_put(out, ',');
		if (id != HEAP_NONE)
			sink_format(out, "%" PRIu32, id);
	}
}

static void csv_by_names(const struct heap_window *window, struct sink *out)
{
	sink_format(out, ",%s", heap_by_name(window->by));
	for (int i = 0; i < REPORT_BY_IDS; i++)
		if (report_by_ids[i].splits & 1u << window->by)
			sink_format(out, ",%s", report_by_ids[i].name);
}

static void csv_row(const struct report *report, const struct report_part *part, const struct action_row *row,
		    struct sink *out)
{
	const struct action *action = part->action;
	csv_numbers(out, report, &row->figures->numbers);
	for (unsigned i = 0; i < report_extra_count(report, action); i++)
		csv_extra(&action->extra[i], row->figures->extra[i], out);
	if (!action->is_inclusive)
		csv_details(row, out);
	if (action->parent)
		sink_format(out, ",%" PRIu32, row->depth);
	if (report_window(report, part)->by != HEAP_BY_NONE)
		csv_by(report, part, row, out);
	sink_put(out, ',');
	csv_field(out, row->text);
	sink_put(out, '\n');
}

void report_csv(const struct report *report, struct sink *out)
{
	const struct report_part *part = &report->parts[0];
	csv_number_names(out, report);
	if (!part->action->groups) {
		sink_text(out, ",peak_at_us\n");
		csv_numbers(out, report, &report_source(report)->window->totals);
		sink_format(out, ",%s\n",
			    report_source_has_peak(report_source(report))
				    ? text_microseconds(report_source(report)->window->peak_at_ns).data
				    : "");
		return;
	}
	for (unsigned i = 0; i < report_extra_count(report, part->action); i++)
		sink_format(out, ",%s", part->action->extra[i].name);
	if (!part->action->is_inclusive)
		sink_text(out, ",lifetime_min_us,lifetime_median_us,lifetime_max_us,threads,processes");
	if (part->action->parent)
		sink_text(out, ",depth");
	if (report_window(report, part)->by != HEAP_BY_NONE)
		csv_by_names(report_window(report, part), out);
	sink_format(out, ",%s\n", part->action->label);
	for (size_t i = 0; i < part->rows.shown; i++)
		csv_row(report, part, part->rows.rows[i], out);
}
