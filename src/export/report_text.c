/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/caveats.h"
#include "action/report/losses.h"
#include "action/report/report_columns.h"
#include "base/grid.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/report.h"

/* The standard error of the number that rows are sorted by, in percent of it; "" where it is none. */
static struct text sort_error(const struct heap_numbers *from, const struct action_sort *sort)
{
	struct text text = {""};
	for (int i = 0; i < REPORT_ERRORS; i++) {
		uint64_t number = report_number_at(from, report_numbers[report_errors[i].number].offset);
		if (sort == action_sort_by(report_errors[i].number) && number)
			snprintf(text.data, sizeof(text.data), "%.1f %%",
				 100 * report_error_at(from, i) / (double)number);
	}
	return text;
}

struct text_total {
	const char *name;
	uint64_t count;
	struct text size;
	const struct action_sort *sort; /* by the size; NULL: there is none */
	const char *remark;
};

static void text_total(struct grid *grid, const struct report *report, const struct text_total *total)
{
	grid_row(grid);
	grid_cell(grid, total->name);
	grid_cell(grid, report_count(report_source(report), total->count).data);
	grid_cell(grid, total->size.data);
	if (report_is_sample(report))
		grid_cell(grid, sort_error(&report_source(report)->window->totals, total->sort).data);
	grid_cell(grid, total->remark);
}

