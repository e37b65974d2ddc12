/* SPDX-License-Identifier: MIT */
/** Who asks: how it hears of what happens on the way to an answer. No code of this part prints. */
#ifndef XHEAP_ANALYSIS_CALLER_H
#define XHEAP_ANALYSIS_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

/** What a note is about. */
enum analysis_note {
	ANALYSIS_INDEX_MADE,    /**< an index was made: news for people only */
	ANALYSIS_INDEX_TROUBLE, /**< an index is damaged, or could not be kept */
	ANALYSIS_TRACE,         /**< what the trace lacks */
	ANALYSIS_QUESTION       /**< a part of the question meets nothing in the trace */
};

/** Zero it: nothing is told, and nothing stops. The functions run in the thread that asks. */
struct analysis_caller {
	void (*note)(void *context, enum analysis_note kind, const char *text); /**< one sentence; NULL: no notes */
	/** called now and then while a trace is matched: events so far, and all; or NULL */
	void (*progress)(void *context, uint64_t done, uint64_t all);
	void *context;
	const bool *is_cancelled; /**< as in base/cancel.h: what is asked fails with -ECANCELED soon; NULL: never */
};

/** Return 0, or -ECANCELED with the reason in `diag` if the caller has cancelled. */
int analysis_check_cancelled(const struct analysis_caller *caller, struct diag *diag);

/** Tell the caller of something, if it wants notes. */
__attribute__((format(printf, 3, 4))) void analysis_note(const struct analysis_caller *caller, enum analysis_note kind,
							 const char *format, ...);

#endif
