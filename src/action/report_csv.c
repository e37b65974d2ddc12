/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/report_columns.h"
#include "base/grid.h"
#include "base/text.h"

static void csv_numbers(FILE *out, const struct report *report, const struct heap_numbers *from)
{
	for (int i = 0; i < REPORT_NUMBERS; i++) {
		if (i)
			putc(',', out);
		if (report_has_number(report, report_numbers[i].offset))
			fprintf(out, "%" PRIu64, report_number_at(from, report_numbers[i].offset));
	}
	if (!report_is_sample(report))
		return;
	fprintf(out, ",%" PRIu64, from->recorded_count);
	for (int i = 0; i < REPORT_ERRORS; i++)
		fprintf(out, ",%.0f", report_error_at(from, i));
}

static void csv_number_names(FILE *out, const struct report *report)
{
	for (int i = 0; i < REPORT_NUMBERS; i++)
		fprintf(out, i ? ",%s" : "%s", report_numbers[i].name);
	if (!report_is_sample(report))
		return;
	fputs(",recorded_count", out);
	for (int i = 0; i < REPORT_ERRORS; i++)
		fprintf(out, ",%s", report_errors[i].name);
}

static void csv_details(const struct action_row *row, FILE *out)
{
	if (row->numbers.total_count)
		fprintf(out, ",%s,%s,%s", text_microseconds(row->lifetime_min).data,
			text_microseconds(row->lifetime_median).data, text_microseconds(row->lifetime_max).data);
	else
		fputs(",,,", out);
	fprintf(out, ",%" PRIu32 ",%" PRIu32, row->threads, row->processes);
}

static void csv_extra(const struct action_extra *extra, uint64_t value, FILE *out)
{
	if (extra->kind == EXTRA_FACTOR)
		fprintf(out, ",%s", text_thousandths(value).data);
	else
		fprintf(out, ",%" PRIu64, value);
}

/* What the rows are split by, then its ids. */
static void csv_by(const struct report *report, const struct report_part *part, const struct action_row *row, FILE *out)
{
	const struct heap_window *window = part->window;
	char *by = heap_by_text(window, report->source->table, row->by);
	putc(',', out);
	csv_field(out, by);
	free(by);
	for (int i = 0; i < REPORT_BY_IDS; i++) {
		uint32_t id = report_by_ids[i].of(window, report->source->table, row->by);
		if (report_by_ids[i].splits & 1u << window->by)
			putc(',', out);
		if (id != HEAP_NONE)
			fprintf(out, "%" PRIu32, id);
	}
}

static void csv_by_names(const struct heap_window *window, FILE *out)
{
	fprintf(out, ",%s", heap_by_name(window->by));
	for (int i = 0; i < REPORT_BY_IDS; i++)
		if (report_by_ids[i].splits & 1u << window->by)
			fprintf(out, ",%s", report_by_ids[i].name);
}

static void csv_row(const struct report *report, const struct report_part *part, const struct action_row *row,
		    FILE *out)
{
	const struct action *action = part->action;
	csv_numbers(out, report, &row->numbers);
	for (unsigned i = 0; i < report_extra_count(report, action); i++)
		csv_extra(&action->extra[i], row->extra[i], out);
	if (!action->is_inclusive)
		csv_details(row, out);
	if (action->parent)
		fprintf(out, ",%" PRIu32, row->depth);
	if (part->window->by != HEAP_BY_NONE)
		csv_by(report, part, row, out);
	putc(',', out);
	csv_field(out, row->text);
	putc('\n', out);
}

void report_csv(const struct report *report, FILE *out)
{
	const struct report_part *part = &report->parts[0];
	csv_number_names(out, report);
	if (!part->action->groups) {
		fputs(",peak_at_us\n", out);
		csv_numbers(out, report, &report->source->window->totals);
		fprintf(out, ",%s\n",
			report_has_peak(report) ? text_microseconds(report->source->window->peak_at_ns).data : "");
		return;
	}
	for (unsigned i = 0; i < report_extra_count(report, part->action); i++)
		fprintf(out, ",%s", part->action->extra[i].name);
	if (!part->action->is_inclusive)
		fputs(",lifetime_min_us,lifetime_median_us,lifetime_max_us,threads,processes", out);
	if (part->action->parent)
		fputs(",depth", out);
	if (part->window->by != HEAP_BY_NONE)
		csv_by_names(part->window, out);
	fprintf(out, ",%s\n", part->action->label);
	for (size_t i = 0; i < part->rows.shown; i++)
		csv_row(report, part, part->rows.rows[i], out);
}
