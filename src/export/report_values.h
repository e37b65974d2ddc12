/* SPDX-License-Identifier: MIT */
/** What a report has of each number of its totals and rows: its value, or those of two sides and of their change. */
#ifndef XHEAP_EXPORT_REPORT_VALUES_H
#define XHEAP_EXPORT_REPORT_VALUES_H

#include "export/report.h"

/** The values, up to one without a key. */
extern const struct report_value {
	const char *key; /**< of the object of such values in JSON, and behind the number's name in CSV; "": neither */
	enum {
		VALUE_OF_ONE_SIDE,
		VALUE_OF_SIDES,
		VALUE_OF_RUNS,
		VALUE_OF_ESTIMATES,
		VALUE_CLAIM /**< of estimates: 1 for a number of which the claim is true */
	} kind;             /**< the reports that have it */
	long double (*of)(const struct diff_change *change);
} report_values[];

/** Return whether the report has such values. */
bool report_has_value(const struct report *report, const struct report_value *value);

/** Return what the values are of: of a row, or of the totals if it is NULL. */
struct diff_change report_change(const struct report *report, const struct action_row *row, enum action_number number);

#endif
