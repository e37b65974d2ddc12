/* SPDX-License-Identifier: MIT */
#include "base/style.h"

#include <stdlib.h>
#include <string.h>

/* Only the eight colours that every palette has, and none that a light or a dark background hides. */
static const char *const codes[STYLE_COUNT] = {
	[STYLE_PLAIN] = "",         [STYLE_HEADING] = "\033[1m", [STYLE_CAVEAT] = "\033[33m",
	[STYLE_KEY] = "\033[1;36m", [STYLE_QUIET] = "\033[2m",   [STYLE_CHART] = "\033[36m",
};

const char *style_begin(bool is_colored, enum style style)
{
	return is_colored ? codes[style] : "";
}

const char *style_end(bool is_colored, enum style style)
{
	return is_colored && style != STYLE_PLAIN ? "\033[0m" : "";
}

void style_lines(struct sink *out, bool is_colored, enum style style, const char *lines)
{
	while (*lines) {
		int length = (int)strcspn(lines, "\n");
		sink_format(out, "%s%.*s%s\n", style_begin(is_colored, style), length, lines,
			    style_end(is_colored, style));
		lines += length;
		lines += *lines == '\n';
	}
}

void text_wrap_styled(struct sink *out, const char *lines, const struct text_layout *layout, bool is_colored,
		      enum style style)
{
	struct sink wrapped;
	sink_to_memory(&wrapped);
	text_wrap(&wrapped, lines, layout);
	char *text = sink_take(&wrapped, NULL);
	style_lines(out, is_colored, style, text);
	free(text);
}
