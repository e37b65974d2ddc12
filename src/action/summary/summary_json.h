/* SPDX-License-Identifier: MIT */
/** The summary as JSON: docs/schema/report.json; also parts of it for other documents. */
#ifndef XHEAP_ACTION_SUMMARY_JSON_H
#define XHEAP_ACTION_SUMMARY_JSON_H

struct json;
struct sink;
struct summary;

/** The words of enum summary_finding_kind. */
extern const char *const summary_kind_words[];

/** Write the summary as one object. */
void summary_json(const struct summary *summary, struct sink *out);

/** Write the object "totals" into an open object. */
void summary_json_totals(struct json *json, const struct summary *summary);

/** Write the object "resident" into an open object; nothing if resident memory was not measured. */
void summary_json_resident(struct json *json, const struct summary *summary);

#endif
