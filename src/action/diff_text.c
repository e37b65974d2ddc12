/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "action/diff_report.h"
#include "action/losses.h"
#include "action/report_columns.h"
#include "base/grid.h"
#include "base/memory.h"
#include "base/text.h"

/* ---- numbers ---- */

static struct text amount_text(enum action_number number, long double amount)
{
	const uint64_t rounded = (uint64_t)(fabsl(amount) + 0.5L);
	return diff_is_size(number) ? text_bytes(rounded) : text_count(rounded);
}

/* A side's mean, with the deviation of its runs behind it. */
static struct text side_text(const struct diff_report *report, enum diff_side side, enum action_number number,
			     const struct diff_value *value)
{
	struct text text;
	const char *mark = value->mean != 0 && diff_side_is_sample(&report->diff, side) ? "~" : "";
	int length = snprintf(text.data, sizeof(text.data), "%s%.18s", mark, amount_text(number, value->mean).data);
	if (value->deviation > 0)
		snprintf(text.data + length, sizeof(text.data) - (size_t)length, " +-%.18s",
			 amount_text(number, value->deviation).data);
	return text;
}

static struct text change_text(const struct diff_report *report, enum action_number number, long double change)
{
	struct text text;
	snprintf(text.data, sizeof(text.data), "%s%s%.40s", change != 0 && diff_is_sample(&report->diff) ? "~" : "",
		 change > 0   ? "+"
		 : change < 0 ? "-"
			      : "",
		 amount_text(number, change).data);
	return text;
}

static struct text percent_text(const struct diff_change *change)
{
	struct text text = {""};
	double percent = diff_percent(change);
	if (change->change == 0 || isinf(percent))
		return text;
	snprintf(text.data, sizeof(text.data), fabs(percent) < 1000 ? "%+.1f %%" : "%+.0f %%", percent);
	return text;
}

static void change_cells(struct grid *grid, const struct diff_report *report, enum action_number number,
			 const struct diff_change *change)
{
	grid_cell(grid, change_text(report, number, change->change).data);
	grid_cell(grid, percent_text(change).data);
	for (int side = 0; side < DIFF_SIDES; side++)
		grid_cell(grid, side_text(report, (enum diff_side)side, number, &change->sides[side]).data);
}

/* ---- the head ---- */

/* Lines about one source, each with the name of its side before it. */
static void caveats(const struct diff_report *report, enum diff_side side, unsigned source, struct sink *out)
{
	struct action_input one = *report->diff.input;
	one.sources = &report->diff.input->sources[source];
	one.source_count = 1;
	struct sink to;
	sink_to_memory(&to);
	report_caveat_lines(&(struct report){.input = &one}, &to);
	char *lines = sink_take(&to, NULL);
	for (char *line = lines, *end; (end = strchr(line, '\n')); line = end + 1) {
		char *text = NULL;
		*end = 0;
		if (asprintf(&text, "  %s: %s", diff_side_name(side), line + strspn(line, " ")) < 0)
			memory_exhausted(0);
		style_lines(out, one.is_colored, STYLE_CAVEAT, text);
		free(text);
	}
	free(lines);
	uint32_t lent = heap_names_lent_count(one.sources->names);
	if (!lent)
		return;
	char said[120];
	snprintf(said, sizeof(said), "  %s: %s address%s named by another trace that has the same build-id",
		 diff_side_name(side), text_count(lent).data, lent == 1 ? " is" : "es are");
	style_lines(out, one.is_colored, STYLE_CAVEAT, said);
}

static void source_line(const struct diff_report *report, enum diff_side side, unsigned source, struct sink *out)
{
	const struct action_input *input = report->diff.input;
	const struct action_source *from = &input->sources[source];
	const struct trace_dictionary *dictionary = trace_dictionary(from->trace);
	struct text missing = losses_missing_text(dictionary);
	sink_format(out, "%s%s: %s%s: %s events, %" PRIu32 " process%s, %s%s%s\n",
		    style_begin(input->is_colored, STYLE_HEADING), diff_side_name(side), text_shown(from->path),
		    style_end(input->is_colored, STYLE_HEADING), text_count(dictionary->event_count).data,
		    dictionary->process_count, dictionary->process_count == 1 ? "" : "es",
		    text_duration(dictionary->duration_ns).data, *missing.data ? "; not complete: " : "", missing.data);
	if (from->window->range.from_ns > 0 || from->window->range.to_ns < from->table->duration_ns)
		sink_format(out, "   from %s us to %s us\n", text_microseconds(from->window->range.from_ns).data,
			    text_microseconds(from->window->range.to_ns).data);
}

static void head(const struct diff_report *report, struct sink *out)
{
	for (int side = 0; side < DIFF_SIDES; side++)
		for (unsigned i = 0; i < report->diff.runs[side]; i++) {
			unsigned source = diff_first_source(&report->diff, (enum diff_side)side) + i;
			source_line(report, (enum diff_side)side, source, out);
			caveats(report, (enum diff_side)side, source, out);
		}
	if (diff_is_of_other_programs(&report->diff))
		style_lines(out, report->diff.input->is_colored, STYLE_CAVEAT,
			    "  A and B are of different programs: only frames of common libraries match");
	if (report->basis != DIFF_AS_IS)
		sink_format(out, "  normalised by %s\n", diff_basis_name(report->basis));
	for (size_t i = 0; i < report->filter_count; i++)
		sink_format(out, "%s-%s%s%s%s", i ? " " : "  with ", report->filters[i].name,
			    *report->filters[i].text ? " " : "", text_shown(report->filters[i].text),
			    i + 1 == report->filter_count ? "\n" : "");
}

