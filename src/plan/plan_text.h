/* SPDX-License-Identifier: MIT */
/** A plan as a text for people. */
#ifndef XHEAP_PLAN_PLAN_TEXT_H
#define XHEAP_PLAN_PLAN_TEXT_H

#include "base/sink.h"
#include "plan/plan.h"

/** Write a line for each part of the plan: what rows pass, what they are grouped by, what is added up, the order, and
    how many are wanted. Each line begins with `indent`. */
void plan_describe(const struct plan *plan, const char *indent, struct sink *out);

#endif
