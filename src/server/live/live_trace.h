/* SPDX-License-Identifier: MIT */
/**
 * A trace that is recorded while a page shows it. A thread follows the file (match/follow.h) and keeps its cells
 * (cells/growing_cells.h), so that a picture costs what is new. Pictures are made only when somebody waits for one.
 * Any thread may call the functions.
 */
#ifndef XHEAP_SERVER_LIVE_TRACE_H
#define XHEAP_SERVER_LIVE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/** X(id, word): how a recording is. SILENT: its logger does not answer. LOST: its logger has died. OVER: it has ended,
    or cannot be followed; it stays so. */
#define LIVE_STATES(X) X(RECORDING, "recording") X(SILENT, "silent") X(LOST, "lost") X(OVER, "over")
#define X(id, word) LIVE_##id,
enum live_state { LIVE_STATES(X) };
#undef X

/** What is known of a recording. */
struct live_note {
	enum live_state state;
	char text[300];      /**< about it, for people */
	int64_t until_ns;    /**< everything up to then is in the first size_bytes of the file; 0: unknown */
	uint64_t size_bytes; /**< of the file */
};

struct live_trace;

/** Begin to follow the trace at `path`, with a priority below that of programs. without_files: names come from the
    trace alone. Return NULL with the reason in `diag` if there is no thread for it. End it with live_trace_free(). */
struct live_trace *live_trace_new(const char *path, bool without_files, struct diag *diag);

/** Take what is known of the recording now. */
void live_trace_note(struct live_trace *live, const struct live_note *note);

/** Copy the note; its state is OVER after a trace was found to be one that cannot be followed, too. */
void live_trace_noted(struct live_trace *live, struct live_note *note);

/** A picture as the answer `live`; the caller frees the bytes. */
struct live_answer {
	uint64_t number; /**< grows; 0: none was made */
	char *bytes;
	size_t size;
};

/** Take the newest picture if its number is above `seen`; else have one made when there is something new, and return
    false. */
bool live_trace_picture(struct live_trace *live, uint64_t seen, struct live_answer *picture);

/** Return the events that are matched, and set *all to those that will be at the end of this step. */
uint64_t live_trace_progress(struct live_trace *live, uint64_t *all);

/** End it; NULL is allowed. */
void live_trace_free(struct live_trace *live);

#endif
