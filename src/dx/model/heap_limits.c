/* SPDX-License-Identifier: MIT */
#include "dx/model/heap_limits.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "dx/model/debugger.h"
#include "trace/gap_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

static const char *option_of(const struct trace_dictionary *dictionary, const char *name)
{
	for (uint32_t i = 0; i < dictionary->option_count; i++)
		if (!strcmp(dictionary->options[i].name, name))
			return dictionary->options[i].value;
	return NULL;
}

/* ---- numbers: a text, or NULL if the trace has no such limit ---- */

static const char *count_or_null(struct dx_query *query, uint64_t count)
{
	return count ? dx_format(query->arena, "%s", text_count(count).data) : NULL;
}

static const char *cut_at(struct dx_query *query)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	const char *reason = dictionary->cut_reason ? dictionary->cut_reason : "";
	return dictionary->is_complete ? NULL
				       : dx_format(query->arena, "%" PRIu64 "%s%s", dictionary->cut_offset,
						   *reason ? ": " : "", text_shown(reason));
}

static const char *ended_early(struct dx_query *query)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	for (uint32_t i = 0; i < dictionary->early_end_count; i++)
		if (dictionary->early_ends[i].process == TRACE_NONE)
			return text_shown(dictionary->early_ends[i].reason);
	return NULL;
}

static const char *folded_events(struct dx_query *query)
{
	return query->session->dictionary->fold_count ? count_or_null(query, query->session->dictionary->folded_count)
						      : NULL;
}

static const char *folded_blocks(struct dx_query *query)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	uint64_t count = 0;
	for (uint32_t i = 0; i < dictionary->sum_count; i++)
		count += dictionary->sums[i].flags & TRACE_SUM_EARLIER ? 0 : dictionary->sums[i].recorded;
	return count_or_null(query, count);
}

/* At positions behind this one, everything is there. */
static const char *folded_until(struct dx_query *query)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	int64_t until_ns = INT64_MIN;
	for (uint32_t i = 0; i < dictionary->fold_count; i++)
		if (dictionary->folds[i].until_ns > until_ns)
			until_ns = dictionary->folds[i].until_ns;
	return dictionary->fold_count ? dx_format(query->arena, "%" PRIX64 ":0", (uint64_t)until_ns) : NULL;
}

static const char *sample_bytes(struct dx_query *query)
{
	const char *sample = option_of(query->session->dictionary, "sample");
	return sample && strcmp(sample, "0") != 0 ? text_shown(sample) : NULL;
}

static const char *dropped_events(struct dx_query *query)
{
	return count_or_null(query, query->session->dictionary->dropped_events);
}

static const char *gap_events(struct dx_query *query)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	uint64_t count = dictionary->unwritten_events;
	for (uint32_t i = 0; i < dictionary->gap_count; i++)
		for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
			count += dictionary->gaps[i].count[kind];
	return count_or_null(query, count);
}

static const char *earlier_blocks(struct dx_query *query)
{
	return count_or_null(query, query->session->dictionary->kind_count[EVENT_EARLIER]);
}

static const char *earlier_missing(struct dx_query *query)
{
	const char *missing = option_of(query->session->dictionary, TRACE_OPTION_EARLIER_MISSING);
	return missing ? text_shown(missing) : NULL;
}

static const char *forks(struct dx_query *query)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	uint64_t count = 0;
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		count += dictionary->processes[i].forked_from != TRACE_NONE;
	return count_or_null(query, count);
}

static const char *no_position(struct dx_query *query)
{
	return query->session->position.kind == DX_POSITION ? NULL : "";
}

static const char *without_durations(struct dx_query *query)
{
	const char *durations = option_of(query->session->dictionary, "duration");
	return durations && !strcmp(durations, "no") ? "" : NULL;
}

/* ---- texts ---- */

/* Each limit in the words of calls, of blocks over the whole time, of blocks at a position, and of sums at one. NULL:
   it is none of these. %s: the number. */
