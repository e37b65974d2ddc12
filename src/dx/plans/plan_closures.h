/* SPDX-License-Identifier: MIT */
/**
 * Lambdas as expressions of a plan: members, what is computed of them, and conditions. What has no translation is
 * PLAN_NOTHING, and the interpreter does it.
 */
#ifndef XHEAP_DX_PLAN_CLOSURES_H
#define XHEAP_DX_PLAN_CLOSURES_H

#include "dx/plans/plan_members.h"

/** Translate `x => x.Member`, or arithmetic of such members; a node PLAN_NOTHING: it is something else. */
struct dx_plan_member dx_plan_lambda_member(const struct dx_plan_making *making, const struct dx_value *lambda);

/** Translate `node`, what a lambda with the parameter makes; likewise. */
struct dx_plan_member dx_plan_node_member(const struct dx_plan_making *making, const struct dx_node *node,
					  const char *parameter);

/** Translate the condition of Where or Count. Return a node of type PLAN_TRUTH, never absent; or PLAN_NOTHING. */
uint32_t dx_plan_condition(const struct dx_plan_making *making, const struct dx_value *lambda);

#endif
