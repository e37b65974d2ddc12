/* SPDX-License-Identifier: MIT */
/* A report for people. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/diff/diff_words.h"
#include "action/report/report_columns.h"
#include "base/grid.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/export.h"
#include "export/report_head.h"
#include "export/report_values.h"
#include "query/by.h"

/* ---- tables ---- */

/* A table for people. Each of its columns is told once: for the header its title and its place, for a row its cell. */
struct text_table {
	struct grid grid;
	const char *titles[GRID_COLUMNS_MAX];
	unsigned count; /* columns of the header */
	bool is_header;
};

struct text_column {
	const char *title;
	const char *name; /* when it is left out; NULL: the title */
	unsigned rank;    /* on a narrow line those of the highest rank are left out first; 0: never */
	bool is_key, is_text;
};

#define COLUMN(...) \
	(struct text_column) \
	{ \
		.title = __VA_ARGS__ \
	}

/* Add the column to the header and return false; or return true: the row's next cell is to be added. */
static bool column(struct text_table *table, struct text_column column)
{
	const unsigned i = table->count;
	if (!table->is_header)
		return true;
	table->titles[i] = column.title;
	table->grid.names[i] = column.name;
	table->grid.rank[i] = column.rank;
	table->grid.styles[i] = column.is_key ? STYLE_KEY : STYLE_PLAIN;
	table->grid.is_text[i] = column.is_text;
	table->count++;
	return false;
}

static void cell(struct text_table *table, struct text_column of, const char *text)
{
	if (column(table, of))
		grid_cell(&table->grid, text);
}

static void table_begin(struct text_table *table, const struct report *report)
{
	*table = (struct text_table){.is_header = true};
	table->grid.is_colored = report->diff.input->is_colored;
	table->grid.layout = report->diff.input->layout;
}

/* The first row ends the header. */
static void table_row(struct text_table *table)
{
	if (table->is_header)
		grid_columns(&table->grid, table->count, table->titles);
	table->is_header = false;
	grid_row(&table->grid);
}

static void table_end(struct text_table *table, struct sink *out)
{
	if (table->is_header)
		grid_columns(&table->grid, table->count, table->titles);
	grid_print(&table->grid, out, 2);
	grid_fini(&table->grid);
}

/* ---- one side ---- */

/* Of the number that rows are sorted by: the standard error in percent of it; "" where it is none. */
static struct text sort_error(const struct heap_numbers *from, const struct action_sort *sort)
{
	struct text text = {""};
	for (int i = 0; i < REPORT_ERRORS; i++) {
		uint64_t number = report_number_at(from, report_errors[i].number);
		if (sort == action_sort_by(report_errors[i].number) && number)
			snprintf(text.data, sizeof(text.data), "%.1f %%",
				 100 * report_error_at(from, i) / (double)number);
	}
	return text;
}

/* The numbers that all rows begin with, in pairs of a size and its blocks. */
static const struct row_number {
	struct text_column column;
	enum action_number number;
} row_numbers[] = {
	{{">outstanding", .rank = 2}, ACTION_NUMBER_outstanding_bytes},
	{{">blocks", "outstanding blocks", .rank = 5}, ACTION_NUMBER_outstanding_count},
	{{">total", .rank = 3}, ACTION_NUMBER_total_bytes},
	{{">blocks", "total blocks", .rank = 6}, ACTION_NUMBER_total_count},
	{{">at peak", .rank = 4}, ACTION_NUMBER_peak_bytes},
	{{">blocks", "blocks at peak", .rank = 7}, ACTION_NUMBER_peak_count},
	{{">realloc", .rank = 10}, ACTION_NUMBER_realloc_count},
	{{">temporary", .rank = 9}, ACTION_NUMBER_temporary_count},
};
enum { ROW_NUMBER_COUNT = sizeof(row_numbers) / sizeof(*row_numbers), RANK_PAIR = 1, RANK_OWN = 1, RANK_LIFE = 8 };

/* The number that sorts the rows is never left out, and the other one of its pair last. */
static struct text_column number_column(const struct row_number *of, const struct action_sort *sort)
{
	const enum action_number sorting = action_sort_number(sort);
	struct text_column column = of->column;
	enum action_number companion;
	column.is_key = of->number == sorting;
	if (column.is_key)
		column.rank = 0;
	else if (diff_companion(of->number, &companion) && companion == sorting)
		column.rank = RANK_PAIR;
	return column;
}

