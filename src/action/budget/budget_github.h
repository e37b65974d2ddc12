/* SPDX-License-Identifier: MIT */
/** Workflow commands of GitHub: "::error file=...,line=...,title=...::message". A percent sign and ends of lines
    are escaped everywhere, colons and commas in properties, too. */
#ifndef XHEAP_ACTION_BUDGET_GITHUB_H
#define XHEAP_ACTION_BUDGET_GITHUB_H

struct budget_check;
struct sink;

/** Write a line for each limit that is not ok and each trace that lacks calls, as GitHub's workflows read them. Files
 *  below `directory` are named from there; others are none of the repository's. */
void budget_github(const struct budget_check *check, const char *directory, struct sink *out);

#endif
