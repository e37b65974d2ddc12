/* SPDX-License-Identifier: MIT */
/** The answer `trace` of viewer/README.md: what is to know of a trace besides its cells. */
#ifndef XHEAP_SERVER_TRACE_ANSWER_H
#define XHEAP_SERVER_TRACE_ANSWER_H

#include "server/answer/shown_trace.h"

struct sink;

/** Write the answer of an open trace. paths: those of all traces that the page may show. Return 0, or a negative errno
    with the reason in `diag`; then a part of it may be written. */
int trace_answer_write(struct shown_trace *shown, const char *const *paths, unsigned path_count, struct sink *out,
		       const struct analysis_caller *caller, struct diag *diag);

#endif
