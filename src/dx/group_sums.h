/* SPDX-License-Identifier: MIT */
/**
 * Groups that are only counted and summed need not be kept. GroupBy(key).Select(g => ...) is evaluated while the
 * elements pass if its lambda uses g for Count, Sum, Average, Min, Max, First and Any alone: each such call has an
 * accumulator for each group. The result is the same; -noPlan does without.
 */
#ifndef XHEAP_DX_GROUP_SUMS_H
#define XHEAP_DX_GROUP_SUMS_H

#include "dx/methods.h"

/** Return a sequence of the same elements as this Select, in the query's arena; NULL: the sequence is none over groups,
    or its lambda needs the elements. */
const struct dx_sequence *dx_group_sums_sequence(struct dx_query *query, const struct dx_sequence *sequence);

/** A sum of numbers; members that objects lack count as nothing. */
struct dx_sum {
	__int128 number;
	double real;
	uint64_t count;
	bool is_real;
	struct dx_value error; /**< DX_ERROR: the result */
};

/** Add the value. False: it is none, and sum->error says so; its text is in the query's arena. */
bool dx_sum_add(struct dx_query *query, struct dx_sum *sum, const struct dx_value *value);
struct dx_value dx_sum_result(struct dx_query *query, const struct dx_sum *sum);
struct dx_value dx_sum_average(struct dx_query *query, const struct dx_sum *sum);

#endif
