/* SPDX-License-Identifier: MIT */
/** A trace, a window or a moment of one, as people type it: "FILE", "FILE@T1..T2", "FILE@..T2", "FILE@T1..", "FILE@=T".
    Times are those of -range and -at. */
#ifndef XHEAP_QUERY_WINDOW_WORD_H
#define XHEAP_QUERY_WINDOW_WORD_H

#include "query/filter.h"

struct window_word {
	char *path;
	char *times[2]; /**< NULL: from the start; to the end */
	char *moment;   /**< NULL: a window */
};

/** Read the word. A file of the whole word's name is that file. Return 0, or -EINVAL with the reason in diag. End it
    with window_word_fini(). */
int window_word_parse(struct window_word *window, const char *word, struct diag *diag);

/** Narrow *range, which is all of a trace that began at this time, to the window, or to the time up to the moment. Set
 *  *moment to the moment, not asked for in a window. Return 0, or -EINVAL with the reason in diag. */
int window_word_resolve(const struct window_word *window, int64_t start_realtime_ns, struct heap_range *range,
			struct heap_moment *moment, struct diag *diag);

/** Return whether the word is about a part of the time. */
static inline bool window_word_is_part(const struct window_word *window)
{
	return window->times[0] || window->times[1] || window->moment;
}

/** Free the texts. */
void window_word_fini(struct window_word *window);

#endif
