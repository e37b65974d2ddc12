/* SPDX-License-Identifier: MIT */
/**
 * One way to ask: from a question to sources that reports are made of. Commands, libraries and servers are its callers.
 *
 *     analysis_open()     traces, their allocations, one tree of names
 *     analysis_run()      ranges, filters and windows; what the caller makes of them; again if an index was damaged
 *     analysis_close()
 *
 * Nothing is printed: notes go to the caller's function, reasons of failures into a diag. A request is of one thread
 * at a time, but several requests may be about one opened trace.
 */
#ifndef XHEAP_ANALYSIS_ANALYSIS_H
#define XHEAP_ANALYSIS_ANALYSIS_H

#include "export/report.h"
#include "analysis/opened_trace.h"
#include "query/window_word.h"

/** Patterns of a filter. */
enum analysis_pattern { ANALYSIS_REQUIRED, ANALYSIS_REQUIRED_OF_FREE, ANALYSIS_PATTERN_COUNT };

/** A question. It belongs to the caller, with all that it points to, until analysis_close(). Zero it to begin. */
struct analysis_request {
	unsigned source_count;
	const struct window_word
		*words; /**< the sources: traces, windows or (with `asked`) moments; NULL: `opened` has them */
	struct opened_trace *const *opened; /**< by source: a trace that is open; NULL: the words' files are opened */
	struct opened_options options;      /**< how they are opened */
	const struct heap_range *ranges;    /**< by source; INT64_MIN and INT64_MAX: no bound. NULL: all of the time */
	struct filter_request *asked;       /**< for all sources; NULL: everything passes */
	enum heap_by by;
	const struct report_part *parts; /**< reports, whose questions the traces have to answer; or none */
	unsigned part_count;
	struct heap_cull *cull;
	struct heap_patterns *callers_of;
	struct heap_names *names; /**< of the one source, the caller's own; NULL: they are made */
	const char *session;      /**< that records the first source; NULL: none */
	bool forgets_ended;       /**< heap_filter_forget_ended(), without `asked` */
	bool without_peak;        /**< that of the filter, without `asked` */
	bool with_lines;          /**< names have a frame for each line */
	bool without_windows;     /**< the caller makes its own */
	bool is_typed;            /**< reasons begin with the option or the path that was typed */
	bool tells_outside;       /**< note times of the question that lie outside of a trace */
	bool asks_packages;       /**< as that of struct action_input */
	struct text_layout layout;
	const char *const *pattern_words; /**< by enum analysis_pattern: what notes and reasons call them */
	struct analysis_caller caller;
};

struct analysis {
	const struct analysis_request *request;
	struct opened_trace **opened;  /**< by source: its trace; one for all words that name one file */
	struct action_source *sources; /**< of the request; they have filters and windows after analysis_prepare() */
	unsigned source_count;         /**< may be lowered before analysis_prepare() */
	struct action_input input;     /**< of all sources */
	struct analysis_own *own;      /**< by source */
};

/** Open the traces of a request and make their tables. End it with analysis_close() in any case. Return 0, or a
    negative errno with the reason in `diag`. */
int analysis_open(struct analysis *analysis, const struct analysis_request *request, struct diag *diag);

/** Give each source its range, filter and window, in place of those of an earlier call. Return 0; -ENOMSG if required
    frames are nowhere, which notes have said; or another negative errno. The reason is in `diag`. */
int analysis_prepare(struct analysis *analysis, struct diag *diag);

/** Prepare the sources and call make(context), which returns 0, a negative errno with the reason in `diag`, or a
    positive number of its own. If a table proves damaged, undo(context), mend the table and do all of it again. Return
    what make() returned, or as analysis_prepare(). After a failure nothing is left to undo. */
int analysis_run(struct analysis *analysis, int (*make)(void *context, struct diag *diag), void (*undo)(void *context),
		 void *context, struct diag *diag);

/** Return whether the sources are those of the request, each with what analysis_prepare() gives it (base/check.h). */
bool analysis_is_valid(const struct analysis *analysis);

/** Return whether all tables could be read so far. */
bool analysis_is_good(const struct analysis *analysis);

/** Free all and release the traces. */
void analysis_close(struct analysis *analysis);

/* ---- parts of it, also for questions about rows ---- */

/** Note which patterns match no frame of the names. Return 0, or -ENOMSG with the first reason in `diag` if none of
    them does. `word` is how notes and reasons call them. */
int analysis_check_patterns(const struct heap_patterns *patterns, const char *word, struct heap_names *names,
			    const struct analysis_caller *caller, struct diag *diag);

/** Narrow *range, which is all of a trace, to what was asked for: a range, or all up to a moment. is_typed: the reason
    begins with the option. Return 0, or -EINVAL with the reason in `diag`. */
int analysis_range(struct filter_request *asked, const struct trace *trace, bool is_typed, struct heap_range *range,
		   struct diag *diag);

/** Note which times of the question lie outside of the trace. */
void analysis_tell_outside(const struct heap_filter *filter, struct heap_range range, const struct trace *trace,
			   const struct analysis_caller *caller);

#endif
