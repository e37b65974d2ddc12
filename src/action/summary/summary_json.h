/* SPDX-License-Identifier: MIT */
/** The summary as JSON: docs/schema/report.json. */
#ifndef XHEAP_ACTION_SUMMARY_JSON_H
#define XHEAP_ACTION_SUMMARY_JSON_H

struct sink;
struct summary;

/** Write the summary as one object. */
void summary_json(const struct summary *summary, struct sink *out);

#endif