static void number_cells(struct text_table *table, const struct report *report, const struct report_part *part,
			 const struct heap_numbers *from)
{
	const struct action_source *source = report_source(report);
	for (const struct row_number *of = row_numbers; of < row_numbers + ROW_NUMBER_COUNT; of++) {
		const uint64_t number = report_number_at(from, of->number);
		const bool is_known = report_source_has_number(source, of->number);
		cell(table, number_column(of, part->sort),
		     is_known ? (diff_is_size(of->number) ? report_bytes : report_count)(source, number).data : "-");
	}
}

/* A number of this action only is the reason to ask for the action. */
static void own_cells(struct text_table *table, const struct report *report, const struct report_part *part,
		      const struct action_figures *figures)
{
	const struct action *action = part->action;
	number_cells(table, report, part, &figures->numbers);
	if (report_is_sample(report))
		cell(table, COLUMN(">error", .rank = RANK_OWN), sort_error(&figures->numbers, part->sort).data);
	for (unsigned i = 0; i < report_extra_count(report, action); i++) {
		static struct text (*const texts[])(uint64_t) = {
			[EXTRA_COUNT] = text_count, [EXTRA_BYTES] = text_bytes, [EXTRA_FACTOR] = text_thousandths};
		cell(table, COLUMN(action->extra[i].title, .rank = RANK_OWN),
		     texts[action->extra[i].kind](figures->extra[i]).data);
	}
	if (!action->is_inclusive)
		cell(table, COLUMN(">median life", .rank = RANK_LIFE),
		     figures->numbers.total_count ? text_duration(figures->lifetime_median).data : "-");
}

struct total {
	const char *name;
	enum action_number number; /* its size stands beside it, if it has one */
	const char *remark;
};

static void total_cells(struct text_table *table, const struct report *report, const struct total *total)
{
	const struct action_source *source = report_source(report);
	const struct heap_numbers *from = &source->window->totals;
	const uint64_t count = report_number_at(from, total->number);
	enum action_number size;
	const bool has_size = diff_companion(total->number, &size);
	const uint64_t bytes = has_size ? report_number_at(from, size) : 0;
	cell(table, COLUMN("", .is_text = true), total->name);
	cell(table, COLUMN(">blocks"), report_count(source, count).data);
	cell(table, COLUMN(">size"), has_size ? report_bytes(source, bytes).data : "");
	if (report_is_sample(report))
		cell(table, COLUMN(">error"), has_size ? sort_error(from, action_sort_by(size)).data : "");
	cell(table, COLUMN("", "remarks", .rank = 1, .is_text = true), total->remark);
}

static void totals(const struct report *report, struct sink *out)
{
	const struct action_source *source = report_source(report);
	const struct heap_window *window = source->window;
	struct text_table table;
	char moved[64], at[64];
	const struct total lines[] = {
		{"total", ACTION_NUMBER_total_count, ""},
		{"outstanding", ACTION_NUMBER_outstanding_count, "not freed"},
		{"peak", ACTION_NUMBER_peak_count, at},
		{"realloc", ACTION_NUMBER_realloc_count, moved},
		{"temporary", ACTION_NUMBER_temporary_count, "freed by the thread's next event"},
	};
	snprintf(moved, sizeof(moved), "%s moved", report_count(source, window->totals.realloc_moved_count).data);
	snprintf(at, sizeof(at), "at %s", text_duration(window->peak_at_ns).data);
	table_begin(&table, report);
	total_cells(&table, report, lines);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (report_source_has_number(source, lines[i].number)) {
			table_row(&table);
			total_cells(&table, report, &lines[i]);
		}
	table_end(&table, out);
}

static void part_heading(const struct report *report, const struct report_part *part, struct sink *out)
{
	const enum heap_by by = report->diff.input->sources->window->by;
	const size_t cut = part->rows.count - part->rows.shown;
	struct sink lines;
	sink_to_memory(&lines);
	sink_format(&lines, "%s%s%s by %s", part->action->title, by != HEAP_BY_NONE ? " and " : "", heap_by_name(by),
		    part->sort->title);
	report_lines(report, STYLE_HEADING, &lines, out);
	sink_to_memory(&lines);
	if (cut)
		sink_format(&lines, "  the first %s of %s rows; %s %s left out\n", text_count(part->rows.shown).data,
			    text_count(part->rows.count).data, text_count(cut).data, cut == 1 ? "is" : "are");
	if (part->action->note)
		part->action->note(report->diff.input, &part->rows, &lines);
	report_lines(report, STYLE_PLAIN, &lines, out);
}

/* ---- two sides ---- */