/* ---- totals ---- */

static void totals(const struct diff_report *report, struct sink *out)
{
	static const char *const titles[] = {"", ">change", ">", ">A", ">B", ""};
	struct grid grid = {.is_colored = report->diff.input->is_colored};
	grid_columns(&grid, sizeof(titles) / sizeof(*titles), titles);
	const struct action_sort *sort;
	for (unsigned i = 0; (sort = action_sort_at(i)); i++) {
		enum action_number number = action_sort_number(sort);
		if (!*sort->key || !diff_has_number(&report->diff, number))
			continue;
		const struct diff_change change = diff_of_totals(&report->diff, number);
		grid_row(&grid);
		grid_cell(&grid, sort->title);
		change_cells(&grid, report, number, &change);
		grid_cell(&grid, change.is_in_spread ? "in the spread" : "");
	}
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

/* ---- rows ---- */

static bool is_split(const struct diff_report *report)
{
	return report->diff.input->sources[0].window->by != HEAP_BY_NONE;
}

static void row_label(struct grid *grid, const struct action_row *row)
{
	enum { INDENT = 2, DEPTH_MAX = 60 };
	char room[TEXT_NAME_BYTES], *text = NULL;
	int indent = INDENT * (int)(row->depth < DEPTH_MAX ? row->depth : DEPTH_MAX);
	if (asprintf(&text, "%*s%s", indent, "", text_name(row->text, room)) < 0)
		memory_exhausted(0);
	grid_cell(grid, text);
	free(text);
}

static void row_cells(struct grid *grid, const struct diff_report *report, const struct diff_part *part,
		      const struct action_row *row)
{
	static const char *const marks[] = {[DIFF_IN_BOTH] = "", [DIFF_IS_NEW] = "new", [DIFF_IS_GONE] = "gone"};
	enum action_number number = action_sort_number(part->sort), companion;
	const struct diff_change change = diff_of_row(&report->diff, row, number);
	grid_row(grid);
	change_cells(grid, report, number, &change);
	if (diff_companion(number, &companion))
		grid_cell(grid, change_text(report, companion, diff_of_row(&report->diff, row, companion).change).data);
	grid_cell(grid, change.is_in_spread ? "in the spread" : marks[diff_row_state(&report->diff, row)]);
	if (is_split(report)) {
		char *by = diff_row_by(report, part, row);
		grid_cell(grid, by);
		free(by);
	}
	if (!part->action->lines) {
		row_label(grid, row);
		return;
	}
	char *lines = part->action->lines(report->diff.input, row->group);
	grid_detail(grid, lines);
	free(lines);
}

static void rows_columns(struct grid *grid, const struct diff_report *report, const struct diff_part *part)
{
	const char *titles[9] = {">change", ">", ">A", ">B"};
	unsigned count = 4;
	enum action_number companion;
	if (diff_companion(action_sort_number(part->sort), &companion))
		titles[count++] = diff_is_size(companion) ? ">size" : ">blocks";
	titles[count++] = "";
	if (is_split(report))
		titles[count++] = heap_by_name(report->diff.input->sources[0].window->by);
	if (!part->action->lines)
		titles[count++] = part->action->label;
	grid_columns(grid, count, titles);
	grid->styles[0] = STYLE_KEY;
}

/* `format` has one text, the number; nothing is written for 0. */
__attribute__((format(printf, 2, 0))) static void rows_note(struct sink *out, const char *format, uint64_t number)
{
	if (number)
		sink_format(out, format, text_count(number).data);
}

static void rows_heading(const struct diff_report *report, const struct diff_part *part, struct sink *out)
{
	const struct diff_rows *rows = &part->rows;
	char heading[160];
	snprintf(heading, sizeof(heading), "%s by change of %s", part->action->title, part->sort->title);
	sink_put(out, '\n');
	style_lines(out, report->diff.input->is_colored, STYLE_HEADING, heading);
	sink_format(out, "  %s row%s changed", text_count(rows->rows.count).data, rows->rows.count == 1 ? "" : "s");
	rows_note(out, ", %s only in B", rows->states[DIFF_IS_NEW]);
	rows_note(out, ", %s only in A", rows->states[DIFF_IS_GONE]);
	rows_note(out, ", %s did not", rows->unchanged);
	rows_note(out, "; %s matched by build-id and offset", rows->by_offset);
	sink_put(out, '\n');
	if (rows->rows.shown < rows->rows.count)
		sink_format(out, "  the first %s of them; -top N shows more\n", text_count(rows->rows.shown).data);
}

static void rows_text(const struct diff_report *report, const struct diff_part *part, struct sink *out)
{
	struct grid grid = {.is_colored = report->diff.input->is_colored};
	rows_heading(report, part, out);
	if (!part->rows.rows.shown)
		return;
	rows_columns(&grid, report, part);
	for (size_t i = 0; i < part->rows.rows.shown; i++)
		row_cells(&grid, report, part, part->rows.rows.rows[i]);
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

void diff_text(const struct diff_report *report, struct sink *out)
{
	head(report, out);
	sink_put(out, '\n');
	if (diff_report_is_empty(report))
		sink_text(out, "no difference\n\n");
	totals(report, out);
	for (unsigned i = 0; i < report->part_count; i++)
		if (report->parts[i].action->groups && !diff_report_is_empty(report))
			rows_text(report, &report->parts[i], out);
}
