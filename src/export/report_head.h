/* SPDX-License-Identifier: MIT */
/** The lines of a report for people that stand before its numbers. */
#ifndef XHEAP_EXPORT_REPORT_HEAD_H
#define XHEAP_EXPORT_REPORT_HEAD_H

#include "export/report.h"

/** Write lines for people as the input's layout and the style have them. It ends the sink of the lines. */
void report_lines(const struct report *report, enum style style, struct sink *lines, struct sink *out);

/** Write the lines before the totals: what the sources are, what keeps them from being exact, what was asked. */
void report_head(const struct report *report, struct sink *out);

#endif
