/* SPDX-License-Identifier: MIT */
/** How parts of a text for people stand out on a terminal. Elsewhere (is_colored false) all of this is nothing. */
#ifndef XHEAP_BASE_STYLE_H
#define XHEAP_BASE_STYLE_H

#include <stdbool.h>

#include "base/sink.h"

enum style {
	STYLE_PLAIN,
	STYLE_HEADING,
	STYLE_DOUBT, /**< what keeps numbers from being exact */
	STYLE_KEY,   /**< the number that rows are sorted by */
	STYLE_QUIET, /**< what is looked at last: files and lines */
	STYLE_CHART,
	STYLE_COUNT
};

/** What begins the style, and what ends every style; valid for ever. */
const char *style_begin(bool is_colored, enum style style);
const char *style_end(bool is_colored, enum style style);

/** Write whole lines in a style, each for itself: a pager forgets what began on a line before. */
void style_lines(struct sink *out, bool is_colored, enum style style, const char *lines);

#endif
