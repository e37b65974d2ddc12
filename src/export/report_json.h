/* SPDX-License-Identifier: MIT */
/** A report as JSON: docs/schema/heap.json. */
#ifndef XHEAP_EXPORT_REPORT_JSON_H
#define XHEAP_EXPORT_REPORT_JSON_H

struct report;
struct sink;

/** Write the report as one object. */
void report_json(const struct report *report, struct sink *out);

#endif
