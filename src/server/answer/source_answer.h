/* SPDX-License-Identifier: MIT */
/**
 * Lines of a source file, with the bytes of the blocks whose stacks go through each.
 *
 * A question names a function of the trace, never a path: the file is the one that a frame of this function has. It is
 * opened as this user, only by an absolute path, and only if it is a regular file (base/file.h); links are followed, as
 * in source trees of build tools. A file that is no text or larger than SOURCE_BYTES_MAX is refused.
 */
#ifndef XHEAP_SERVER_SOURCE_ANSWER_H
#define XHEAP_SERVER_SOURCE_ANSWER_H

#include "server/answer/shown_trace.h"

struct question;

enum { SOURCE_BYTES_MAX = 16 << 20, SOURCE_LINES = 15, SOURCE_LINE_BYTES = 400 };

/** Write the lines around question->line, or, if it is 0, around the line of the function that has the most bytes.
    Return 0, or a negative errno with the reason in `diag`. */
int source_answer_write(struct shown_trace *shown, const struct question *question, struct sink *out,
			const struct analysis_caller *caller, struct diag *diag);

#endif
