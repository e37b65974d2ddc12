/* SPDX-License-Identifier: MIT */
/**
 * Groups that are only counted and summed need not be kept. GroupBy(key).Select(g => ...) is evaluated while the
 * elements pass if its lambda uses g for Count, Sum, Average, Min, Max, First and Any alone: each such call has an
 * accumulator for each group. The result is the same; -noPlan does without.
 */
#ifndef XHEAP_DX_GROUP_SUMS_H
#define XHEAP_DX_GROUP_SUMS_H

#include "dx/methods.h"

/** A group during the evaluation of the lambda: calls on it find their results. */
extern const struct dx_class dx_group_sums_class;

struct dx_group_sums;

/** Begin to sum up the groups of `groups`, an iterator of dx_group_operator that has not begun, for the lambda. NULL:
    the lambda needs the elements. */
struct dx_group_sums *dx_group_sums_new(struct dx_query *query, struct dx_iterator *groups,
					const struct dx_value *lambda);
void dx_group_sums_free(struct dx_group_sums *sums);

/** Set what the lambda makes of the next group. False: there is none, or the query is stopped. */
bool dx_group_sums_next(struct dx_query *query, struct dx_group_sums *sums, struct dx_element *element);

/** Return the result of a call on a group, which is the node of the lambda. */
struct dx_value dx_group_sums_result(struct dx_query *query, const struct dx_value *group, const struct dx_node *call);

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
