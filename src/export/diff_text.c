/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/diff/diff_words.h"
#include "action/report/caveats.h"
#include "action/report/culled.h"
#include "action/report/report_columns.h"
#include "base/grid.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/report.h"

/* ---- numbers ---- */

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

static void change_cells(struct grid *grid, const struct report *report, enum action_number number,
			 const struct diff_change *change)
{
	grid_cell(grid, change_text(report, number, change->change).data);
	grid_cell(grid, diff_text_percent(change).data);
	for (int side = 0; side < DIFF_SIDES; side++)
		grid_cell(grid, side_text(report, (enum diff_side)side, number, &change->sides[side]).data);
}

/* ---- the head ---- */

/* Write lines that say what keeps numbers from being exact, or rows from matching. */
static void caveat_lines(const struct report *report, struct sink *lines, struct sink *out)
{
	const struct action_input *input = report->diff.input;
	char *text = sink_take(lines, NULL);
	if (*text)
		text_wrap_styled(out, text, &input->layout, input->is_colored, STYLE_CAVEAT);
	free(text);
}

/* Write lines that are made of any words. */
static void plain_lines(const struct report *report, struct sink *lines, struct sink *out)
{
	char *text = sink_take(lines, NULL);
	if (*text)
		text_wrap(out, text, &report->diff.input->layout);
	free(text);
}

static char *source_lines(const struct report *report, unsigned source)
{
	const struct action_input *input = report->diff.input;
	const uint32_t lent = heap_names_lent_count(input->sources[source].names);
	struct sink to;
	sink_to_memory(&to);
	caveats_lines(&to, &input->sources[source], input->asks_packages);
	if (lent)
		sink_format(&to, "%s address%s named by another trace that has the same build-id\n",
			    text_count(lent).data, lent == 1 ? " is" : "es are");
	return sink_take(&to, NULL);
}

static bool has_line(const char *lines, const char *line)
{
	size_t length = strlen(line);
	for (; *lines; lines += strcspn(lines, "\n") + (strchr(lines, '\n') != NULL))
		if (strcspn(lines, "\n") == length && !strncmp(lines, line, length))
			return true;
	return false;
}

/* Lines about one source, each with the name of its side before it. A window of the first source's trace has only lines
   that this one has not. */
static void caveats(const struct report *report, enum diff_side side, unsigned source, struct sink *out)
{
	const struct action_source *sources = report->diff.input->sources;
	bool is_known = source > 0 && sources[source].trace == sources[0].trace;
	char *lines = source_lines(report, source), *known = is_known ? source_lines(report, 0) : NULL;
	struct sink to;
	sink_to_memory(&to);
	for (char *line = lines, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		if (!known || !has_line(known, line))
			sink_format(&to, "  %s: %s\n", diff_side_name(side), line + strspn(line, " "));
	}
	free(known);
	free(lines);
	caveat_lines(report, &to, out);
}

static void source_head(const struct report *report, enum diff_side side, unsigned source, struct sink *out)
{
	const struct action_source *from = &report->diff.input->sources[source];
	struct action_input one = *report->diff.input;
	char lead[4];
	one.sources = &report->diff.input->sources[source];
	one.source_count = 1;
	snprintf(lead, sizeof(lead), "%s: ", diff_side_name(side));
	report_heading(&(struct report){.diff = {.input = &one}}, lead, out);
	if (from->window->range.from_ns > 0 || from->window->range.to_ns < from->table->duration_ns)
		sink_format(out, "   from %s us to %s us\n", text_microseconds(from->window->range.from_ns).data,
			    text_microseconds(from->window->range.to_ns).data);
	caveats(report, side, source, out);
}

static void list_images(const struct report *report, struct sink *out, const char *const *names, size_t count,
			const char *before, const char *behind)
{
	enum { NAMES_MAX = 5 };
	struct sink to;
	sink_to_memory(&to);
	for (size_t i = 0; i < count && i < NAMES_MAX; i++)
		sink_format(&to, "%s%s", i ? ", " : before, text_shown(names[i]));
	if (count > NAMES_MAX)
		sink_format(&to, " and %zu more images", count - NAMES_MAX);
	sink_text(&to, count ? behind : "");
	caveat_lines(report, &to, out);
}

