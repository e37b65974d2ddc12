/* SPDX-License-Identifier: MIT */
#include "cli/ask/analysis.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "match/match.h"
#include "os/monotonic.h"
#include "table/index_file.h"

enum { INDEX_EVENTS_DEFAULT = 1000000, PROGRESS_NS = 200000000, PERCENT = 100 };

/* ---- the index ---- */

/* Of this command. */
static bool is_unwanted, is_silent, makes_none;

static int refuse_index(void *context, struct words *words, int number)
{
	(void)context, (void)words, (void)number;
	is_unwanted = true;
	return 0;
}

const struct option analysis_rows[] = {
	{"noIndex", .type = VALUE_TAKEN, .take = refuse_index,
	 .help = "neither read nor make an index: match all events again"},
	{.type = VALUE_END},
};

void analysis_be_silent(void)
{
	is_silent = true;
}

void analysis_make_none(void)
{
	makes_none = true;
}

void analysis_index_paths(char *paths[ANALYSIS_INDEX_PLACES], const char *trace_path)
{
	struct diag ignored = {""};
	struct trace *trace;
	memset(paths, 0, ANALYSIS_INDEX_PLACES * sizeof(*paths));
	if (trace_open(&trace, trace_path, &ignored))
		return;
	index_cache_paths(paths, trace, trace_path);
	trace_close(trace);
}

bool analysis_is_worth_an_index(const struct trace *trace)
{
	const char *word = getenv("XHEAP_INDEX_EVENTS");
	uint64_t least = INDEX_EVENTS_DEFAULT;
	if (is_unwanted || (word && !strcmp(word, "none")))
		return false;
	if (word && *word)
		text_parse_count(word, &least);
	return trace_dictionary(trace)->is_complete && trace_dictionary(trace)->event_count >= least;
}

/* Show the progress on a terminal, five times a second. */
static void progress_show(void *cookie, uint64_t done, uint64_t all)
{
	(void)cookie;
	static int64_t last_ns;
	int64_t time_ns = (int64_t)monotonic_now_ns();
	if (!last_ns)
		last_ns = time_ns;
	if (time_ns - last_ns < PROGRESS_NS || !all)
		return;
	last_ns = time_ns;
	cli_progress("reading the trace: %u %%",
		     (unsigned)((unsigned __int128)(done < all ? done : all) * PERCENT / all));
}

/* One line: the size, the place, and how to get rid of it. */
static void index_announce(const struct index_cache_made *made)
{
	char removed[160] = "", above[160] = "";
	if (made->removed_count)
		snprintf(removed, sizeof(removed), "; removed %s unused longest, %s",
			 text_count(made->removed_count).data, text_bytes(made->removed_bytes).data);
	if (made->bytes > made->limit_bytes)
		snprintf(above, sizeof(above), "; it alone exceeds the limit of %s for all indexes",
			 text_bytes(made->limit_bytes).data);
	if (!is_silent)
		cli_say("made an index for later reports, %s in %s (xheap clean removes it)%s%s",
			text_bytes(made->bytes).data, made->directory, removed, above);
}

/* Build the table; in an index, if there can be one. */
static int table_build(struct heap_table **table, const struct trace *trace, const char *path, bool wants_index,
		       struct diag *diag)
{
	bool is_terminal = isatty(STDERR_FILENO) == 1;
	struct heap_build how = {.fd = -1, .progress = is_terminal ? progress_show : NULL};
	struct diag reason = {""};
	struct index_cache_made made;
	if (wants_index) {
		int fd = index_cache_begin(&reason);
		how.fd = fd < 0 ? -1 : fd;
		how.reserved_bytes = fd < 0 ? 0 : HEAP_INDEX_HEAD_BYTES;
	}
	bool has_file = how.fd >= 0;
	int error = heap_table_build(table, trace, &how, diag);
	cli_progress_end();
	if (error || !wants_index)
		return error;
	if (has_file && !index_cache_write(*table, path, &made, &reason))
		index_announce(&made);
	else
		cli_say("no index is kept, so the next report reads the whole trace again: %s", reason.text);
	return 0;
}

