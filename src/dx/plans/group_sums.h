/* SPDX-License-Identifier: MIT */
/**
 * Groups that are only counted and summed need not be kept. GroupBy(key).Select(g => ...) is evaluated while the
 * elements pass if its lambda uses g for Count, Sum, Average, Min, Max, First and Any alone: each such call has an
 * accumulator for each group. The result is the same; -noPlan does without.
 */
#ifndef XHEAP_DX_GROUP_SUMS_H
#define XHEAP_DX_GROUP_SUMS_H

#include "dx/core/query.h"

/** Return a sequence of the same elements as this Select, in the query's arena; NULL: the sequence is none over groups,
    or its lambda needs the elements. */
const struct dx_sequence *dx_group_sums_sequence(struct dx_query *query, const struct dx_sequence *sequence);

#endif
