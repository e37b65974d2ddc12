/* SPDX-License-Identifier: MIT */
/**
 * Arithmetic as expressions of a plan. In the language a result of more than 64 bits is an error, as is a division by
 * zero; numbers of a plan wrap. So it is translated if neither can come up, whatever the rows have.
 */
#ifndef XHEAP_DX_PLAN_NUMBERS_H
#define XHEAP_DX_PLAN_NUMBERS_H

#include "dx/plans/plan_members.h"

/** Translate an operation on numbers and members of the parameter; a node PLAN_NOTHING: it is something else, has no
    member, or may be an error. */
struct dx_plan_member dx_plan_arithmetic(const struct dx_plan_making *making, const struct dx_node *node,
					 const char *parameter);

/** Translate the operands of a comparison of numbers, as nodes of one type. False: they are something else, or may be
    an error. */
bool dx_plan_number_pair(const struct dx_plan_making *making, const struct dx_node *node, const char *parameter,
			 uint32_t *one, uint32_t *other);

#endif
