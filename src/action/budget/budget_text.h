/* SPDX-License-Identifier: MIT */
/** The result of a check for people, and the sentences that other formats share. */
#ifndef XHEAP_ACTION_BUDGET_TEXT_H
#define XHEAP_ACTION_BUDGET_TEXT_H

#include <stddef.h>

#include "action/budget/budget_check.h"

/** Write the result for people. */
void budget_text(const struct budget_check *check, struct sink *out);

/** Return a sentence about a limit: its figure and what is allowed, or why there is no verdict. The caller frees it. */
char *budget_sentence(const struct budget_check *check, size_t limit);

/** Return ", before 1.2 KiB" for a stack, with a baseline; else "". */
struct text budget_before_text(const struct budget_check *check, const struct budget_limit *limit,
			       const struct verdict_stack *stack);

/** Return why the trace is not complete; "" if it is. */
struct text budget_missing(const struct action_source *source);

#endif
