/* SPDX-License-Identifier: MIT */
/** A report for people. */
#ifndef XHEAP_EXPORT_REPORT_TEXT_H
#define XHEAP_EXPORT_REPORT_TEXT_H

struct report;
struct sink;

/** Write the report for people. */
void report_text(const struct report *report, struct sink *out);

#endif
