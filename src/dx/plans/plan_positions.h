/* SPDX-License-Identifier: MIT */
/** Comparisons of a call's TimeStart or TimeEnd with a position that is known, as conditions of a plan. */
#ifndef XHEAP_DX_PLAN_POSITIONS_H
#define XHEAP_DX_PLAN_POSITIONS_H

#include "dx/plans/plan_members.h"

/** Return whether one side of the comparison is a position that is known. */
bool dx_plan_position_is_compared(const struct dx_node *node);

/** Translate such a comparison. PLAN_NOTHING: the other side is something else, or steps are asked for that no column
    has. */
uint32_t dx_plan_position_comparison(const struct dx_plan_making *making, const struct dx_node *node,
				     const char *parameter);

#endif
