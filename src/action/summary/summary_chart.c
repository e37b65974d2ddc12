/* SPDX-License-Identifier: MIT */
#include "action/summary/summary_chart.h"

#include <string.h>

#include "action/summary/summary_lines.h"

enum { EIGHTHS = 8, CHART_ROWS = 3, CHART_MARGIN = 13 };

static void cell_put(const struct summary_screen *screen, unsigned eighths)
{
	static const char *const blocks[EIGHTHS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	sink_text(screen->out, screen->summary->input->layout.has_unicode ? blocks[eighths]
			       : eighths > EIGHTHS / 2                    ? "#"
			       : eighths                                  ? "."
									  : " ");
}

/* Each column has the most of some parts of the time. */
void summary_chart_put(const struct summary_screen *screen)
{
	const struct survey *survey = &screen->summary->survey;
	uint32_t parts = survey->plan.chart_parts, each = 1;
	uint64_t columns[SUMMARY_CHART_PARTS] = {0}, highest = 0;
	while (parts / each + CHART_MARGIN > summary_width_of(screen))
		each++;
	uint32_t count = parts / each;
	for (uint32_t i = 0; i < count * each; i++) {
		uint64_t *column = &columns[i / each];
		*column = survey->chart[i].bytes > *column ? survey->chart[i].bytes : *column;
		highest = *column > highest ? *column : highest;
	}
	if (!highest)
		return;
	summary_heading(screen, "Live bytes over time");
	for (unsigned row = CHART_ROWS; row-- > 0;) {
		sink_format(screen->out, "  %10s ",
			    row == CHART_ROWS - 1 ? summary_bytes_of(screen, highest).data
			    : row                 ? ""
						  : "0");
		sink_text(screen->out, style_begin(screen->summary->input->is_colored, STYLE_CHART));
		for (uint32_t i = 0; i < count; i++) {
			uint64_t filled = (uint64_t)((unsigned __int128)columns[i] * CHART_ROWS * EIGHTHS / highest),
				 floor = (uint64_t)row * EIGHTHS;
			filled += !filled && columns[i];
			cell_put(screen, filled <= floor            ? 0
					 : filled - floor > EIGHTHS ? EIGHTHS
								    : (unsigned)(filled - floor));
		}
		sink_format(screen->out, "%s\n", style_end(screen->summary->input->is_colored, STYLE_CHART));
	}
	const struct text from =
		survey->chart_range.from_ns ? text_duration(survey->chart_range.from_ns) : (struct text){"0"};
	sink_format(screen->out, "  %10s %s%*s\n", "", from.data, (int)count - (int)strlen(from.data),
		    text_duration(survey->chart_range.to_ns).data);
}
