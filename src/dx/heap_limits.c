/* SPDX-License-Identifier: MIT */
/* What keeps Heap() from having every call of the recorded time. */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "dx/command.h"

static const char *option_of(const struct trace_dictionary *dictionary, const char *name)
{
	for (uint32_t i = 0; i < dictionary->option_count; i++)
		if (!strcmp(dictionary->options[i].name, name))
			return dictionary->options[i].value;
	return NULL;
}

static uint64_t gap_events(const struct trace_dictionary *dictionary)
{
	uint64_t count = dictionary->unwritten_events;
	for (uint32_t i = 0; i < dictionary->gap_count; i++)
		for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
			count += dictionary->gaps[i].count[kind];
	return count;
}

static bool has_forks(const struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		if (dictionary->processes[i].forked_from != TRACE_NONE)
			return true;
	return false;
}

const char *dx_limits_text(struct dx_query *query)
{
	const struct trace_dictionary *dictionary = query->session->dictionary;
	struct dx_arena *arena = query->arena;
	const char *text = "", *sample = option_of(dictionary, "sample"),
		   *durations = option_of(dictionary, "duration");
	if (!dictionary->is_complete)
		text = dx_format(arena, "%s; the file is cut at byte %" PRIu64, text, dictionary->cut_offset);
	if (dictionary->fold_count)
		text = dx_format(arena, "%s; aggregated: %s events are not here, totals come from reports", text,
				 text_count(dictionary->folded_count).data);
	if (sample && strcmp(sample, "0") != 0)
		text = dx_format(arena, "%s; sampled: only chosen blocks, one for each %s bytes", text, sample);
	if (dictionary->dropped_events)
		text = dx_format(arena, "%s; the first %s events are not kept", text,
				 text_count(dictionary->dropped_events).data);
	if (gap_events(dictionary))
		text = dx_format(arena, "%s; gaps: %s events are missing", text,
				 text_count(gap_events(dictionary)).data);
	if (dictionary->kind_count[EVENT_EARLIER])
		text = dx_format(arena, "%s; blocks from before the attach are in Live(), not here", text);
	if (has_forks(dictionary))
		text = dx_format(arena, "%s; blocks inherited by a fork are not here", text);
	if (durations && !strcmp(durations, "no"))
		text = dx_format(arena, "%s; without durations: TimeStart and TimeEnd are one position", text);
	return *text ? text + 2 : text;
}
