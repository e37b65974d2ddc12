/* SPDX-License-Identifier: MIT */
#include "export/report_head.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "action/diff/diff_match.h"
#include "action/diff/diff_words.h"
#include "action/report/caveats.h"
#include "action/report/culled.h"
#include "action/report/losses.h"
#include "base/style.h"
#include "trace/reader.h"
#include "trace/trace.h"

void report_lines(const struct report *report, enum style style, struct sink *lines, struct sink *out)
{
	const struct action_input *input = report->diff.input;
	char *text = sink_take(lines, NULL);
	text_wrap_styled(out, text, &input->layout, input->is_colored, style);
	free(text);
}

/* ---- a source ---- */

/* The style is that of the path only, so that it is no part of the line's width: a path that fills a line has it by
   itself. */
static void heading(const struct action_input *input, const struct action_source *source, const char *lead,
		    struct sink *out)
{
	enum { SHARE = 2 };
	const struct trace_dictionary *dictionary = trace_dictionary(source->trace);
	const struct text_layout *layout = &input->layout;
	struct text missing = losses_missing_text(dictionary);
	struct arena arena = {0};
	struct sink line;
	bool is_cut = layout->width && !layout->has_full_names;
	const char *path = text_fit(&arena, text_shown(source->path), is_cut ? layout->width / SHARE : UINT32_MAX,
				    layout->has_unicode);
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
	sink_format(out, "%s%.*s%s%s", style_begin(input->is_colored, STYLE_HEADING), (int)length, text,
		    style_end(input->is_colored, STYLE_HEADING), text + length);
	free(text);
	arena_fini(&arena);
}

static char *source_lines(const struct action_input *input, unsigned source)
{
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
static void side_caveats(const struct report *report, enum diff_side side, unsigned source, struct sink *out)
{
	const struct action_input *input = report->diff.input;
	const struct action_source *sources = input->sources;
	bool is_known = source > 0 && sources[source].trace == sources[0].trace;
	char *lines = source_lines(input, source), *known = is_known ? source_lines(input, 0) : NULL;
	struct sink to;
	sink_to_memory(&to);
	for (char *line = lines, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		if (!known || !has_line(known, line))
			sink_format(&to, "  %s: %s\n", diff_side_name(side), line + strspn(line, " "));
	}
	free(known);
	free(lines);
	report_lines(report, STYLE_CAVEAT, &to, out);
}

/* A time, or a position of which a step is known. */
static struct text moment_text(struct position at)
{
	return at.step != POSITION_LAST ? position_text(at) : text_duration(at.time_ns);
}

static void side_source(const struct report *report, enum diff_side side, unsigned number, struct sink *out)
{
	const struct action_source *source = &report->diff.input->sources[number];
	const struct heap_range range = source->window->range;
	char lead[4];
	snprintf(lead, sizeof(lead), "%s: ", diff_side_name(side));
	heading(report->diff.input, source, lead, out);
	if (source->filter->moment.is_asked)
		sink_format(out, "   live at %s\n", moment_text(source->filter->moment.at).data);
	else if (range.from_ns > 0 || range.to_ns < source->table->duration_ns)
		sink_format(out, "   %s\n", text_span(range.from_ns, range.to_ns).data);
	side_caveats(report, side, number, out);
}

/* ---- both sides ---- */

static void images(const struct report *report, struct sink *out, const char *const *names, size_t count,
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
	report_lines(report, STYLE_CAVEAT, &to, out);
}

/* What keeps rows from matching. */
static void matching(const struct report *report, struct sink *out)
{
	const struct action_input *input = report->diff.input;
	size_t count;
	if (diff_is_of_other_programs(&report->diff))
		text_wrap_styled(out, "  A and B are of different programs: only frames of common libraries match",
				 &input->layout, input->is_colored, STYLE_CAVEAT);
	const char *const *programs = heap_names_matched_programs(action_names(input), &count);
	images(report, out, programs, count, "  matched as one program: ", "");
	const char *const *versioned = heap_names_versioned(action_names(input), &count);
	images(report, out, versioned, count, "  A and B have other versions of ", "");
	char **others = diff_other_builds(&report->diff, &count);
	images(report, out, (const char *const *)others, count, "  A and B have other builds, without symbols, of ",
	       ": their frames match by nothing");
	for (size_t i = 0; i < count; i++)
		free(others[i]);
	free(others);
	culled_text(out, input);
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

static void sides(const struct report *report, struct sink *out)
{
	for (int side = 0; side < DIFF_SIDES; side++)
		for (unsigned i = 0; i < report->diff.runs[side]; i++)
			side_source(report, (enum diff_side)side,
				    diff_first_source(&report->diff, (enum diff_side)side) + i, out);
	matching(report, out);
}

void report_head(const struct report *report, struct sink *out)
{
	const struct action_input *input = report->diff.input;
	const struct heap_range range = input->sources->window->range;
	struct sink lines;
	if (report_is_diff(report)) {
		sides(report, out);
	} else {
		heading(input, input->sources, "", out);
		caveats_text(out, input);
	}
	sink_to_memory(&lines);
	if (report->basis != DIFF_AS_IS)
		factors(report, &lines);
	if (report->has_range)
		sink_format(&lines, "  in the range %s\n", text_span(range.from_ns, range.to_ns).data);
	for (size_t i = 0; i < report->filter_count; i++)
		sink_format(&lines, "%s-%s%s%s", i ? " " : "  with ", report->filters[i].name,
			    *report->filters[i].text ? " " : "", text_shown(report->filters[i].text));
	report_lines(report, STYLE_PLAIN, &lines, out);
}
