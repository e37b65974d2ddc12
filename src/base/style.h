/* SPDX-License-Identifier: MIT */
/** Styles that make parts of a text stand out on a terminal. Elsewhere (is_colored false) they are empty. */
#ifndef XHEAP_BASE_STYLE_H
#define XHEAP_BASE_STYLE_H

#include <stdbool.h>

#include "base/sink.h"
#include "base/text_width.h"

enum style {
	STYLE_PLAIN,
	STYLE_HEADING,
	STYLE_CAVEAT, /**< the reasons why numbers are not exact */
	STYLE_KEY,    /**< the number that rows are sorted by */
	STYLE_QUIET,  /**< least important: files and lines */
	STYLE_CHART,
	STYLE_COUNT
};

/** Return the text that begins the style: static, "" unless is_colored. */
const char *style_begin(bool is_colored, enum style style);
/** Return the text that ends any style: static, "" unless is_colored. */
const char *style_end(bool is_colored, enum style style);

/** Write whole lines in a style, which begins and ends on each line: a pager forgets the style of the line before. */
void style_lines(struct sink *out, bool is_colored, enum style style, const char *lines);

/** Write lines as text_wrap() does (base/text_width.h), in a style. */
void text_wrap_styled(struct sink *out, const char *lines, const struct text_layout *layout, bool is_colored,
		      enum style style);

#endif
