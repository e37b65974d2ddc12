/* SPDX-License-Identifier: MIT */
/** Answers about the whole run that an index keeps: what a page asks first. They are of one xheap, of the names that
    code has now, and of one list of traces. */
#ifndef XHEAP_SERVER_KEPT_ANSWERS_H
#define XHEAP_SERVER_KEPT_ANSWERS_H

#include <stddef.h>

#include "server/answer/trace_answer.h"

enum { KEPT_CELLS_MAX = 2 /* pages have two widths */ };

/** Bytes, of malloc(). */
struct kept_bytes {
	char *bytes; /**< NULL: none */
	size_t size;
};

/** Answers. */
struct kept_answers {
	struct kept_bytes trace;
	struct kept_bytes cells[KEPT_CELLS_MAX];
	unsigned intervals[KEPT_CELLS_MAX]; /**< that were asked for */
};

/** Read the answers of an open trace, whose bytes are the caller's then. Return false if there are none. */
bool kept_answers_read(struct kept_answers *kept, const struct shown_trace *shown,
		       const struct trace_answer_plan *plan);

/** Keep the answers in the trace's index, if it has one of this user's. The bytes stay the caller's. */
void kept_answers_write(const struct kept_answers *kept, const struct shown_trace *shown,
			const struct trace_answer_plan *plan);

#endif