static void versions(const struct report *report, struct sink *out)
{
	size_t count;
	const char *const *names = heap_names_versioned(action_names(report->diff.input), &count);
	list_images(report, out, names, count, "  A and B have other versions of ", "");
}

static void other_builds(const struct report *report, struct sink *out)
{
	size_t count;
	char **names = diff_other_builds(&report->diff, &count);
	list_images(report, out, (const char *const *)names, count, "  A and B have other builds, without symbols, of ",
		    ": their frames match by nothing");
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

static void factors(const struct report *report, struct sink *out)
{
	enum { SHOWN_MAX = 8 };
	const struct diff *diff = &report->diff;
	const unsigned count = diff->input->source_count;
	sink_format(out, "  normalised by %s: ", diff_basis_name(report->basis));
	if (count == DIFF_SIDES) {
		sink_format(out, "B's numbers are multiplied by %.4Lg\n", diff->scales[DIFF_B]);
		return;
	}
	sink_text(out, "the runs are multiplied by ");
	for (unsigned i = 0; i < count && i < SHOWN_MAX; i++)
		sink_format(out, "%s%.4Lg", !i ? "" : i == diff->runs[DIFF_A] ? "; " : ", ", diff->scales[i]);
	sink_text(out, count > SHOWN_MAX ? ", ...\n" : "\n");
}

static void head(const struct report *report, struct sink *out)
{
	struct sink lines;
	for (int side = 0; side < DIFF_SIDES; side++)
		for (unsigned i = 0; i < report->diff.runs[side]; i++) {
			unsigned source = diff_first_source(&report->diff, (enum diff_side)side) + i;
			source_head(report, (enum diff_side)side, source, out);
		}
	if (diff_is_of_other_programs(&report->diff))
		text_wrap_styled(out, "  A and B are of different programs: only frames of common libraries match",
				 &report->diff.input->layout, report->diff.input->is_colored, STYLE_CAVEAT);
	versions(report, out);
	other_builds(report, out);
	culled_text(out, report->diff.input);
	sink_to_memory(&lines);
	if (report->basis != DIFF_AS_IS)
		factors(report, &lines);
	for (size_t i = 0; i < report->filter_count; i++)
		sink_format(&lines, "%s-%s%s%s%s", i ? " " : "  with ", report->filters[i].name,
			    *report->filters[i].text ? " " : "", text_shown(report->filters[i].text),
			    i + 1 == report->filter_count ? "\n" : "");
	plain_lines(report, &lines, out);
}

/* ---- totals ---- */

static void totals(const struct report *report, struct sink *out)
{
	enum { TOTALS_PERCENT = 2, TOTALS_A, TOTALS_B, TOTALS_MARK, RANK_MARK = 1 };
	static const char *const titles[] = {"", ">change", ">", ">A", ">B", ""};
	struct grid grid = {.is_colored = report->diff.input->is_colored, .layout = report->diff.input->layout};
	grid_columns(&grid, sizeof(titles) / sizeof(*titles), titles);
	grid.rank[TOTALS_B] = 2;
	grid.rank[TOTALS_A] = 3;
	grid.rank[TOTALS_PERCENT] = 4;
	grid.names[TOTALS_MARK] = "spread";
	grid.names[TOTALS_PERCENT] = "percent";
	grid.rank[TOTALS_MARK] = RANK_MARK;
	const struct action_sort *sort;
	for (unsigned i = 0; (sort = action_sort_at(i)); i++) {
		enum action_number number = action_sort_number(sort);
		if (!*sort->key || !diff_has_number(&report->diff, number))
			continue;
		const struct diff_change change = diff_of_totals(&report->diff, number);
		grid_row(&grid);
		grid_cell(&grid, sort->title);
		change_cells(&grid, report, number, &change);
		grid_cell(&grid, change.is_in_spread ? "in spread" : "");
	}
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

/* ---- rows ---- */

static bool is_split(const struct report *report)
{
	return report->diff.input->sources[0].window->by != HEAP_BY_NONE;
}

static void row_cells(struct grid *grid, const struct report *report, const struct report_part *part,
		      const struct action_row *row)
{
	static const char *const marks[] = {[DIFF_IN_BOTH] = "", [DIFF_IS_NEW] = "new", [DIFF_IS_GONE] = "gone"};
	enum action_number number = action_sort_number(part->sort), companion;
	const struct diff_change change = diff_of_row(&report->diff, row, number);
	grid_row(grid);
	change_cells(grid, report, number, &change);
	if (diff_companion(number, &companion))
		grid_cell(grid, change_text(report, companion, diff_of_row(&report->diff, row, companion).change).data);
	grid_cell(grid, change.is_in_spread ? "in spread" : marks[diff_row_state(&report->diff, row)]);
	if (is_split(report)) {
		char *by = report_row_by(report, part, row);
		grid_cell(grid, by);
		free(by);
	}
	if (!part->action->lines) {
		report_label(grid, report->diff.input, part->action, row);
		return;
	}
	char *lines = part->action->lines(report->diff.input, row->group);
	grid_detail(grid, lines);
	free(lines);
}

static void rows_columns(struct grid *grid, const struct report *report, const struct report_part *part)
{
	enum { RANK_PERCENT = 1, RANK_SIDES, RANK_COMPANION };
	const char *titles[9] = {">change", ">", ">A", ">B"};
	unsigned count = 4, text;
	enum action_number companion;
	grid->rank[1] = RANK_PERCENT;
	grid->names[1] = "percent";
	grid->rank[2] = grid->rank[3] = RANK_SIDES;
	if (diff_companion(action_sort_number(part->sort), &companion)) {
		grid->rank[count] = RANK_COMPANION;
		titles[count++] = diff_is_size(companion) ? ">size" : ">blocks";
	}
	text = count;
	titles[count++] = "";
	if (is_split(report))
		titles[count++] = heap_by_name(report->diff.input->sources[0].window->by);
	if (!part->action->lines)
		titles[count++] = part->action->label;
	grid_columns(grid, count, titles);
	grid->styles[0] = STYLE_KEY;
	for (; text < count; text++)
		grid->is_text[text] = true;
}

/* `format` has one text, the number; nothing is written for 0. */
__attribute__((format(printf, 2, 0))) static void rows_note(struct sink *out, const char *format, uint64_t number)
{
	if (number)
		sink_format(out, format, text_count(number).data);
}

/* The keys by which the totals changed: other orders that show something. */
static void changed_keys(const struct report *report, struct sink *out)
{
	const struct action_sort *sort;
	const char *before = "; try the keys ";
	for (unsigned i = 0; (sort = action_sort_at(i)); i++) {
		enum action_number number = action_sort_number(sort);
		if (!diff_has_number(&report->diff, number) || diff_of_totals(&report->diff, number).change == 0)
			continue;
		sink_format(out, "%s%s", before, sort->key);
		before = ", ";
	}
}

static void rows_heading(const struct report *report, const struct report_part *part, struct sink *out)
{
	const struct action_rows *rows = &part->rows;
	const struct diff_counts *counts = &part->counts;
	struct sink lines;
	char heading[160];
	snprintf(heading, sizeof(heading), "%s by change of %s", part->action->title, part->sort->title);
	sink_put(out, '\n');
	text_wrap_styled(out, heading, &report->diff.input->layout, report->diff.input->is_colored, STYLE_HEADING);
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
			changed_keys(report, &lines);
		sink_put(&lines, '\n');
	}
	if (rows->shown < counts->changed_by_sort)
		sink_format(&lines, "  the first %s rows; -top N shows more\n", text_count(rows->shown).data);
	plain_lines(report, &lines, out);
}

static void rows_text(const struct report *report, const struct report_part *part, struct sink *out)
{
	struct grid grid = {.is_colored = report->diff.input->is_colored, .layout = report->diff.input->layout};
	rows_heading(report, part, out);
	/* Rows that changed in other numbers only stand behind the others. */
	const size_t shown =
		part->counts.changed_by_sort < part->rows.shown ? part->counts.changed_by_sort : part->rows.shown;
	if (!shown)
		return;
	rows_columns(&grid, report, part);
	for (size_t i = 0; i < shown; i++)
		row_cells(&grid, report, part, part->rows.rows[i]);
	grid_print(&grid, out, 2);
	grid_fini(&grid);
}

void diff_text(const struct report *report, struct sink *out)
{
	head(report, out);
	sink_put(out, '\n');
	if (report_is_empty(report))
		sink_text(out, "no difference\n\n");
	totals(report, out);
	for (unsigned i = 0; i < report->part_count; i++)
		if (report->parts[i].action->groups && !report_is_empty(report))
			rows_text(report, &report->parts[i], out);
}
