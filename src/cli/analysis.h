/* SPDX-License-Identifier: MIT */
/** A trace opened to be analysed: its allocations and the names of its code. */
#ifndef XHEAP_CLI_ANALYSIS_H
#define XHEAP_CLI_ANALYSIS_H

#include "action/action.h"

struct analysis {
	char *path;
	struct trace *trace;
	struct heap_table *table;
	struct symbols *symbols;
	struct heap_names *names;
};

/** Open the file, or the newest one here when path is NULL. CLI_OK, or CLI_FAILED after a message. */
int analysis_open(struct analysis *analysis, const char *path, bool with_lines);
void analysis_close(struct analysis *analysis);

/** What actions are made from; the caller sets the rest. */
struct action_source analysis_source(const struct analysis *analysis, const struct heap_filter *filter, struct heap_cull *cull);
void analysis_source_fini(struct action_source *source);

#endif
