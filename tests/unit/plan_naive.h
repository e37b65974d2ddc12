/* SPDX-License-Identifier: MIT */
/** A plan interpreted row by row, with the result that plan_open() must have. */
#ifndef XHEAP_TESTS_PLAN_NAIVE_H
#define XHEAP_TESTS_PLAN_NAIVE_H

#include "plan/plan.h"

/** As plan_open(). */
struct plan_run *plan_open_naive(const struct plan *plan, const struct plan_target *target);

#endif
