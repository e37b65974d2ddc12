/* SPDX-License-Identifier: MIT */
/** A budget that is made of traces: what others may take, compared with these. */
#ifndef XHEAP_ACTION_BUDGET_BASELINE_H
#define XHEAP_ACTION_BUDGET_BASELINE_H

#include "action/budget/budget.h"

/** What a baseline limits. */
struct budget_baseline {
	unsigned first, run_count;      /**< the sources of the input that are the baseline */
	uint64_t tolerance;             /**< in millionths */
	uint64_t outstanding_tolerance; /**< the same, of outstanding bytes and blocks */
	bool is_by_function;            /**< each function, too */
	uint64_t least_bytes;           /**< a function may always have so much */
};

/**
 * Write a budget: the totals of the baseline and, by function, the bytes and outstanding bytes of each that has at
 * least least_bytes in some source. A limit has the greatest figure of the baseline's runs, and varies as they do.
 * Functions without a name are in the totals only. Sources have filters, and get windows for the time of the call.
 */
void budget_baseline_put(const struct budget_baseline *baseline, struct action_input *input, struct sink *out);

#endif
