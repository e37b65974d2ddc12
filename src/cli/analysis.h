/* SPDX-License-Identifier: MIT */
/** A trace opened to be analysed: its allocations and the names of its code. */
#ifndef XHEAP_CLI_ANALYSIS_H
#define XHEAP_CLI_ANALYSIS_H

#include "action/action.h"

struct analysis {
	char *path;
	struct trace *trace;
	struct heap_table *table;
	char *index_path; /**< of the index that the table was read from; NULL: it was built */
	struct symbols *symbols;
	struct heap_names *names;
	/** when it began, when the trace was open, when the table was there */
	uint64_t begin_ns, opened_ns, matched_ns;
};

enum { ANALYSIS_INDEX_PLACES = 2 };

/** Where the index of a trace may be: beside it, else in the user's cache. How many places there are; the paths are the
    caller's (free), or NULL. */
unsigned analysis_index_paths(char *paths[ANALYSIS_INDEX_PLACES], const char *trace_path);

/** Whether the trace gets an index. */
bool analysis_is_worth_an_index(const struct trace *trace);

/** The table of a trace: from its index where there is one, else built; traces of XHEAP_INDEX_EVENTS events (a million)
 *  get an index then. *index_path is the index that it came from, the caller's (free), or NULL. CLI_OK, or CLI_FAILED
 *  after a message. */
int analysis_table(struct heap_table **table, const struct trace *trace, const char *path, char **index_path);

/** The table again, once some of it could not be read: that of a damaged index is made anew, and so is the index, with
 *  a note. CLI_OK, and all that was answered is to be answered again; or CLI_FAILED after a message. */
int analysis_table_mend(struct heap_table **table, const struct trace *trace, const char *path, char **index_path);

/** Whether what was answered is good. */
bool analysis_is_good(const struct heap_table *table);

/** Open the file, or the newest one here when path is NULL. CLI_OK, or CLI_FAILED after a message. */
int analysis_open(struct analysis *analysis, const char *path, bool with_lines);

/** As analysis_table_mend(). */
int analysis_mend(struct analysis *analysis);
void analysis_close(struct analysis *analysis);

/** Say on standard error what took how long, up to now. */
void analysis_tell_times(const struct analysis *analysis);

/** Return the trace as a source of reports; the caller sets its window, and ends it with the action_input that it is
    of. */
struct action_source analysis_source(const struct analysis *analysis, const struct heap_filter *filter);

#endif
