/* SPDX-License-Identifier: MIT */
/**
 * Pipelines that a plan over columns answers (plan/plan.h). They begin with Heap(), Data.Allocations() or
 * FreedByOtherThread(), of all processes or of one, and consist of
 *
 *     Where     of conditions that compare members with literals and with each other
 *     OrderBy, ThenBy and their like, by a member
 *     Skip and Take, behind the others
 *     Select    of a member, or of an object of members, at the end
 *     GroupBy   with Count, Sum and First of the groups in the methods behind it (group_plan.h)
 *     Count, Sum, Average, Min and Max at the end
 *
 * Members are those of plan_members.c. The answer is the interpreter's, sooner; -noPlan does without.
 */
#ifndef XHEAP_DX_QUERY_PLAN_H
#define XHEAP_DX_QUERY_PLAN_H

#include "dx/core/query.h"

extern const struct dx_planner dx_planner;

#endif
