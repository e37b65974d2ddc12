/* SPDX-License-Identifier: MIT */
/**
 * Which limits of a budget count a stack. A budget may have thousands of frames, and a trace a hundred thousand stacks,
 * so each name is compared once, with the frames that have a word of it, and each node of the tree of names gets the
 * set of frames that match it or its callers.
 */
#ifndef XHEAP_ACTION_BUDGET_MATCH_H
#define XHEAP_ACTION_BUDGET_MATCH_H

#include "action/budget/budget.h"

struct budget_match;

/** Begin to match the frames of the budget with names of one tree. The budget outlives the matching. */
struct budget_match *budget_match_new(const struct budget *budget);

/** Free the matching; NULL is none. */
void budget_match_free(struct budget_match *match);

/** Compare the frames of the budget that match no name as a whole with the last parts of names from now on.
    To be called once: when the stacks of all traces have names, and before the first stack is matched. */
void budget_match_settle(struct budget_match *match, const struct heap_names *names);

/**
 * Return the number of the list of selections that count a stack: its node, and its node after culling. Of a stack that
 * is cut, frames are missing at its outer end. Threads and processes are left to the caller. Equal lists have one
 * number.
 */
uint32_t budget_match_stack(struct budget_match *match, const struct heap_names *names, uint32_t node, uint32_t culled,
			    bool is_cut);

/** Return the list with this number: selections, in order; a selection that only may count the stack has the number of
    selections added. Its items are there as long as the matching. */
struct budget_list budget_match_list(const struct budget_match *match, uint32_t list);

/** Return whether the frame has matched a name so far. */
bool budget_match_has_hit(const struct budget_match *match, uint32_t word);

/** Return the texts of the names that have matched the frame by their last part, in order; of other frames none. The
    caller frees the array. */
const char **budget_match_last_parts(struct budget_match *match, const struct heap_names *names, uint32_t word,
				     size_t *count);

/** Return the frame as a pattern; NULL: the word is a whole name, or no frame. */
const struct heap_pattern *budget_match_pattern(const struct budget_match *match, uint32_t word);

#endif