/* A side's mean, with the deviation of its runs behind it. */
static struct text side_text(const struct report *report, enum diff_side side, enum action_number number,
			     const struct diff_value *value)
{
	struct text text;
	const char *mark = value->mean != 0 && diff_side_is_sample(&report->diff, side) ? "~" : "";
	int length =
		snprintf(text.data, sizeof(text.data), "%s%.18s", mark, diff_text_amount(number, value->mean).data);
	if (value->deviation > 0)
		snprintf(text.data + length, sizeof(text.data) - (size_t)length, " +-%.18s",
			 diff_text_amount(number, value->deviation).data);
	return text;
}

static struct text change_text(const struct report *report, enum action_number number, long double change)
{
	struct text text;
	snprintf(text.data, sizeof(text.data), "%s%s%.40s", change != 0 && diff_is_sample(&report->diff) ? "~" : "",
		 change > 0   ? "+"
		 : change < 0 ? "-"
			      : "",
		 diff_text_amount(number, change).data);
	return text;
}

/* On a narrow line, rows lose the sides before the percentage, and totals the percentage first. */
static void change_cells(struct text_table *table, const struct report *report, enum action_number number,
			 const struct diff_change *change, bool is_row)
{
	cell(table, COLUMN(">change", .is_key = is_row), change_text(report, number, change->change).data);
	cell(table, COLUMN(">", "percent", is_row ? 1 : 4), diff_text_percent(change).data);
	cell(table, COLUMN(">A", .rank = is_row ? 2 : 3),
	     side_text(report, DIFF_A, number, &change->sides[DIFF_A]).data);
	cell(table, COLUMN(">B", .rank = 2), side_text(report, DIFF_B, number, &change->sides[DIFF_B]).data);
}

static void changed_total_cells(struct text_table *table, const struct report *report, const struct action_sort *sort)
{
	const enum action_number number = action_sort_number(sort);
	const struct diff_change change = diff_of_totals(&report->diff, number);
	cell(table, COLUMN(""), sort->title);
	change_cells(table, report, number, &change, false);
	cell(table, COLUMN("", "spread", .rank = 1), change.is_in_spread ? "in spread" : "");
}

static void changed_totals(const struct report *report, struct sink *out)
{
	struct text_table table;
	const struct action_sort *sort;
	table_begin(&table, report);
	changed_total_cells(&table, report, action_sort_at(0));
	for (unsigned i = 0; (sort = action_sort_at(i)); i++)
		if (*sort->key && diff_has_number(&report->diff, action_sort_number(sort))) {
			table_row(&table);
			changed_total_cells(&table, report, sort);
		}
	table_end(&table, out);
}

/* The header has no row. */
static void changed_cells(struct text_table *table, const struct report *report, const struct report_part *part,
			  const struct action_row *row)
{
	static const char *const marks[] = {[DIFF_IN_BOTH] = "", [DIFF_IS_NEW] = "new", [DIFF_IS_GONE] = "gone"};
	enum action_number number = action_sort_number(part->sort), companion;
	const struct diff_change change = report_change(report, row, number);
	change_cells(table, report, number, &change, true);
	if (diff_companion(number, &companion))
		cell(table, COLUMN(diff_is_size(companion) ? ">size" : ">blocks", .rank = 3),
		     change_text(report, companion, report_change(report, row, companion).change).data);
	if (column(table, COLUMN("", .is_text = true)))
		grid_cell(&table->grid, change.is_in_spread ? "in spread" : marks[diff_row_state(&report->diff, row)]);
}

/* `format` has one text, the number; nothing is written for 0. */
__attribute__((format(printf, 2, 0))) static void rows_note(struct sink *out, const char *format, uint64_t number)
{
	if (number)
		sink_format(out, format, text_count(number).data);
}

/* The options with the keys by which the totals changed: other orders that show something. */
static void changed_keys(const struct report *report, const struct report_part *part, struct sink *out)
{
	const struct action_sort *sort;
	/* "frames-inclusive" is two options, and "callers" has a word of its own. */
	const char *name = part->action->name, *rest = strchr(name, '-');
	rest = !strcmp(name, "callers") ? "FUNCTION" : rest ? rest : "";
	const int length = (int)strcspn(name, "-");
	const char *before = ": ", *verb = "shows changes of ";
	for (unsigned i = 0; (sort = action_sort_at(i)); i++) {
		enum action_number number = action_sort_number(sort);
		if (!diff_has_number(&report->diff, number) || diff_of_totals(&report->diff, number).change == 0)
			continue;
		sink_format(out, "%s-%.*s%s%s %s %s%s", before, length, name, *rest ? " " : "", rest, sort->key, verb,
			    sort->title);
		before = ", ";
		verb = "of ";
	}
}

