/* SPDX-License-Identifier: MIT */
/** Rows of stacks, added up by function: a program may reach one function by many stacks. */
#ifndef XHEAP_ACTION_FUNCTION_SUM_H
#define XHEAP_ACTION_FUNCTION_SUM_H

#include "action/report/report_rows.h"

/** A function and what its stacks have together; zero: there are no rows. */
struct function_sum {
	uint32_t node;                 /**< one of the stacks */
	size_t stack_count;            /**< with some of the number */
	struct action_figures figures; /**< the sums of the numbers and of the extra ones */
};

/** Return the function of the user's code (stack_view_user_node()) with most of a number. The rows are of stacks,
    and of one source; all of them count, not only those that are shown. */
struct function_sum function_sum_largest(struct action_input *input, const struct action_rows *rows,
					 const struct action_sort *sort);

/** Return whether the sum is of the function of this stack. */
bool function_sum_has(struct action_input *input, const struct function_sum *sum, uint32_t node);

/** Return the function with a name that calls most of a number of a function without a name, through others without a
    name or by itself: `node` is its place in the tree, and the numbers are those of these calls. Zero: no function with
    a name calls it. */
struct function_sum function_sum_named_caller(struct action_input *input, const struct action_rows *rows,
					      const struct action_sort *sort, uint32_t nameless);

#endif
