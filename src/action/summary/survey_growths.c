/* SPDX-License-Identifier: MIT */
#include "action/summary/survey_growths.h"

#include <stdlib.h>

#include "action/summary/survey_making.h"
#include "base/memory.h"
#include "trace/gap_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* Return how many frees of the process were lost in the time. */
static uint64_t lost_frees(const struct trace_dictionary *dictionary, const struct survey_slot *slot)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < dictionary->gap_count; i++) {
		const struct trace_gap *gap = &dictionary->gaps[i];
		bool is_own = gap->process == slot->process || gap->process == TRACE_NONE;
		if (is_own && gap->to_ns >= slot->clock.from_ns && gap->from_ns <= slot->clock.to_ns)
			count += gap->count[EVENT_FREE] + gap->count[EVENT_REALLOC];
	}
	return count;
}

static int growth_compare(const void *a, const void *b)
{
	const struct survey_growth *left = a, *right = b;
	bool left_grows = left->growth.verdict == GROWTH_GROWS, right_grows = right->growth.verdict == GROWTH_GROWS;
	if (left_grows != right_grows)
		return left_grows ? -1 : 1;
	double of_left = left_grows ? left->growth.bytes.low : (double)left->growth.grown_bytes,
	       of_right = left_grows ? right->growth.bytes.low : (double)right->growth.grown_bytes;
	if (of_left < of_right || of_left > of_right)
		return of_left > of_right ? -1 : 1;
	if (left->node != right->node)
		return left->node < right->node ? -1 : 1;
	return left->process < right->process ? -1 : left->process > right->process;
}

void survey_growths_judge(struct survey *survey, const struct survey_part *part)
{
	const struct survey_making *making = part->making;
	const struct trace_dictionary *dictionary = making->source->table->dictionary;
	survey->growths = memory_zeroed((size_t)part->series_count + 1, sizeof(*survey->growths));
	for (uint32_t i = 0; i < part->series_count; i++) {
		unsigned number = (unsigned)(part->series_keys[i] >> 32);
		const struct survey_slot *slot = &making->slots[number];
		struct growth growth = growth_judge(&part->series[i], &slot->clock, &part->replaced[number],
						    lost_frees(dictionary, slot));
		if (growth.grown_count <= 0 && growth.verdict != GROWTH_GROWS)
			continue;
		survey->growths[survey->growth_count++] =
			(struct survey_growth){slot->process, (uint32_t)part->series_keys[i], slot->clock, growth};
		survey->grows_count += growth.verdict == GROWTH_GROWS;
	}
	qsort(survey->growths, survey->growth_count, sizeof(*survey->growths), growth_compare);
}