static const struct {
	const char *(*find)(struct dx_query *query);
	const char *words[DX_USE_COUNT];
} limits[] = {
	{no_position, {NULL, NULL, NULL, NULL, "no position is set: what each process had at its end"}},
	{cut_at,
	 {"the trace is cut at byte %s", "the trace is cut at byte %s", "the trace is cut at byte %s",
	  "the trace is cut at byte %s"}},
	{ended_early,
	 {"recording ended early: %s", "recording ended early: %s", "recording ended early: %s",
	  "recording ended early: %s"}},
	{folded_events, {"aggregated: %s events are not here, totals come from reports", NULL, NULL, NULL}},
	{folded_blocks, {NULL, "aggregated: %s blocks that ended are not here, totals come from reports", NULL, NULL}},
	{folded_until,
	 {NULL, NULL, "aggregated: before %s, blocks that had ended by then are not here",
	  "aggregated: before %s, blocks that had ended by then are not in the sums"}},
	{sample_bytes,
	 {"sampled: only chosen blocks, one for each %s bytes", "sampled: only chosen blocks, one for each %s bytes",
	  "sampled: only chosen blocks, one for each %s bytes",
	  "sampled: sums of chosen blocks, one for each %s bytes"}},
	{dropped_events,
	 {"the first %s events are not kept", "the first %s events are not kept, nor the blocks that began there",
	  "the first %s events are not kept, nor the blocks that began there",
	  "the first %s events are not kept, nor the blocks that began there"}},
	{gap_events,
	 {"gaps: %s events are missing", "gaps: %s events are missing, so some blocks and ends are unknown",
	  "gaps: %s events are missing, so some blocks and ends are unknown",
	  "gaps: %s events are missing, so some blocks and ends are unknown"}},
	{earlier_blocks,
	 {"blocks from before the attach are in Live(), not here",
	  "blocks from before the attach are in Live(), not here", NULL, NULL}},
	{earlier_missing, {NULL, NULL, "%s", "%s"}},
	{forks,
	 {"blocks inherited by a fork are not here", "blocks inherited by a fork are in Live(), not here", NULL,
	  "blocks inherited by a fork are in Live(), not in the sums"}},
	{without_durations, {"without durations: TimeStart and TimeEnd are one position", NULL, NULL, NULL}},
};

static bool is_said(const char *words, const char *earlier)
{
	return earlier && words && !strcmp(words, earlier);
}

const char *dx_limits_text(struct dx_query *query)
{
	struct dx_arena *arena = query->arena;
	const char *text = "";
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const char *number = NULL, *said = NULL;
		for (unsigned use = 0; use < DX_USE_COUNT; use++) {
			const char *words = limits[i].words[use];
			bool is_wanted = words && query->session->uses & 1u << use && !is_said(words, said);
			if (is_wanted && !number && !(number = limits[i].find(query)))
				break;
			if (!is_wanted)
				continue;
			said = words;
			const char *place = strstr(words, "%s");
			text = dx_format(arena, "%s; %.*s%s%s", text, place ? (int)(place - words) : (int)strlen(words),
					 words, place ? number : "", place ? place + 2 : "");
		}
	}
	return *text ? text + 2 : text;
}

/* ---- what is only asked for when elements are shown ---- */

struct name_use {
	const char *name;
	uint8_t use; /* enum dx_use */
};

static unsigned use_of(const struct name_use *rows, const char *name)
{
	while (rows->name && strcasecmp(rows->name, name) != 0)
		rows++;
	return rows->name ? 1u << rows->use : 0;
}

unsigned dx_limits_of_method(const char *name, unsigned argument_count)
{
	bool has_no_position = !argument_count && !strcasecmp(name, "Live");
	static const struct name_use rows[] = {
		{"Heap", DX_USE_CALLS},
		{"HeapAnalyze", DX_USE_CALLS},
		{"GetHeapAddress", DX_USE_CALLS},
		{"SlowCalls", DX_USE_CALLS},
		{"Calls", DX_USE_CALLS},
		{"Allocations", DX_USE_BLOCKS},
		{"Leaks", DX_USE_BLOCKS},
		{"FreedByOtherThread", DX_USE_BLOCKS},
		{"ReallocChurn", DX_USE_BLOCKS},
		{"MostFrequent", DX_USE_BLOCKS},
		{"Largest", DX_USE_BLOCKS},
		{"Longest", DX_USE_BLOCKS},
		{"Live", DX_USE_LIVE},
		{"Growth", DX_USE_LIVE_SUMS},
		{"Peak", DX_USE_LIVE_SUMS},
		{0},
	};
	return use_of(rows, name) | (has_no_position ? 1u << DX_USE_NO_POSITION : 0);
}

unsigned dx_limits_of_process_member(const char *name)
{
	static const struct name_use rows[] = {{"Heap", DX_USE_LIVE_SUMS}, {"Heaps", DX_USE_BLOCKS}, {0}};
	return use_of(rows, name) | (strcasecmp(name, "Heap") ? 0 : 1u << DX_USE_NO_POSITION);
}
