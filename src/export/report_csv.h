/* SPDX-License-Identifier: MIT */
/** A report as comma-separated values. */
#ifndef XHEAP_EXPORT_REPORT_CSV_H
#define XHEAP_EXPORT_REPORT_CSV_H

struct report;
struct sink;

/** Write the report's only action as comma-separated values. */
void report_csv(const struct report *report, struct sink *out);

#endif
