/* SPDX-License-Identifier: MIT */
/** Sums of values, for Sum() and Average(). */
#ifndef XHEAP_DX_SUMS_H
#define XHEAP_DX_SUMS_H

#include "dx/core/query.h"

/** A sum of numbers; members that objects lack count as nothing. */
struct dx_sum {
	__int128 number;
	double real;
	uint64_t count, absent_count;
	bool is_real;
	struct dx_value error; /**< DX_ERROR: the result */
};

/** Add the value. False: it is none, and sum->error says so; its text is in the query's arena. */
bool dx_sum_add(struct dx_query *query, struct dx_sum *sum, const struct dx_value *value);

/** Return the sum, or its mean; or an error. */
struct dx_value dx_sum_result(struct dx_query *query, const struct dx_sum *sum);
struct dx_value dx_sum_average(struct dx_query *query, const struct dx_sum *sum);

#endif
