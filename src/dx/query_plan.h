/* SPDX-License-Identifier: MIT */
/**
 * Pipelines that a plan over columns answers (plan/plan.h): Heap() with conditions that compare members with numbers,
 * and Count or Sum at the end. The answer is the interpreter's, sooner. -noPlan does without.
 */
#ifndef XHEAP_DX_QUERY_PLAN_H
#define XHEAP_DX_QUERY_PLAN_H

#include "dx/methods.h"

extern const struct dx_operator dx_where_operator;

/** Return whether the sequence is Heap() of all processes; set *with_nested. */
bool dx_events_are_all(const struct dx_sequence *sequence, bool *with_nested);

/** Answer Count() or Sum(), with the call's lambda, by a plan. False: the interpreter has to do it. */
bool dx_plan_count(struct dx_query *query, const struct dx_method_call *call, struct dx_value *result);
bool dx_plan_sum(struct dx_query *query, const struct dx_method_call *call, struct dx_value *result);

#endif
