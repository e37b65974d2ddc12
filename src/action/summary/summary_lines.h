/* SPDX-License-Identifier: MIT */
/** The lines of a summary for people: numbers and names that fit into a width. */
#ifndef XHEAP_ACTION_SUMMARY_LINES_H
#define XHEAP_ACTION_SUMMARY_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "action/report/report_columns.h"
#include "action/summary/summary.h"
#include "base/style.h"

enum { SUMMARY_INDENT = 6, SUMMARY_LINE_BYTES = 1024 };

/** A level of detail: fewer rows and parts from level to level. */
struct summary_screen {
	const struct summary *summary;
	const struct summary_view *view;
	struct sink *out;
	const char *caveats;            /**< lines with their ends */
	const char *package;            /**< of the peak's largest function; "": not known, or not needed */
	size_t rows;                    /**< of each list */
	bool has_chart, has_more_lists; /**< lists beside the peak and growth with their rows, not as one line */
};

/** Return a size or a count as text, marked as an estimate if the trace is a sample. */
struct text summary_bytes_of(const struct summary_screen *screen, uint64_t bytes);
struct text summary_count_of(const struct summary_screen *screen, uint64_t count);

/** Return the columns of a line. */
size_t summary_width_of(const struct summary_screen *screen);

/** Write a line: numbers, and a name in the rest of it, without its middle if it is too long. */
void summary_line_put(const struct summary_screen *screen, const char *numbers, const char *name);

/** Write words, with line breaks between them; `joint` ends each line but the last. A word that is wider than a line
    loses its middle, except in lines that are joined: those are commands, to be typed as they are. */
void summary_words_put(const struct summary_screen *screen, unsigned indent, const char *text, const char *joint);

/** Write words as summary_words_put() does, in a style. */
void summary_styled_put(const struct summary_screen *screen, enum style style, unsigned indent, const char *text,
			const char *joint);

/** Write an empty line and a heading. */
void summary_heading(const struct summary_screen *screen, const char *text);

/** Return the name of a node's frame for people, with its image or without; it lives until the next one. */
const char *summary_frame_text(const struct summary_screen *screen, uint32_t node, bool with_image);

/** Write a row: its numbers with the function of the user's code, and its callers below. `number` says of which lines
    of the function it is. */
void summary_stack_put(const struct summary_screen *screen, const char *numbers, uint32_t node,
		       enum action_number number);

#endif
