/* SPDX-License-Identifier: MIT */
/** A trace opened to be analysed: its allocations and the names of its code. */
#ifndef XHEAP_CLI_ANALYSIS_H
#define XHEAP_CLI_ANALYSIS_H

#include "action/report/action.h"
#include "base/option.h"
#include "table/index_cache.h"

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

enum { ANALYSIS_INDEX_PLACES = INDEX_CACHE_PLACES };

/** The row -noIndex, for every command that reads the table of a trace: a group with offset 0. */
extern const struct option analysis_rows[];

/** Announce no new index on standard error: the command writes for a program. */
void analysis_be_silent(void);

/** Make no index, but read one that is there. */
void analysis_make_none(void);

/** Set the paths where the index of a trace may be: in the user's cache, and beside the trace. A path that there cannot
    be is NULL. The caller frees the paths. */
void analysis_index_paths(char *paths[ANALYSIS_INDEX_PLACES], const char *trace_path);

/** Return whether the trace gets an index. */
bool analysis_is_worth_an_index(const struct trace *trace);

/** Make the table of a trace: from its index if there is one, else from its events; traces of XHEAP_INDEX_EVENTS
 *  events (a million) get an index then, which one line on standard error announces. *index_path is the index that
 *  the table came from, the caller's (free), or NULL. CLI_OK, or CLI_FAILED after a message. */
int analysis_table(struct heap_table **table, const struct trace *trace, const char *path, char **index_path);

/** Make the table again after a part of it could not be read, and print a note: its index is damaged, and made anew.
    Return CLI_OK, and all answers are to be made again; or CLI_FAILED after a message. */
int analysis_table_mend(struct heap_table **table, const struct trace *trace, const char *path, char **index_path);

/** Return whether all of the table could be read so far. */
bool analysis_is_good(const struct heap_table *table);

/** Open the file, or the newest one here when path is NULL. CLI_OK, or CLI_FAILED after a message. */
int analysis_open(struct analysis *analysis, const char *path, bool with_lines);

/** Open another trace beside one that is open, with one tree of names for both. Close it before that one. CLI_OK, or
    CLI_FAILED after a message. */
int analysis_open_beside(struct analysis *analysis, const char *path, const struct analysis *first);

/** Mend the analysis as analysis_table_mend() does. */
int analysis_mend(struct analysis *analysis);

/** Close the trace and free the rest. */
void analysis_close(struct analysis *analysis);

/** Print on standard error how long each step took. */
void analysis_tell_times(const struct analysis *analysis);

/** Return the trace as a source of reports; the caller sets its window, and ends it with the action_input that it is
    of. */
struct action_source analysis_source(const struct analysis *analysis, const struct heap_filter *filter);

#endif
