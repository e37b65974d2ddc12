/* SPDX-License-Identifier: MIT */
/** The sums of a trace that goes on, as reports take them. */
#ifndef XHEAP_MATCH_SUMS_WINDOW_H
#define XHEAP_MATCH_SUMS_WINDOW_H

#include "match/match.h"
#include "query/window.h"

/** Make the window of the whole time of the sums. End it with heap_window_fini(). */
void sums_window_make(struct heap_window *window, const struct matching_sums *sums);

#endif
