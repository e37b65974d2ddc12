/* SPDX-License-Identifier: MIT */
/** The result of a check as JSON: docs/schema/check.json. */
#ifndef XHEAP_ACTION_BUDGET_JSON_H
#define XHEAP_ACTION_BUDGET_JSON_H

struct budget_check;
struct sink;

/** Write the result as one object. */
void budget_json(const struct budget_check *check, struct sink *out);

#endif
