/* SPDX-License-Identifier: MIT */
/** How parts of a text for people stand out on a terminal. Elsewhere (is_colored false) all of this is nothing. */
#ifndef XHEAP_BASE_STYLE_H
#define XHEAP_BASE_STYLE_H

#include <stdbool.h>

#include "base/sink.h"

enum style {
	STYLE_PLAIN,
	STYLE_HEADING,
	STYLE_DOUBT, /**< reasons why numbers are not exact */
	STYLE_KEY,   /**< the number that rows are sorted by */
	STYLE_QUIET, /**< details: files and lines */
	STYLE_CHART,
	STYLE_COUNT
};

/** Return the text that begins the style; valid for ever. */
const char *style_begin(bool is_colored, enum style style);

/** Return the text that ends the style; valid for ever. */
const char *style_end(bool is_colored, enum style style);

/** Write whole lines, each with the style's begin and end: a pager forgets a style at the end of its line. */
void style_lines(struct sink *out, bool is_colored, enum style style, const char *lines);

#endif
