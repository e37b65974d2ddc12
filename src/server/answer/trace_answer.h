/* SPDX-License-Identifier: MIT */
/** The answer `trace` of viewer/README.md: what is to know of a trace besides its cells. */
#ifndef XHEAP_SERVER_TRACE_ANSWER_H
#define XHEAP_SERVER_TRACE_ANSWER_H

#include "server/answer/shown_trace.h"

struct sink;

/** What the answer has beside the trace's facts. */
struct trace_answer_plan {
	const char *const *paths; /**< of all traces that the page may show */
	unsigned path_count;
	unsigned runs;        /**< the first ones, which are the runs of A: the others are those of B; 0: no sides */
	const char *left_out; /**< what the page does not have; NULL: it can ask for all */
};

/** Write the answer of an open trace to a sink in memory. Return 0, or a negative errno with the reason in `diag`; then
    a part of it may be written. */
int trace_answer_write(struct shown_trace *shown, const struct trace_answer_plan *plan, struct sink *out,
		       const struct analysis_caller *caller, struct diag *diag);

#endif
