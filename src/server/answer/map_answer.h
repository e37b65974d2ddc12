/* SPDX-License-Identifier: MIT */
/** The pages that blocks lie in at a moment: how full they are, whose they are, and who keeps those that are nearly
    empty. The same as `xheap heap -map`. */
#ifndef XHEAP_SERVER_MAP_ANSWER_H
#define XHEAP_SERVER_MAP_ANSWER_H

#include "server/answer/shown_trace.h"

struct question;

/** Runs of pages, functions and stacks in an answer: the first ones, and how many more there are. */
enum { MAP_RUNS_MAX = 20000, MAP_KEEPERS_MAX = 20 };

/** Write the map of the question's moment. Return 0, or a negative errno with the reason in `diag`. */
int map_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
		     const struct analysis_caller *caller, struct diag *diag);

#endif