static void text_totals(const struct report *report, struct sink *out)
{
	static const char *const titles[] = {"", ">blocks", ">size", ""}, *const sample_titles[] = {
										  "", ">blocks", ">size", ">error", ""};
	const struct heap_window *window = report_source(report)->window;
	const struct heap_numbers *totals = &window->totals;
	struct grid grid = {0};
	char moved[64], at[64];
	snprintf(moved, sizeof(moved), "%s moved",
		 report_count(report_source(report), totals->realloc_moved_count).data);
	snprintf(at, sizeof(at), "at %s", text_duration(window->peak_at_ns).data);
	bool is_peak_known = report_source_has_peak(report_source(report));
	const struct text_total rows[] = {
		{"total", totals->total_count, report_bytes(report_source(report), totals->total_bytes),
		 action_sort_by(ACTION_NUMBER_total_bytes), ""},
		{"outstanding", totals->outstanding_count,
		 report_bytes(report_source(report), totals->outstanding_bytes),
		 action_sort_by(ACTION_NUMBER_outstanding_bytes), "not freed"},
		{is_peak_known ? "peak" : NULL, totals->peak_count,
		 report_bytes(report_source(report), totals->peak_bytes), action_sort_by(ACTION_NUMBER_peak_bytes), at},
		{"realloc", totals->realloc_count, {""}, NULL, moved},
		{"temporary", totals->temporary_count, {""}, NULL, "freed by the thread's next event"},
	};
	unsigned count =
		sizeof(rows) / sizeof(*rows) -
		!report_source_has_number(report_source(report), offsetof(struct heap_numbers, temporary_count));
	if (report_is_sample(report))
		grid_columns(&grid, 5, sample_titles);
	else
		grid_columns(&grid, 4, titles);
	for (unsigned i = 0; i < count; i++)
		if (rows[i].name)
			text_total(&grid, report, &rows[i]);
	grid.layout = report->diff.input->layout;
	grid.is_text[0] = grid.is_text[grid.columns - 1] = true;
	grid.rank[grid.columns - 1] = 1;
	grid.names[grid.columns - 1] = "remarks";
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

/* The columns that all tables begin with; on a narrow line those of the highest rank are left out first, but never the
   number that rows are sorted by. */
static const struct {
	const char *title;
	const char *name; /* when it is left out; NULL: the title */
	enum action_number number;
	unsigned rank;
	bool is_size;
} columns[] = {
	{">outstanding", NULL, ACTION_NUMBER_outstanding_bytes, 2, true},
	{">blocks", "outstanding blocks", ACTION_NUMBER_outstanding_count, 5, false},
	{">total", NULL, ACTION_NUMBER_total_bytes, 3, true},
	{">blocks", "total blocks", ACTION_NUMBER_total_count, 6, false},
	{">at peak", NULL, ACTION_NUMBER_peak_bytes, 4, true},
	{">blocks", "blocks at peak", ACTION_NUMBER_peak_count, 7, false},
	{">realloc", NULL, ACTION_NUMBER_realloc_count, 10, false},
	{">temporary", NULL, ACTION_NUMBER_temporary_count, 9, false},
};
enum { COLUMN_COUNT = sizeof(columns) / sizeof(*columns), RANK_PAIR = 1, RANK_OWN = 1, RANK_LIFE = 8 };

static void text_column(struct grid *grid, const struct report *report, unsigned i, const struct heap_numbers *from)
{
	size_t offset = report_numbers[columns[i].number].offset;
	uint64_t number = report_number_at(from, offset);
	if (!report_source_has_number(report_source(report), offset))
		grid_cell(grid, "-");
	else
		grid_cell(grid, (columns[i].is_size ? report_bytes : report_count)(report_source(report), number).data);
}

static void text_extra(struct grid *grid, const struct action_extra *extra, uint64_t value)
{
	grid_cell(grid, extra->kind == EXTRA_BYTES    ? text_bytes(value).data
			: extra->kind == EXTRA_FACTOR ? text_thousandths(value).data
						      : text_count(value).data);
}

/* Of a tree, the text is indented, as long as that leaves room for names; deeper rows say how deep they are. */
void report_label(struct grid *grid, struct action_input *input, const struct action *action,
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
	grid_cell(grid, text);
	free(name);
	free(text);
}

static void text_row(struct grid *grid, const struct report *report, const struct report_part *part,
		     const struct action_row *row)
{
	const struct action *action = part->action;
	const struct heap_numbers *from = &row->figures->numbers;
	grid_row(grid);
	for (unsigned i = 0; i < COLUMN_COUNT; i++)
		text_column(grid, report, i, from);
	if (report_is_sample(report))
		grid_cell(grid, sort_error(from, part->sort).data);
	for (unsigned i = 0; i < report_extra_count(report, action); i++)
		text_extra(grid, &action->extra[i], row->figures->extra[i]);
	if (!action->is_inclusive)
		grid_cell(grid, from->total_count ? text_duration(row->figures->lifetime_median).data : "-");
	if (report_window(report, part)->by != HEAP_BY_NONE) {
		char *by = heap_by_text(report_window(report, part), report_source(report)->table, row->by);
		grid_cell(grid, by);
		free(by);
	}
	if (!action->lines) {
		report_label(grid, report->diff.input, action, row);
		return;
	}
	char *lines = action->lines(report->diff.input, row->group);
	grid_detail(grid, lines);
	free(lines);
}

/* A number of this action only is the reason to ask for the action. */
static void text_own_columns(const char **titles, unsigned *count, const struct report *report,
			     const struct report_part *part)
{
	if (report_is_sample(report))
		titles[(*count)++] = ">error";
	for (unsigned i = 0; i < report_extra_count(report, part->action); i++)
		titles[(*count)++] = part->action->extra[i].title;
}

static void text_rank(struct grid *grid, const struct report_part *part, unsigned own, unsigned own_end)
{
	for (unsigned i = 0; i < COLUMN_COUNT; i++) {
		bool is_sort = part->sort == action_sort_by(columns[i].number);
		bool is_pair = i % 2 ? part->sort == action_sort_by(columns[i - 1].number)
				     : part->sort == action_sort_by(columns[i + 1].number);
		grid->styles[i] = is_sort ? STYLE_KEY : STYLE_PLAIN;
		grid->rank[i] = is_sort ? 0 : is_pair && i < COLUMN_COUNT - 2 ? RANK_PAIR : columns[i].rank;
		grid->names[i] = columns[i].name;
	}
	for (unsigned i = own; i < own_end; i++)
		grid->rank[i] = RANK_OWN;
}

static void text_columns(struct grid *grid, const struct report *report, const struct report_part *part)
{
	const char *titles[COLUMN_COUNT + ACTION_EXTRA_MAX + 4];
	unsigned count = 0, own, life;
	while (count < COLUMN_COUNT) {
		titles[count] = columns[count].title;
		count++;
	}
	text_own_columns(titles, &count, report, part);
	own = count;
	if (!part->action->is_inclusive)
		titles[count++] = ">median life";
	life = count;
	if (report_window(report, part)->by != HEAP_BY_NONE)
		titles[count++] = heap_by_name(report_window(report, part)->by);
	if (!part->action->lines)
		titles[count++] = part->action->label;
	grid_columns(grid, count, titles);
	text_rank(grid, part, COLUMN_COUNT, own);
	for (unsigned i = own; i < life; i++)
		grid->rank[i] = RANK_LIFE;
	for (unsigned i = life; i < count; i++)
		grid->is_text[i] = true;
}

/* Lines that are made of any words, to be broken where they are too wide. */
static void text_lines(const struct report *report, struct sink *lines, struct sink *out)
{
	char *text = sink_take(lines, NULL);
	text_wrap(out, text, &report->diff.input->layout);
	free(text);
}

static void text_part(const struct report *report, const struct report_part *part, struct sink *out)
{
	struct grid grid = {0};
	char heading[160];
	bool is_split = report_window(report, part)->by != HEAP_BY_NONE;
	size_t cut = part->rows.count - part->rows.shown;
	snprintf(heading, sizeof(heading), "%s%s%s by %s", part->action->title, is_split ? " and " : "",
		 heap_by_name(report_window(report, part)->by), part->sort->title);
	sink_put(out, '\n');
	text_wrap_styled(out, heading, &report->diff.input->layout, report->diff.input->is_colored, STYLE_HEADING);
	struct sink line;
	sink_to_memory(&line);
	if (cut)
		sink_format(&line, "  the first %s of %s rows; %s %s left out\n", text_count(part->rows.shown).data,
			    text_count(part->rows.count).data, text_count(cut).data, cut == 1 ? "is" : "are");
	text_lines(report, &line, out);
	grid.is_colored = report->diff.input->is_colored;
	grid.layout = report->diff.input->layout;
	text_columns(&grid, report, part);
	for (size_t i = 0; i < part->rows.shown; i++)
		text_row(&grid, report, part, part->rows.rows[i]);
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

static void text_filters(const struct report *report, struct sink *out)
{
	struct sink line;
	sink_to_memory(&line);
	for (size_t i = 0; i < report->filter_count; i++)
		sink_format(&line, "%s-%s%s%s", i ? " " : "  with ", report->filters[i].name,
			    *report->filters[i].text ? " " : "", text_shown(report->filters[i].text));
	text_lines(report, &line, out);
}

/* The style is that of the path only, so that it is no part of the line's width: a path that fills a line has it by
   itself. */
void report_heading(const struct report *report, const char *lead, struct sink *out)
{
	enum { SHARE = 2 };
	const struct trace_dictionary *dictionary = trace_dictionary(report_source(report)->trace);
	const struct text_layout *layout = &report->diff.input->layout;
	struct text missing = losses_missing_text(dictionary);
	struct arena arena = {0};
	struct sink line;
	bool is_cut = layout->width && !layout->has_full_names;
	const char *path = text_fit(&arena, text_shown(report_source(report)->path),
				    is_cut ? layout->width / SHARE : UINT32_MAX, layout->has_unicode);
	sink_to_memory(&line);
	sink_format(&line, "%s%s: %s events, %" PRIu32 " process%s, %s%s%s\n", lead, path,
		    text_count(dictionary->event_count).data, dictionary->process_count,
		    dictionary->process_count == 1 ? "" : "es", text_duration(dictionary->duration_ns).data,
		    *missing.data ? "; not complete: " : "", missing.data);
	char *text = sink_take(&line, NULL);
	sink_to_memory(&line);
	text_wrap(&line, text, layout);
	free(text);
	text = sink_take(&line, NULL);
	size_t before = strlen(lead), length = before + strlen(path);
	length = strncmp(text + before, path, length - before) ? 0 : length;
	sink_format(out, "%s%.*s%s%s", style_begin(report->diff.input->is_colored, STYLE_HEADING), (int)length, text,
		    style_end(report->diff.input->is_colored, STYLE_HEADING), text + length);
	free(text);
	arena_fini(&arena);
}

void report_text(const struct report *report, struct sink *out)
{
	const struct heap_range range = report_source(report)->window->range;
	report_heading(report, "", out);
	caveats_text(out, report->diff.input);
	struct sink line;
	sink_to_memory(&line);
	if (report->has_range)
		sink_format(&line, "  in the range from %s us to %s us\n", text_microseconds(range.from_ns).data,
			    text_microseconds(range.to_ns).data);
	text_lines(report, &line, out);
	text_filters(report, out);
	sink_put(out, '\n');
	text_totals(report, out);
	for (unsigned i = 0; i < report->part_count; i++)
		if (report->parts[i].action->groups)
			text_part(report, &report->parts[i], out);
}
