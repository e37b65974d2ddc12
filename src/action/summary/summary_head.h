/* SPDX-License-Identifier: MIT */
/** The head of a summary: what it is about, and why its numbers are not exact. */
#ifndef XHEAP_ACTION_SUMMARY_HEAD_H
#define XHEAP_ACTION_SUMMARY_HEAD_H

struct summary_screen;

/** Write the trace, how its processes ended, why numbers are not exact, and the filters. */
void summary_head_put(const struct summary_screen *screen);

#endif
