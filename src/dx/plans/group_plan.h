/* SPDX-License-Identifier: MIT */
/**
 * Groups that a plan adds up. A chain over GroupBy() of a pipeline's rows is one plan, up to the last of
 *
 *     GroupBy   by a key (plan_keys.h)
 *     Select    of what group_calls.h counts and sums
 *     Where, OrderBy and their like, on groups, or behind the Select on what it makes
 *     Skip and Take behind them
 */
#ifndef XHEAP_DX_GROUP_PLAN_H
#define XHEAP_DX_GROUP_PLAN_H

#include "dx/core/query.h"

/** Return a sequence of the same elements, in the query's arena. NULL: it has no plan. */
const struct dx_sequence *dx_group_plan_sequence(struct dx_query *query, const struct dx_sequence *sequence);

/** Count the elements of such a sequence, whose Select may be missing. Return false if it has no plan. */
bool dx_group_plan_count(struct dx_query *query, const struct dx_sequence *sequence, struct dx_value *result);

#endif
