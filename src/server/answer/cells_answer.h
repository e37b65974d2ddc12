/* SPDX-License-Identifier: MIT */
/** The answer `cells` of viewer/README.md. */
#ifndef XHEAP_SERVER_CELLS_ANSWER_H
#define XHEAP_SERVER_CELLS_ANSWER_H

#include "server/answer/shown_trace.h"

struct question;
struct sink;

/** Write the cells. Return 0, or a negative errno with the reason in `diag`; then a part of them may be written. */
int cells_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
		       const struct analysis_caller *caller, struct diag *diag);

#endif
