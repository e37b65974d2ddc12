/* SPDX-License-Identifier: MIT */
#include "action/summary/survey.h"

#include <stdlib.h>

#include "action/summary/kept_survey.h"
#include "action/summary/survey_choice.h"
#include "action/summary/survey_growths.h"
#include "action/summary/survey_making.h"
#include "action/summary/survey_pass.h"
#include "base/memory.h"
#include "query/folded.h"
#include "trace/trace.h"

static int handover_compare(const void *a, const void *b)
{
	const struct survey_handover *left = a, *right = b;
	if (left->count != right->count)
		return left->count > right->count ? -1 : 1;
	if (left->from != right->from)
		return left->from < right->from ? -1 : 1;
	return left->to < right->to ? -1 : left->to > right->to;
}

static void handovers_sum(struct survey *survey, const struct survey_part *part)
{
	struct map pairs = {0};
	size_t capacity = 0;
	for (size_t i = 0; i < part->handed_count; i++) {
		const struct survey_handed *own = &part->handed[i];
		bool added;
		uint32_t *place = map_add(&pairs, map_pair(own->from, own->to), &added);
		if (added) {
			memory_grow(survey->handovers, survey->handover_count, capacity);
			*place = (uint32_t)survey->handover_count;
			survey->handovers[survey->handover_count++] =
				(struct survey_handover){.from = own->from, .to = own->to};
		}
		struct survey_handover *sum = &survey->handovers[*place];
		sum->count += own->count;
		sum->bytes += own->bytes;
		if (own->count > sum->site_count || (own->count == sum->site_count && own->site < sum->site)) {
			sum->site = own->site;
			sum->free_site = own->free_site;
			sum->thread = own->thread;
			sum->site_count = own->count;
		}
	}
	map_fini(&pairs);
	if (survey->handover_count)
		qsort(survey->handovers, survey->handover_count, sizeof(*survey->handovers), handover_compare);
}

static void peaks_guess(struct survey *survey, const struct survey_part *part)
{
	uint32_t count = part->making->source->table->dictionary->process_count;
	survey->process_peaks = memory_zeroed((size_t)count + 1, sizeof(*survey->process_peaks));
	for (uint32_t i = 0; i < count && part->levels; i++) {
		uint64_t live = 0, most = 0;
		for (uint32_t k = 0; k < SURVEY_LEVEL_PARTS; k++) {
			const struct survey_level *level = &part->levels[(size_t)i * SURVEY_LEVEL_PARTS + k];
			live += level->began_bytes - level->ended_bytes;
			most = live > most ? live : most;
			/* All of a short process may be in one part. */
			most = level->began_bytes / 2 > most ? level->began_bytes / 2 : most;
		}
		survey->process_peaks[i] = most;
	}
}

static void survey_settle(struct survey *survey, struct survey_part *part)
{
	const struct heap_table *table = part->making->source->table;
	survey->sites = part->sites;
	part->sites = NULL;
	for (uint32_t i = 0; i < table->site_count; i++) {
		survey->short_count += survey->sites[i].short_count;
		survey->short_bytes += survey->sites[i].short_bytes;
		survey->crossed_count += survey->sites[i].crossed_count;
		survey->crossed_bytes += survey->sites[i].crossed_bytes;
	}
	survey->at_peak = part->at_peak;
	survey->resident = part->resident;
	survey->live_bytes = part->live_bytes;
	heap_extents_sum(&part->extents, &survey->page_bytes, 1);
	if (survey->plan.resident)
		resident_tell(survey->plan.resident, table->dictionary, &part->extents);
	handovers_sum(survey, part);
	survey_growths_judge(survey, part);
	peaks_guess(survey, part);
}

/* The time of which each block is known. */
static struct heap_range known_range(const struct action_source *source)
{
	int64_t until_ns = heap_folded_until_ns(source->table);
	struct heap_range range = source->window->range;
	range.from_ns = until_ns > range.from_ns ? until_ns : range.from_ns;
	range.from_ns = range.from_ns < range.to_ns ? range.from_ns : range.to_ns;
	return range;
}

/* Make the chart of blocks that lie in no other: with what remains of these, those inside have the same bytes. */
static void chart_whole(const struct survey_making *making)
{
	struct heap_filter filter;
	heap_filter_init_for(&filter, making->source->table);
	filter.is_cancelled = making->source->filter->is_cancelled;
	heap_peaks(making->survey->chart, making->survey->plan.chart_parts, making->source->table, &filter,
		   making->survey->chart_range);
	heap_filter_fini(&filter);
}

/* Add up all allocations in *sum. */
static void survey_scan(struct survey_making *making, struct survey_part *sum)
{
	unsigned width = heap_scan_width(making->source->table);
	struct survey_part *parts = memory_zeroed(width, sizeof(*parts));
	making->shared = 0;
	for (unsigned i = 0; i < width; i++)
		survey_part_begin(&parts[i], making, i);
	heap_scan_threads(survey_part_run, parts, sizeof(*parts), width);
	for (unsigned i = 1; i < width; i++) {
		survey_part_merge(&parts[0], &parts[i]);
		survey_part_fini(&parts[i]);
	}
	*sum = parts[0];
	free(parts);
}

/* Make the chart, and the sums. */
static void survey_pass(struct survey_making *making, struct survey_part *sum)
{
	struct survey *survey = making->survey;
	if (survey->chart && making->source->filter->has_overhead)
		chart_whole(making);
	else if (survey->chart)
		making->search = heap_peak_search_new(making->source->table, making->source->filter,
						      survey->chart_range, survey->plan.chart_parts);
	survey_scan(making, sum);
	if (making->search)
		heap_peak_search_finish(making->search, survey->chart);
	making->search = NULL;
	if (survey_endings_leave_out(making, sum)) {
		survey_part_fini(sum);
		survey_scan(making, sum);
	}
}

void survey_make(struct survey *survey, struct action_input *input, struct action_source *source,
		 const struct survey_plan *plan, struct kept_survey *kept)
{
	struct survey_making making = {.survey = survey, .input = input, .source = source};
	struct survey_part part = {.making = &making};
	*survey = (struct survey){.plan = *plan};
	survey->chart_range = known_range(source);
	making.has_handovers = source->table->dictionary->thread_count > 1;
	making.has_levels = source->table->dictionary->process_count > 1;
	survey_roles_find(&making);
	survey_slots_find(&making);
	if (plan->chart_parts)
		survey->chart = memory_zeroed(plan->chart_parts, sizeof(*survey->chart));
	if (!kept->answer.is_known) {
		survey_candidates_find(&making);
		survey_pass(&making, &part);
	}
	kept_survey_pass(kept, &part, survey->chart, plan->chart_parts);
	survey_settle(survey, &part);
	survey_part_fini(&part);
	free(making.slot_of);
	free(making.candidate);
	free(making.role_of);
}

const char *survey_role(const struct survey *survey, uint32_t role)
{
	return role < SURVEY_ROLES_MAX ? survey->roles.items[role].data : "others";
}

void survey_fini(struct survey *survey)
{
	free(survey->sites);
	free(survey->chart);
	free(survey->handovers);
	free(survey->growths);
	free(survey->process_peaks);
	intern_fini(&survey->roles);
	*survey = (struct survey){.sites = NULL};
}
