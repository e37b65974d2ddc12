/* SPDX-License-Identifier: MIT */
/** What came of a budget: for people, as JSON, as JUnit's XML, and as annotations of GitHub. */
#ifndef XHEAP_ACTION_BUDGET_REPORT_H
#define XHEAP_ACTION_BUDGET_REPORT_H

#include "action/budget/budget_check.h"

/** Write the result for people. */
void budget_text(const struct budget_check *check, struct sink *out);

/** Write the result as one object. */
void budget_json(const struct budget_check *check, struct sink *out);

/** Write the result as a test suite with a test case for each limit, and for each trace whether it is complete. */
void budget_junit(const struct budget_check *check, struct sink *out);

/** Write a line for each limit that is not ok and each trace that lacks calls, as GitHub's workflows read them. Files
 *  below `directory` are named from there; others are none of the repository's. */
void budget_github(const struct budget_check *check, const char *directory, struct sink *out);

/** Return a sentence about a limit: its figure and what is allowed, or why there is no verdict. The caller frees it. */
char *budget_sentence(const struct budget_check *check, size_t limit);

/** Return ", before 1.2 KiB" for a stack, with a baseline; else "". */
struct text budget_before_text(const struct budget_check *check, const struct budget_limit *limit,
			       const struct verdict_stack *stack);

/** Return why the trace is not complete; "" if it is. */
struct text budget_missing(const struct action_source *source);

#endif
