/* SPDX-License-Identifier: MIT */
/** The chart of a summary: live bytes over time. */
#ifndef XHEAP_ACTION_SUMMARY_CHART_H
#define XHEAP_ACTION_SUMMARY_CHART_H

struct summary_screen;

/** Write the live bytes over time. */
void summary_chart_put(const struct summary_screen *screen);

#endif
