/* SPDX-License-Identifier: MIT */
/** A budget that is learned from traces: its limits get the figures, and the head-room that several runs show to be
    needed. */
#ifndef XHEAP_ACTION_BUDGET_UPDATE_H
#define XHEAP_ACTION_BUDGET_UPDATE_H

#include "action/budget/budget_check.h"

/** A limit as it would be written anew. */
struct budget_change {
	uint64_t value, tolerance, variation; /**< as in struct budget_limit */
	bool is_change;
};

/**
 * Return what a limit becomes, by the rule of docs/ci.md. The value is the greatest figure. With several runs, the
 * variation is their difference, and the tolerance is at least as much. A limit that is fixed, that the figures agree
 * with, or of which a name matches nothing, stays.
 */
struct budget_change budget_change_of(const struct budget_check *check, size_t limit);

/** Write the value of a changed limit as the budget has it: "1,234 B +5% varies 0.3%". */
void budget_change_put(struct sink *out, const struct budget_limit *limit, const struct budget_change *change);

/** Write the whole budget with its changes. Comments, order and limits that stay are as they were. */
void budget_update(const struct budget_check *check, struct sink *out);

/**
 * Write a budget to begin with: limits on everything, and on each function that asked for at least a twentieth of the
 * bytes, all of 0. `source` is one of the input's; it has its filter.
 */
void budget_draft(struct action_input *input, struct action_source *source, struct sink *out);

#endif
