/* SPDX-License-Identifier: MIT */
/**
 * Keys of GroupBy() as keys of a plan. Rows are grouped by numbers, such as the ids of stacks and threads. The
 * interpreter makes the keys of these, once for each group of rows, and groups of one key are joined.
 */
#ifndef XHEAP_DX_PLAN_KEYS_H
#define XHEAP_DX_PLAN_KEYS_H

#include "dx/plans/plan_members.h"

struct dx_plan_keys;

/** Add the keys for the lambda of GroupBy() to the plan, and its regrouping; they must outlive its runs. Free them
    with dx_plan_keys_free(). NULL: the lambda has no translation. */
struct dx_plan_keys *dx_plan_keys_new(const struct dx_plan_making *making, const struct dx_value *lambda);
void dx_plan_keys_free(struct dx_plan_keys *keys);

/** Return whether a run has come to a key that only the interpreter can make: its result is to be thrown away. */
bool dx_plan_keys_are_wrong(const struct dx_plan_keys *keys);

/** Return the key of a row. */
struct dx_value dx_plan_keys_value(const struct dx_plan_keys *keys, const struct plan_rows *rows, uint32_t row);

/** Return whether keys may be absent: objects that a query makes are not. */
bool dx_plan_keys_may_be_absent(const struct dx_plan_keys *keys);

/** Return whether the key of a row is absent. */
bool dx_plan_keys_are_absent(const struct dx_plan_keys *keys, const struct plan_rows *rows, uint32_t row);

/** Return the output whose order is that of the language; PLAN_NOTHING: there is none. */
uint32_t dx_plan_keys_order(const struct dx_plan_keys *keys, uint32_t part);

#endif
