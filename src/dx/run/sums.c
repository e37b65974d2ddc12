/* SPDX-License-Identifier: MIT */
#include "dx/run/sums.h"

#include <assert.h>

bool dx_sum_add(struct dx_query *query, struct dx_sum *sum, const struct dx_value *value)
{
	assert(sum->error.kind != DX_ERROR);
	if (value->kind == DX_ABSENT) {
		sum->absent_count++;
		return true;
	}
	sum->count++;
	if (value->kind == DX_REAL) {
		sum->real += value->real;
		sum->is_real = true;
	} else if (value->kind == DX_NUMBER || value->kind == DX_BOOL) {
		sum->number += dx_integer_of(value);
	} else if (value->kind == DX_ERROR) {
		sum->error = *value;
	} else {
		sum->error = dx_error(query, "a sum is of numbers, not of %s", dx_kind_name(value->kind));
	}
	return sum->error.kind != DX_ERROR;
}

struct dx_value dx_sum_result(struct dx_query *query, const struct dx_sum *sum)
{
	if (sum->error.kind == DX_ERROR)
		return sum->error;
	if (sum->is_real)
		return dx_real(sum->real + (double)sum->number);
	if (sum->number > (__int128)UINT64_MAX || sum->number < (__int128)INT64_MIN)
		return dx_error(query, "the sum has more than 64 bits");
	return sum->number < 0 ? dx_signed((int64_t)sum->number) : dx_number((uint64_t)sum->number);
}

struct dx_value dx_sum_average(struct dx_query *query, const struct dx_sum *sum)
{
	if (sum->error.kind == DX_ERROR)
		return sum->error;
	return sum->count ? dx_real((sum->real + (double)sum->number) / (double)sum->count)
			  : dx_error(query, "Average: there are no elements");
}
