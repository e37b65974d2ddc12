/* SPDX-License-Identifier: MIT */
#include "analysis/trace_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "match/match.h"
#include "table/index_file.h"

enum { INDEX_EVENTS_DEFAULT = 1000000 };

bool trace_table_is_worth_an_index(const struct trace *trace)
{
	const char *word = getenv("XHEAP_INDEX_EVENTS");
	uint64_t least = INDEX_EVENTS_DEFAULT;
	if (word && !strcmp(word, "none"))
		return false;
	if (word && *word)
		text_parse_count(word, &least);
	return trace_dictionary(trace)->is_complete && trace_dictionary(trace)->event_count >= least;
}

/* One line: the size, the place, and how to get rid of it. */
static void index_announce(const struct index_cache_made *made, const struct analysis_caller *caller)
{
	char removed[160] = "", above[160] = "";
	if (made->removed_count)
		snprintf(removed, sizeof(removed), "; removed %s unused longest, %s",
			 text_count(made->removed_count).data, text_bytes(made->removed_bytes).data);
	if (made->bytes > made->limit_bytes)
		snprintf(above, sizeof(above), "; it alone exceeds the limit of %s for all indexes",
			 text_bytes(made->limit_bytes).data);
	analysis_note(caller, ANALYSIS_INDEX_MADE,
		      "made an index for later reports, %s in %s (xheap clean removes it)%s%s",
		      text_bytes(made->bytes).data, made->directory, removed, above);
}

/* Build the table; in an index, if there can be one. */
static int table_build(struct heap_table **table, const struct trace *trace, const char *path, bool wants_index,
		       const struct analysis_caller *caller, struct diag *diag)
{
	struct heap_build how = {.fd = -1,
				 .progress = caller->progress,
				 .cookie = caller->context,
				 .is_cancelled = caller->is_cancelled};
	struct diag reason = {""};
	struct index_cache_made made;
	if (wants_index) {
		int fd = index_cache_begin(&reason);
		how.fd = fd < 0 ? -1 : fd;
		how.reserved_bytes = fd < 0 ? 0 : HEAP_INDEX_HEAD_BYTES;
	}
	bool has_file = how.fd >= 0;
	int error = heap_table_build(table, trace, &how, diag);
	if (error)
		diag_prefix(diag, "%s", path);
	if (error || !wants_index)
		return error;
	if (has_file && !index_cache_write(*table, path, &made, &reason))
		index_announce(&made, caller);
	else
		analysis_note(caller, ANALYSIS_INDEX_TROUBLE,
			      "no index is kept, so the next report reads the whole trace again: %s", reason.text);
	return 0;
}

int trace_table_make(struct heap_table **table, const struct trace *trace, const char *path, enum index_use use,
		     char **index_path, const struct analysis_caller *caller, struct diag *diag)
{
	bool is_made = use == INDEX_MADE && trace_table_is_worth_an_index(trace);
	*index_path = NULL;
	*table = NULL;
	if ((is_made || use == INDEX_READ) && !index_cache_read(table, trace, path, index_path))
		return 0;
	return table_build(table, trace, path, is_made, caller, diag);
}

int trace_table_mend(struct heap_table **table, const struct trace *trace, const char *path, enum index_use *use,
		     char **index_path, const struct analysis_caller *caller, struct diag *diag)
{
	char *damaged = *index_path;
	/* A table that was built just now has no index that could be damaged. */
	if (!damaged)
		return diag_fail(diag, EIO, "%s: the table of allocations could not be read again", path);
	/* It would be read again, again and again. */
	if (unlink(damaged) && errno != ENOENT) {
		analysis_note(caller, ANALYSIS_INDEX_TROUBLE, "the index %s is damaged, and cannot be removed: %s",
			      damaged, strerror(errno));
		*use = INDEX_UNUSED;
	} else {
		analysis_note(caller, ANALYSIS_INDEX_TROUBLE, "the index %s was damaged and is made anew", damaged);
	}
	int error = trace_table_make(table, trace, path, *use, index_path, caller, diag);
	free(damaged);
	return error;
}