int analysis_table(struct heap_table **table, const struct trace *trace, const char *path, char **index_path)
{
	struct diag diag = {""};
	bool wants_index = analysis_is_worth_an_index(trace);
	*index_path = NULL;
	if (wants_index && !index_cache_read(table, trace, path, index_path))
		return CLI_OK;
	int error = table_build(table, trace, path, wants_index && !makes_none, &diag);
	return error ? cli_fail("%s: %s", path, diag.text) : CLI_OK;
}

bool analysis_is_good(const struct heap_table *table)
{
	return !*table->is_damaged;
}

int analysis_table_mend(struct heap_table **table, const struct trace *trace, const char *path, char **index_path)
{
	char *damaged = *index_path;
	/* A table that was built just now has no index that could be damaged. */
	if (!damaged)
		return cli_fail("%s: the table of allocations could not be read again", path);
	/* It would be read again, again and again. */
	if (unlink(damaged) && errno != ENOENT) {
		cli_say("the index %s is damaged, and cannot be removed: %s", damaged, strerror(errno));
		is_unwanted = true;
	} else {
		cli_say("the index %s was damaged and is made anew", damaged);
	}
	heap_table_free(*table);
	*table = NULL;
	int status = analysis_table(table, trace, path, index_path);
	free(damaged);
	return status;
}

/* ---- all of it ---- */

/* All but the names. */
static int open_table(struct analysis *analysis, const char *path)
{
	struct diag diag = {""};
	*analysis = (struct analysis){.path = cli_trace_path(path), .begin_ns = monotonic_now_ns()};
	if (!analysis->path)
		return CLI_FAILED;
	int error = trace_open(&analysis->trace, analysis->path, &diag);
	if (error) {
		free(analysis->path);
		return cli_fail("%s", diag.text);
	}
	analysis->opened_ns = monotonic_now_ns();
	if (analysis_table(&analysis->table, analysis->trace, analysis->path, &analysis->index_path) != CLI_OK) {
		trace_close(analysis->trace);
		free(analysis->path);
		return CLI_FAILED;
	}
	analysis->matched_ns = monotonic_now_ns();
	analysis->symbols = symbols_new();
	return CLI_OK;
}

int analysis_open(struct analysis *analysis, const char *path, bool with_lines)
{
	int status = open_table(analysis, path);
	if (status == CLI_OK)
		analysis->names = heap_names_new(analysis->trace, analysis->symbols, with_lines);
	return status;
}

int analysis_open_beside(struct analysis *analysis, const char *path, const struct analysis *first)
{
	int status = open_table(analysis, path);
	if (status == CLI_OK)
		analysis->names = heap_names_new_beside(first->names, analysis->trace, analysis->symbols);
	return status;
}

int analysis_mend(struct analysis *analysis)
{
	return analysis_table_mend(&analysis->table, analysis->trace, analysis->path, &analysis->index_path);
}

void analysis_close(struct analysis *analysis)
{
	heap_names_free(analysis->names);
	symbols_free(analysis->symbols);
	heap_table_free(analysis->table);
	free(analysis->index_path);
	trace_close(analysis->trace);
	free(analysis->path);
}

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	return (double)(to_ns - from_ns) / 1e9;
}

void analysis_tell_times(const struct analysis *analysis)
{
	uint64_t symbols_ns = symbols_spent_ns(analysis->symbols), end_ns = monotonic_now_ns();
	cli_say("timing: opening %.3f s, %s %.3f s, symbols %.3f s, answering %.3f s",
		seconds(analysis->begin_ns, analysis->opened_ns), analysis->index_path ? "index" : "matching",
		seconds(analysis->opened_ns, analysis->matched_ns), seconds(0, symbols_ns),
		seconds(analysis->matched_ns + symbols_ns, end_ns));
}

struct action_source analysis_source(const struct analysis *analysis, const struct heap_filter *filter)
{
	return (struct action_source){.path = analysis->path,
				      .trace = analysis->trace,
				      .table = analysis->table,
				      .filter = filter,
				      .names = analysis->names};
}
