/* SPDX-License-Identifier: MIT */
/** The screen of xheap top: a terminal that is drawn again and again, or any other output. No line is wider than the
    screen, and a terminal gets no more lines than it has. */
#ifndef XHEAP_CLI_TOP_SCREEN_H
#define XHEAP_CLI_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

/** A screen. Set has_unicode, zero the rest. */
struct top_screen {
	struct termios before;
	bool is_terminal, has_unicode;
	unsigned width, height; /**< in columns and lines */
	unsigned lines;         /**< of the current picture */
};

/** Begin: keys come one by one and are not shown. A signal that ends the program ends the screen, too. */
void top_screen_begin(struct top_screen *screen);

/** End: the shell's screen comes back. */
void top_screen_end(const struct top_screen *screen);

/** Measure the screen and begin a picture. */
void top_screen_clear(struct top_screen *screen);

/** Write a line, cut to the width. A line below the last one of the screen is left out. */
void top_screen_line(struct top_screen *screen, const char *text);

/** Write as many parts of a line as fit, with "; " between them. */
void top_screen_parts(struct top_screen *screen, const char *lead, const char *const *parts, unsigned count);

/** Show the picture. */
void top_screen_flush(const struct top_screen *screen);

#endif
