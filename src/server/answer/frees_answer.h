/* SPDX-License-Identifier: MIT */
/** The answer `frees` of viewer/README.md: the stacks that freed blocks. */
#ifndef XHEAP_SERVER_FREES_ANSWER_H
#define XHEAP_SERVER_FREES_ANSWER_H

#include "server/answer/shown_trace.h"

struct question;
struct sink;

enum { FREES_MAX = 20 };

/** Write the stacks that freed blocks of the question's stacks, the largest first, at most FREES_MAX, and sums of all.
    A moment: of blocks that were live then; a range: of blocks of its classes. Return 0, or a negative errno with the
    reason in `diag`. */
int frees_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
		       const struct analysis_caller *caller, struct diag *diag);

#endif
