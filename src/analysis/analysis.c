/* SPDX-License-Identifier: MIT */
#include "analysis/analysis.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/memory.h"
#include "match/moment.h"
#include "query/folded.h"
#include "query/nearest.h"
#include "query/outside.h"
#include "trace/reader.h"
#include "trace/trace.h"

enum { REASON_BYTES = 400, NOTE_BYTES = 1024 };

/** What belongs to a source alone. */
struct analysis_own {
	struct stat status;
	unsigned first;           /* the first source of the trace */
	struct heap_names *names; /* of a first source, unless they are the caller's */
	struct heap_range range;
	struct heap_filter filter;
	struct heap_window window;
};

/* ---- opening ---- */

static bool is_same_file(const struct stat *one, const struct stat *other)
{
	return one->st_ino && one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static int source_open(struct analysis *analysis, unsigned source, struct diag *diag)
{
	const struct analysis_request *request = analysis->request;
	struct analysis_own *own = &analysis->own[source];
	struct opened_trace *const *known = request->opened ? request->opened : analysis->opened;
	if (!request->opened && stat(request->words[source].path, &own->status))
		own->status = (struct stat){.st_ino = 0};
	while (own->first < source &&
	       (request->opened ? known[own->first] != known[source]
				: !is_same_file(&analysis->own[own->first].status, &own->status)))
		own->first++;
	if (own->first == source && !request->opened)
		return opened_trace_open(&analysis->opened[source], request->words[source].path, &request->options,
					 &request->caller, diag);
	analysis->opened[source] = known[request->opened ? source : own->first];
	opened_trace_hold(analysis->opened[source]);
	return 0;
}

/* One tree of names for all: that of the first source. */
static void source_name(struct analysis *analysis, unsigned source)
{
	const struct analysis_request *request = analysis->request;
	struct analysis_own *own = &analysis->own[source];
	struct opened_trace *opened = analysis->opened[source];
	struct heap_names *names = request->names ? request->names : analysis->own[own->first].names;
	if (!names && source)
		names = own->names = heap_names_new_beside(action_names(&analysis->input), opened->trace,
							   opened_trace_symbols(opened));
	else if (!names)
		names = own->names = heap_names_new(opened->trace, opened_trace_symbols(opened), request->with_lines);
	analysis->sources[source] = (struct action_source){
		.path = request->words ? request->words[source].path : opened->path,
		.session = source ? NULL : request->session,
		.trace = opened->trace,
		.names = names,
	};
}

int analysis_open(struct analysis *analysis, const struct analysis_request *request, struct diag *diag)
{
	unsigned count = request->source_count;
	struct heap_table *table;
	assert(count > 0 && (request->words || request->opened));
	*analysis = (struct analysis){.request = request,
				      .opened = memory_zeroed(count, sizeof(*analysis->opened)),
				      .sources = memory_zeroed(count, sizeof(*analysis->sources)),
				      .source_count = count,
				      .own = memory_zeroed(count, sizeof(*analysis->own))};
	analysis->input = (struct action_input){.sources = analysis->sources,
						.asks_packages = request->asks_packages,
						.cull = request->cull,
						.callers_of = request->callers_of,
						.layout = request->layout};
	for (unsigned i = 0; i < count; i++) {
		int error = source_open(analysis, i, diag);
		error = error ? error : opened_trace_table(analysis->opened[i], &table, &request->caller, diag);
		if (error)
			return error;
	}
	for (unsigned i = 0; i < count; i++)
		source_name(analysis, i);
	return analysis_check_cancelled(&request->caller, diag);
}

/* ---- preparing ---- */

int analysis_range(struct filter_request *asked, const struct trace *trace, bool is_typed, struct heap_range *range,
		   struct diag *diag)
{
	int64_t start_ns = trace_dictionary(trace)->start_realtime_ns;
	enum filter_word_id word = FILTER_WORD_AT;
	int error = filter_word_resolve_moment(asked, start_ns, range, diag);
	if (!error) {
		word = FILTER_WORD_RANGE;
		error = filter_word_resolve(asked, &filter_words[word], start_ns, range, diag);
	}
	if (error && is_typed)
		diag_prefix(diag, "-%s", filter_words[word].name);
	return error;
}

void analysis_tell_outside(const struct heap_filter *filter, struct heap_range range, const struct trace *trace,
			   const struct analysis_caller *caller)
{
	struct heap_outside found[HEAP_OUTSIDE_MAX];
	unsigned count = heap_outside_find(filter, range, trace_dictionary(trace)->duration_ns, found);
	for (unsigned i = 0; i < count; i++)
		analysis_note(caller, ANALYSIS_QUESTION, "%s", found[i].text);
}

/* Reasons name what is wrong: the option; or the source, where there are several. */
static int source_fail(const struct analysis *analysis, unsigned source, const char *option, int error,
		       struct diag *diag)
{
	const struct analysis_request *request = analysis->request;
	if (!error || !request->is_typed)
		return error;
	if (request->source_count > 1)
		diag_prefix(diag, "%s", analysis->sources[source].path);
	else if (option)
		diag_prefix(diag, "-%s", option);
	return error;
}

static int source_range(struct analysis *analysis, unsigned source, struct diag *diag)
{
	const struct analysis_request *request = analysis->request;
	const struct trace *trace = analysis->sources[source].trace;
	const int64_t start_ns = trace_dictionary(trace)->start_realtime_ns;
	struct heap_range *range = &analysis->own[source].range,
			  whole = {0, analysis->sources[source].table->duration_ns};
	const struct filter_word *window = &filter_words[FILTER_WORD_WINDOW];
	*range = request->ranges ? request->ranges[source] : whole;
	int error = request->asked ? analysis_range(request->asked, trace, request->is_typed, range, diag) : 0;
	if (error)
		return error;
	range->from_ns = range->from_ns == INT64_MIN ? whole.from_ns : range->from_ns;
	range->to_ns = range->to_ns == INT64_MAX ? whole.to_ns : range->to_ns;
	struct heap_moment moment = {.is_asked = false};
	if (request->words)
		error = window_word_resolve(&request->words[source], start_ns, range, &moment, diag);
	if (request->asked && !request->asked->moment)
		request->asked->filter.moment = moment;
	if (!error && request->asked)
		error = filter_word_resolve(request->asked, window, start_ns, &request->asked->filter.window, diag);
	return source_fail(analysis, source, window->name, error, diag);
}

static int source_filter(struct analysis *analysis, unsigned source, struct diag *diag)
{
	const struct analysis_request *request = analysis->request;
	struct action_source *to = &analysis->sources[source];
	struct heap_filter *filter = &analysis->own[source].filter;
	bool is_part = request->words && window_word_is_part(&request->words[source]);
	to->filter = filter;
	if (!request->asked) {
		heap_filter_init_for(filter, to->table);
		filter->is_cancelled = request->caller.is_cancelled;
		filter->without_peak = request->without_peak;
		if (request->forgets_ended)
			heap_filter_forget_ended(filter, to->table);
		return 0;
	}
	request->asked->filter.is_cancelled = request->caller.is_cancelled;
	request->asked->filter.is_partial = request->asked->range.words[0] || request->asked->moment || is_part ||
					    (request->by != HEAP_BY_NONE && request->by != HEAP_BY_PROCESS);
	int error = heap_filter_prepare_shared(filter, &request->asked->filter, to->table, to->names, diag);
	if (!error)
		heap_moment_find(&filter->moment, to->table);
	return source_fail(analysis, source, NULL, error, diag);
}

/* Patterns are settled by the names of all sources, so that they mean the same for all. */
static void sources_name(struct analysis *analysis)
{
	const struct filter_request *asked = analysis->request->asked;
	for (unsigned i = 0; i < analysis->source_count && asked; i++)
		if (asked->filter.required.count || asked->filter.required_of_free.count)
			heap_names_name_sites(analysis->sources[i].names, analysis->sources[i].table);
}

int analysis_check_patterns(const struct heap_patterns *patterns, const char *word, struct heap_names *names,
			    const struct analysis_caller *caller, struct diag *diag)
{
	const struct heap_pattern *first = NULL;
	char text[NOTE_BYTES], reason[REASON_BYTES];
	size_t missing = 0;
	for (size_t i = 0; i < patterns->count; i++) {
		const struct heap_pattern *pattern = &patterns->items[i];
		if (pattern->hits)
			continue;
		first = missing++ ? first : pattern;
		heap_pattern_missing(pattern, names, text, sizeof(text));
		analysis_note(caller, ANALYSIS_QUESTION, "%s: %s", word, text);
	}
	if (!missing || missing < patterns->count)
		return 0;
	heap_pattern_missing(first, names, reason, sizeof(reason));
	return diag_fail(diag, ENOMSG, "%s: %s", word, reason);
}

/* Check what the filter requires as analysis_check_patterns() does. words: by enum analysis_pattern. */
static int check_required(const struct heap_filter *filter, const char *const *words, struct heap_names *names,
			  const struct analysis_caller *caller, struct diag *diag)
{
	int error = analysis_check_patterns(&filter->required, words[ANALYSIS_REQUIRED], names, caller, diag);
	int other = analysis_check_patterns(&filter->required_of_free, words[ANALYSIS_REQUIRED_OF_FREE], names, caller,
					    diag);
	return error ? error : other;
}

/* Whether the trace has the answer. */
static int source_check(const struct analysis *analysis, unsigned source, struct diag *diag)
{
	const struct analysis_request *request = analysis->request;
	const struct action_source *of = &analysis->sources[source];
	struct heap_range range = analysis->own[source].range;
	if (request->tells_outside)
		analysis_tell_outside(of->filter, range, of->trace, &request->caller);
	int error = request->part_count ? report_check(request->parts, request->part_count, of->table, of->filter,
						       range, request->by, diag)
					: heap_folded_check(of->table, of->filter, range, request->by, diag);
	if (error && request->is_typed)
		diag_prefix(diag, "%s", of->path);
	return error;
}

/* Free what analysis_prepare() made. */
static void sources_end(struct analysis *analysis)
{
	analysis->input.source_count = analysis->request->source_count;
	action_input_fini(&analysis->input);
	for (unsigned i = 0; i < analysis->request->source_count; i++) {
		heap_window_fini(&analysis->own[i].window);
		(analysis->request->asked ? heap_filter_fini_shared : heap_filter_fini)(&analysis->own[i].filter);
		analysis->own[i].filter = (struct heap_filter){.site = NULL};
	}
}

static int tables_take(struct analysis *analysis, struct diag *diag)
{
	struct heap_table *table;
	for (unsigned i = 0; i < analysis->request->source_count; i++) {
		int error = opened_trace_table(analysis->opened[i], &table, &analysis->request->caller, diag);
		if (error)
			return error;
		analysis->sources[i].table = table;
	}
	return 0;
}

int analysis_prepare(struct analysis *analysis, struct diag *diag)
{
	const struct analysis_request *request = analysis->request;
	assert(analysis->source_count > 0 && analysis->source_count <= request->source_count);
	sources_end(analysis);
	int error = tables_take(analysis, diag);
	for (unsigned i = 0; i < request->source_count && !error; i++) {
		heap_names_cancel_by(analysis->sources[i].names, request->caller.is_cancelled);
		error = opened_trace_resolve(analysis->opened[i], &request->caller, diag);
	}
	if (error)
		return error;
	analysis->input.source_count = analysis->source_count;
	sources_name(analysis);
	for (unsigned i = 0; i < analysis->source_count && !error; i++) {
		error = source_range(analysis, i, diag);
		error = error ? error : source_filter(analysis, i, diag);
	}
	error = error ? error : analysis_check_cancelled(&request->caller, diag);
	if (!error && request->asked)
		error = check_required(&request->asked->filter, request->pattern_words, action_names(&analysis->input),
				       &request->caller, diag);
	for (unsigned i = 0; i < analysis->source_count && !error && !request->without_windows; i++)
		error = source_check(analysis, i, diag);
	for (unsigned i = 0; i < analysis->source_count && !error && !request->without_windows; i++) {
		struct analysis_own *own = &analysis->own[i];
		heap_window_make(&own->window, analysis->sources[i].table, &own->filter, own->range, request->by);
		analysis->sources[i].window = &own->window;
	}
	return error ? error : analysis_check_cancelled(&request->caller, diag);
}

/* ---- answering ---- */

bool analysis_is_good(const struct analysis *analysis)
{
	bool is_good = true;
	for (unsigned i = 0; i < analysis->request->source_count; i++)
		is_good &= !analysis->sources[i].table || opened_table_is_good(analysis->sources[i].table);
	return is_good;
}

static int tables_mend(struct analysis *analysis, struct diag *diag)
{
	int error = 0;
	for (unsigned i = 0; i < analysis->request->source_count && !error; i++)
		if (!opened_table_is_good(analysis->sources[i].table))
			error = opened_trace_mend(analysis->opened[i], analysis->sources[i].table,
						  &analysis->request->caller, diag);
	return error;
}

static bool source_is_valid(const struct analysis *analysis, unsigned number)
{
	const struct action_source *source = &analysis->sources[number];
	const struct analysis_own *own = &analysis->own[number];
	const struct opened_trace *opened = analysis->opened[number];
	if (!opened || !__atomic_load_n(&opened->references, __ATOMIC_RELAXED) || own->first > number ||
	    analysis->opened[own->first] != opened)
		return false;
	bool is_prepared = source->table && source->filter == &own->filter && own->range.from_ns != INT64_MIN &&
			   own->range.to_ns != INT64_MAX &&
			   (analysis->request->without_windows || source->window == &own->window);
	return source->trace == opened->trace && source->names && (number >= analysis->source_count || is_prepared);
}

bool analysis_is_valid(const struct analysis *analysis)
{
	bool is_valid = analysis->request && analysis->source_count > 0 &&
			analysis->source_count <= analysis->request->source_count &&
			analysis->input.sources == analysis->sources &&
			analysis->input.source_count == analysis->source_count;
	for (unsigned i = 0; is_valid && i < analysis->request->source_count; i++)
		is_valid = source_is_valid(analysis, i);
	return is_valid;
}

int analysis_run(struct analysis *analysis, int (*make)(void *context, struct diag *diag), void (*undo)(void *context),
		 void *context, struct diag *diag)
{
	for (;;) {
		int error = analysis_prepare(analysis, diag);
		bool is_made = !error;
		CHECK_VALID(error || analysis_is_valid(analysis));
		error = is_made ? make(context, diag) : error;
		error = error ? error : analysis_check_cancelled(&analysis->request->caller, diag);
		bool is_good = analysis_is_good(analysis);
		if (is_made && (error || !is_good))
			undo(context);
		if (is_good)
			return error;
		*diag = (struct diag){""};
		if ((error = tables_mend(analysis, diag)))
			return error;
	}
}

void analysis_close(struct analysis *analysis)
{
	if (!analysis->request)
		return;
	sources_end(analysis);
	for (unsigned i = 0; i < analysis->request->source_count; i++)
		heap_names_free(analysis->own[i].names);
	for (unsigned i = 0; i < analysis->request->source_count; i++)
		opened_trace_release(analysis->opened[i]);
	free(analysis->opened);
	free(analysis->sources);
	free(analysis->own);
	*analysis = (struct analysis){.request = NULL};
}
