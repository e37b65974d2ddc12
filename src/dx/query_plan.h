/* SPDX-License-Identifier: MIT */
/**
 * Pipelines that a plan over columns answers (plan/plan.h). They begin with Heap() or Data.Allocations() and consist of
 *
 *     Where     of conditions that compare members with literals and with each other
 *     OrderBy, ThenBy and their like, by a member
 *     Skip and Take, behind the others
 *     Select    of a member, or of an object of members, at the end
 *     GroupBy   by a member, with Count, Sum and First of the groups in the Select behind it
 *     Count and Sum at the end
 *
 * Members are those of plan_members.c. The answer is the interpreter's, sooner; -noPlan does without.
 */
#ifndef XHEAP_DX_QUERY_PLAN_H
#define XHEAP_DX_QUERY_PLAN_H

#include "dx/methods.h"

/** Answer Count() or Sum(), with the call's lambda, by a plan. False: the interpreter has to do it. */
bool dx_plan_count(struct dx_query *query, const struct dx_method_call *call, struct dx_value *result);
bool dx_plan_sum(struct dx_query *query, const struct dx_method_call *call, struct dx_value *result);

/** Return a sequence of the same elements that a plan finds, in the query's arena; NULL: the interpreter has to. */
const struct dx_sequence *dx_plan_sequence(struct dx_query *query, const struct dx_sequence *sequence);

#endif
