/* SPDX-License-Identifier: MIT */
/** The summary for people: a screen. It is written with many rows first, and again with fewer until it fits. Names
    are cut to the width, numbers never. */
#ifndef XHEAP_ACTION_SUMMARY_TEXT_H
#define XHEAP_ACTION_SUMMARY_TEXT_H

struct sink;
struct summary;
struct summary_view;

/** Write the summary for people. */
void summary_text(const struct summary *summary, const struct summary_view *view, struct sink *out);

#endif
