/* SPDX-License-Identifier: MIT */
/** JUnit's XML, as Jenkins, GitLab and others read it: one suite, a test case for each trace and each limit. A case
    keeps its name while the budget changes around it, so that its history is one. */
#ifndef XHEAP_ACTION_BUDGET_JUNIT_H
#define XHEAP_ACTION_BUDGET_JUNIT_H

struct budget_check;
struct sink;

/** Write the result as a test suite with a test case for each limit, and for each trace whether it is complete. */
void budget_junit(const struct budget_check *check, struct sink *out);

#endif