static void changed_heading(const struct report *report, const struct report_part *part, struct sink *out)
{
	const struct action_rows *rows = &part->rows;
	const struct diff_counts *counts = &part->counts;
	struct sink lines;
	sink_to_memory(&lines);
	sink_format(&lines, "%s by change of %s", part->action->title, part->sort->title);
	report_lines(report, STYLE_HEADING, &lines, out);
	sink_to_memory(&lines);
	sink_format(&lines, "  %s row%s changed", text_count(rows->count).data, rows->count == 1 ? "" : "s");
	rows_note(&lines, ", %s only in B", counts->states[DIFF_IS_NEW]);
	rows_note(&lines, ", %s only in A", counts->states[DIFF_IS_GONE]);
	rows_note(&lines, ", %s did not", counts->unchanged);
	rows_note(&lines, "; %s matched by build-id and offset", counts->by_offset);
	sink_put(&lines, '\n');
	const size_t others = rows->count - counts->changed_by_sort;
	if (others) {
		sink_format(&lines, "  %s of them not in %s", text_count(others).data, part->sort->title);
		if (!counts->changed_by_sort)
			changed_keys(report, part, &lines);
		sink_put(&lines, '\n');
	}
	if (rows->shown < counts->changed_by_sort)
		sink_format(&lines, "  the first %s rows; -top N shows more\n", text_count(rows->shown).data);
	report_lines(report, STYLE_PLAIN, &lines, out);
}

/* ---- rows ---- */

/* Of a tree, the text is indented, as long as that leaves room for names; deeper rows say how deep they are. */
static void label_cell(struct text_table *table, struct action_input *input, const struct action *action,
		       const struct action_row *row)
{
	enum { INDENT = 2, DEPTH_MAX = 60, SHARE = 8 };
	const struct text_layout *layout = &input->layout;
	unsigned deepest = layout->width && !layout->has_full_names ? layout->width / SHARE : DEPTH_MAX;
	unsigned depth = row->depth < deepest ? row->depth : deepest;
	char *name = action->label_text ? action->label_text(input, row->group) : NULL, number[16] = "", *text = NULL;
	if (row->depth > deepest)
		snprintf(number, sizeof(number), "[%" PRIu32 "] ", row->depth);
	if (asprintf(&text, "%*s%s%s", (int)(INDENT * depth), "", number, name ? name : row->text) < 0)
		memory_exhausted(0);
	grid_cell(&table->grid, text);
	free(name);
	free(text);
}

/* The header has no row. */
static void row_cells(struct text_table *table, const struct report *report, const struct report_part *part,
		      const struct action_row *row)
{
	static const struct action_figures none;
	const struct action *action = part->action;
	const enum heap_by by = report->diff.input->sources->window->by;
	if (report_is_diff(report))
		changed_cells(table, report, part, row);
	else
		own_cells(table, report, part, row ? row->figures : &none);
	if (by != HEAP_BY_NONE && column(table, COLUMN(heap_by_name(by), .is_text = true))) {
		char *label = report_row_by(report, part, row);
		grid_cell(&table->grid, label);
		free(label);
	}
	if (!action->lines && column(table, COLUMN(action->label, .is_text = true)))
		label_cell(table, report->diff.input, action, row);
	if (action->lines && row) {
		char *lines = action->lines(report->diff.input, row->group);
		grid_detail(&table->grid, lines);
		free(lines);
	}
}

static void part_put(const struct report *report, const struct report_part *part, struct sink *out)
{
	struct text_table table;
	size_t shown = part->rows.shown;
	sink_put(out, '\n');
	(report_is_diff(report) ? changed_heading : part_heading)(report, part, out);
	if (report_is_diff(report)) {
		/* Rows that changed in other numbers only stand behind the others. */
		shown = part->counts.changed_by_sort < shown ? part->counts.changed_by_sort : shown;
		if (!shown)
			return;
	}
	table_begin(&table, report);
	row_cells(&table, report, part, NULL);
	for (size_t i = 0; i < shown; i++) {
		table_row(&table);
		row_cells(&table, report, part, part->rows.rows[i]);
	}
	table_end(&table, out);
}

void report_text(const struct report *report, struct sink *out)
{
	const bool is_same = report_is_diff(report) && report_is_empty(report);
	report_head(report, out);
	sink_put(out, '\n');
	if (is_same)
		sink_text(out, "no difference\n\n");
	(report_is_diff(report) ? changed_totals : totals)(report, out);
	for (unsigned i = 0; i < report->part_count && !is_same; i++)
		if (report->parts[i].action->groups)
			part_put(report, &report->parts[i], out);
}
