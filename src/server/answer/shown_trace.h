/* SPDX-License-Identifier: MIT */
/** A trace that a page shows. One thread at a time asks it. */
#ifndef XHEAP_SERVER_SHOWN_TRACE_H
#define XHEAP_SERVER_SHOWN_TRACE_H

#include "analysis/analysis.h"
#include "cells/fine_cells.h"

/** A trace. Set the first members and zero the rest; end it with shown_trace_close(). */
struct shown_trace {
	const char *path; /**< the caller's, as a command would name it */
	struct opened_options options;
	struct opened_trace *opened; /**< NULL: not opened yet */
	struct heap_cull cull;       /**< what it has found is the same for each question */
	uint32_t *nodes;             /**< by site: see shown_trace_nodes() */
	bool has_fine;               /**< fine is known, which may be that there are none */
	struct fine_cells fine;      /**< see shown_trace_fine() */
};

/** Of a trace that is recorded, at most so many events can be shown as of a moment: each time all are matched anew. */
enum { SHOWN_EVENTS_MAX = 50000000 };

/** Open the trace, make its table, which may take an index's time, and name its code. caller: its progress is
    called, and it may cancel. Return 0, or a negative errno with the reason in `diag`; then it may be called again. */
int shown_trace_open(struct shown_trace *shown, const struct analysis_caller *caller, struct diag *diag);

/** Note that an open trace is cut or being written, if it is: the page says it, too, but not to whoever makes a file of
    it. */
void shown_trace_tell_damage(const struct shown_trace *shown, const struct analysis_caller *caller);

/** Close the trace. It may not have been opened. */
void shown_trace_close(struct shown_trace *shown);

/** A question about an open trace, for shown_trace_ask(). */
struct shown_question {
	struct shown_trace *shown;
	const char *filter; /**< words: which blocks count; NULL: all */
	bool with_window;   /**< the source has a window: sums over all blocks */
	bool has_moment;    /**< it is about the blocks that live at a moment */
	int64_t at_ns;
	/** Make the answer of the input, which has one source. It may run twice: it begins anew then. Return 0, or a
	    negative errno with the reason in `diag`. */
	int (*make)(void *context, struct analysis *analysis, struct diag *diag);
	void *context;
};

/** Return by site its node of the names, which is found once; NULL: the question was cancelled. To be called within a
    question. */
const uint32_t *shown_trace_nodes(struct shown_trace *shown, const struct action_source *source);

/** Return the fine cells of a large trace, which are made once, or read from its index; NULL: it has none, or the
    question was cancelled. To be called within a question. */
const struct fine_cells *shown_trace_fine(struct shown_trace *shown, const struct action_source *source);

/** Find what answers about cells need besides the table: names, and wrappers of allocators. Return as
    shown_trace_ask(). */
int shown_trace_prepare(struct shown_trace *shown, const struct analysis_caller *caller, struct diag *diag);

/** Ask. Return 0, or a negative errno with the reason in `diag`: -ECANCELED if the caller has cancelled. */
int shown_trace_ask(const struct shown_question *question, const struct analysis_caller *caller, struct diag *diag);

#endif
