/* SPDX-License-Identifier: MIT */
#include "server/answer/shown_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "action/report/losses.h"
#include "base/cancel.h"
#include "base/sink.h"
#include "base/text.h"
#include "cells/cells.h"
#include "query/cull.h"
#include "server/answer/question_filter.h"
#include "trace/index_events.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { MOMENT_BYTES = 32 };

/* The recording goes on, and must not wait. */
static int events_check(const struct shown_trace *shown, struct diag *diag)
{
	uint64_t count = trace_dictionary(shown->opened->trace)->event_count;
	return !shown->options.until_ns || count <= SHOWN_EVENTS_MAX
		       ? 0
		       : diag_fail(diag, E2BIG, "it has %s events: this is answered when the recording has ended",
				   text_count(count).data);
}

int shown_trace_open(struct shown_trace *shown, const struct analysis_caller *caller, struct diag *diag)
{
	struct heap_table *table;
	int error = shown->opened ? 0 : opened_trace_open(&shown->opened, shown->path, &shown->options, caller, diag);
	if (!error && !shown->cull.with_entries)
		heap_cull_use_default(&shown->cull);
	error = error ? error : events_check(shown, diag);
	error = error ? error : opened_trace_table(shown->opened, &table, caller, diag);
	return error ? error : opened_trace_resolve(shown->opened, caller, diag);
}

void shown_trace_tell_damage(const struct shown_trace *shown, const struct analysis_caller *caller)
{
	const struct trace_dictionary *dictionary = trace_dictionary(shown->opened->trace);
	struct sink text;
	if (dictionary->is_complete)
		return;
	sink_to_memory(&text);
	losses_text_end(&text, shown->path, dictionary);
	char *words = sink_take(&text, NULL);
	analysis_note(caller, ANALYSIS_TRACE, "%s %s", text_shown(shown->path), words);
	free(words);
}

void shown_trace_close(struct shown_trace *shown)
{
	heap_cull_fini(&shown->cull);
	fine_cells_fini(&shown->fine);
	free(shown->nodes);
	opened_trace_release(shown->opened);
	shown->opened = NULL;
	shown->nodes = NULL;
	shown->has_fine = false;
}

struct shown_making {
	const struct shown_question *question;
	struct analysis analysis;
};

static int asking_make(void *context, struct diag *diag)
{
	struct shown_making *asking = context;
	return asking->question->make(asking->question->context, &asking->analysis, diag);
}

static void asking_undo(void *context)
{
	(void)context;
}

const uint32_t *shown_trace_nodes(struct shown_trace *shown, const struct action_source *source)
{
	const struct cells_source cells = {.table = source->table, .names = source->names, .filter = source->filter};
	if (!shown->nodes)
		shown->nodes = cells_name_sites(&cells);
	return shown->nodes;
}

/* Whether the trace has what fine cells are made of, many blocks, each of which counts as one. One that is recorded is
   not asked for long as of one time. */
static bool is_worth_fine(const struct shown_trace *shown, const struct heap_table *table)
{
	return !table->sample_bytes && !table->nested_count && !heap_is_folded(table) && !shown->options.until_ns &&
	       table->count / FINE_INDEXES >= index_events_least();
}

static uint32_t most_fine(const struct heap_table *table)
{
	uint32_t most = table->count / FINE_ROWS_PER_CELL;
	return most < FINE_CELLS_MAX ? most : FINE_CELLS_MAX;
}

const struct fine_cells *shown_trace_fine(struct shown_trace *shown, const struct action_source *source)
{
	const struct heap_table *table = source->table;
	struct heap_filter all;
	if (!shown->has_fine && is_worth_fine(shown, table)) {
		heap_filter_init_for(&all, table);
		all.is_cancelled = source->filter->is_cancelled;
		/* What is damaged is not looked at again. */
		shown->has_fine = fine_cells_find(&shown->fine, table, &all, FINE_INTERVALS, most_fine(table)) ||
				  !cancel_is_asked(all.is_cancelled);
		heap_filter_fini(&all);
	}
	return shown->fine.count ? &shown->fine : NULL;
}

int shown_trace_ask(const struct shown_question *question, const struct analysis_caller *caller, struct diag *diag)
{
	static const char *const words[ANALYSIS_PATTERN_COUNT] = {"requireFrames", "requireFreeFrames"};
	struct shown_trace *shown = question->shown;
	struct shown_making asking = {.question = question};
	struct filter_request asked;
	char moment[MOMENT_BYTES];
	char *filter = question->filter ? strdup(question->filter) : NULL;
	const struct analysis_request request = {
		.source_count = 1,
		.opened = &shown->opened,
		.asked = &asked,
		.cull = &shown->cull,
		.names = opened_trace_names(shown->opened, false),
		.without_windows = !question->with_window,
		/* Without sums over all time, what remains of blocks with others in them is not counted. */
		.by = question->with_window ? HEAP_BY_NONE : HEAP_BY_TIME,
		.pattern_words = words,
		.caller = *caller,
	};
	filter_request_init(&asked);
	int error = filter ? question_filter_take(&asked, filter, diag) : 0;
	if (!error && question->has_moment) {
		snprintf(moment, sizeof(moment), "%" PRId64 "ns", question->at_ns > 0 ? question->at_ns : 0);
		error = filter_word_take(&asked, &filter_words[FILTER_WORD_AT], 0, moment, diag);
	}
	if (!error) {
		error = analysis_open(&asking.analysis, &request, diag);
		error = error ? error : analysis_run(&asking.analysis, asking_make, asking_undo, &asking, diag);
		analysis_close(&asking.analysis);
	}
	filter_request_fini(&asked);
	free(filter);
	return error;
}

static int names_find(void *context, struct analysis *analysis, struct diag *diag)
{
	(void)diag;
	action_input_settle(&analysis->input);
	shown_trace_nodes(context, analysis->input.sources);
	shown_trace_fine(context, analysis->input.sources);
	return 0;
}

int shown_trace_prepare(struct shown_trace *shown, const struct analysis_caller *caller, struct diag *diag)
{
	const struct shown_question ask = {.shown = shown, .make = names_find, .context = shown};
	return shown_trace_ask(&ask, caller, diag);
}
