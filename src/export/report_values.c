/* SPDX-License-Identifier: MIT */
#include "export/report_values.h"

#include <assert.h>

/* X(key, kind, value) */
#define VALUES(X) \
	X(, OF_ONE_SIDE, sides[DIFF_A].mean) \
	X(a, OF_SIDES, sides[DIFF_A].mean) \
	X(b, OF_SIDES, sides[DIFF_B].mean) \
	X(change, OF_SIDES, change) \
	X(a_min, OF_RUNS, sides[DIFF_A].min) \
	X(a_max, OF_RUNS, sides[DIFF_A].max) \
	X(a_deviation, OF_RUNS, sides[DIFF_A].deviation) \
	X(b_min, OF_RUNS, sides[DIFF_B].min) \
	X(b_max, OF_RUNS, sides[DIFF_B].max) \
	X(b_deviation, OF_RUNS, sides[DIFF_B].deviation) \
	X(change_error, OF_ESTIMATES, error) \
	X(in_spread, CLAIM, is_in_spread)

#define X(key, kind, value) \
	static long double value_of_##key(const struct diff_change *change) \
	{ \
		return change->value; \
	}
VALUES(X)
#undef X

const struct report_value report_values[] = {
#define X(key, kind, value) {#key, VALUE_##kind, value_of_##key},
	VALUES(X)
#undef X
		{NULL, VALUE_OF_SIDES, NULL},
};

bool report_has_value(const struct report *report, const struct report_value *value)
{
	assert(value->of && value->kind <= VALUE_CLAIM);
	if (!report_is_diff(report))
		return value->kind == VALUE_OF_ONE_SIDE;
	return value->kind == VALUE_OF_SIDES || (value->kind != VALUE_OF_ONE_SIDE && diff_has_runs(&report->diff)) ||
	       (value->kind >= VALUE_OF_ESTIMATES && diff_is_sample(&report->diff));
}

struct diff_change report_change(const struct report *report, const struct action_row *row, enum action_number number)
{
	assert(number < ACTION_NUMBER_COUNT);
	return row ? diff_of_row(&report->diff, row, number) : diff_of_totals(&report->diff, number);
}
