/* SPDX-License-Identifier: MIT */
/** The width of texts on a terminal, and the layout of texts for people. */
#ifndef XHEAP_BASE_TEXT_WIDTH_H
#define XHEAP_BASE_TEXT_WIDTH_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/sink.h"

/** How a text for people is laid out. Zeroed: lines of any width, without characters beyond ASCII. */
struct text_layout {
	unsigned width;      /**< columns that a line may have; 0: any number */
	bool has_unicode;    /**< characters beyond ASCII may be used */
	bool has_full_names; /**< names are not shortened; lines with names have any width */
	bool has_all_frames; /**< runs of library frames are not folded */
};

enum { TEXT_WIDTH_MIN = 40, TEXT_WIDTH_MAX = 300, TEXT_WIDTH_DEFAULT = 100 };

/** Return whether the locale of the environment has the characters of Unicode as UTF-8. The locale of the program does
    not matter and does not change. */
bool text_has_unicode(void);

/** Return the columns that the UTF-8 text takes: wide characters take two, combining ones none. A byte that is not
    UTF-8 takes one. */
unsigned text_width(const char *text);

/** Return the text if it fits into `columns`; else a copy without its middle, where an ellipsis stands ("..." without
    has_unicode). The copy is the arena's. No character is cut, and no combining one is parted from its base. */
const char *text_fit(struct arena *arena, const char *text, unsigned columns, bool has_unicode);

/** As text_fit(), but the end is missing: for a text whose beginning says most. */
const char *text_fit_start(struct arena *arena, const char *text, unsigned columns, bool has_unicode);

/** Write lines, broken at blanks where they are wider than the layout allows: what follows has two blanks more before
    it than the line. A word that is wider than a line loses its middle, unless full names are asked for. The last line
    gets a line feed, too. */
void text_wrap(struct sink *out, const char *lines, const struct text_layout *layout);

/** As text_wrap(), but what follows has `hang` blanks before it. */
void text_wrap_hanging(struct sink *out, const char *lines, const struct text_layout *layout, unsigned hang);

#endif
