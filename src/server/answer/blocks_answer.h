/* SPDX-License-Identifier: MIT */
/** Blocks one by one: those that a page selects, and all that is known of one of them. */
#ifndef XHEAP_SERVER_BLOCKS_ANSWER_H
#define XHEAP_SERVER_BLOCKS_ANSWER_H

#include "server/answer/shown_trace.h"

struct question;

/** Write the rows of a part of the selected blocks, in the order that was asked for. Return 0, or a negative errno with
    the reason in `diag`. */
int blocks_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
			const struct analysis_caller *caller, struct diag *diag);

/** Write the stacks of the block question->id, the blocks that reallocs made it of and made of it, and those that lay
    at its address before and after it. Return as above. */
int block_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
		       const struct analysis_caller *caller, struct diag *diag);

#endif
