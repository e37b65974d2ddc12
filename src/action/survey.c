/* SPDX-License-Identifier: MIT */
#include "action/survey.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "action/losses.h"
#include "base/memory.h"
#include "query/extents.h"
#include "query/folded.h"
#include "query/peak.h"
#include "table/weight.h"

enum {
	LEVEL_PARTS = 32,      /* of the life of a process */
	GROWING_PROCESSES = 8, /* so many are looked at for growth */
	GROWING_STACKS = 8192, /* those with the most outstanding blocks, then with the most blocks */
	GROWING_BLOCKS_LEAST = 8,
	ENDING = 32, /* the last part of a life that ended does not count */
	ROLE_BYTES = 64,
	ROLES_MAX = UINT16_MAX
};
static const uint8_t no_slot = UINT8_MAX;

/* A process that may grow. */
struct slot {
	uint32_t process;
	struct growth_clock clock;
	int64_t part_ns;
};

/* What is shared by all threads of the pass. */
struct survey_making {
	struct survey *survey;
	struct action_input *input;
	struct action_source *source;
	struct heap_peak_search *search;
	struct slot slots[GROWING_PROCESSES];
	unsigned slot_count;
	uint8_t *slot_of;    /* by process */
	uint32_t *candidate; /* by site: its node, if that may grow, or HEAP_NONE */
	uint32_t *role_of;   /* by thread */
	bool has_levels;     /* of processes */
	uint32_t shared;
};

/* What of a role's blocks at a site another role freed. */
struct handed {
	uint32_t from, to, site, free_site, thread;
	uint64_t count, bytes;
};

/* What began and ended in a part of the life of a process. */
struct survey_level {
	uint64_t began_bytes, ended_bytes;
};

/* One thread's part of the pass. */
struct survey_part {
	struct survey_making *making;
	unsigned number;
	struct survey_site *sites;
	struct survey_rounding at_peak, resident;
	uint64_t live_bytes;
	struct heap_extents extents;
	struct map series_of; /* by slot and node: its place in series */
	struct growth_series *series;
	uint64_t *series_keys;
	uint32_t series_count;
	size_t series_capacity;
	struct growth_series replaced[GROWING_PROCESSES];
	struct map handed_of; /* by roles and site: its place in handed */
	struct handed *handed;
	size_t handed_count, handed_capacity;
	struct survey_level *levels; /* LEVEL_PARTS for each process */
};

/* ---- what is looked at ---- */

/* The name of the thread, or of its program, with one '#' for each number. */
static uint32_t role_add(struct survey *survey, const struct trace_dictionary *dictionary, uint32_t thread)
{
	const struct trace_process *process = &dictionary->processes[dictionary->threads[thread].process];
	const char *name = dictionary->threads[thread].name;
	char role[ROLE_BYTES];
	size_t length = 0;
	name = name && *name ? name : process->image ? text_file_name(process->image) : "";
	for (; *name && length < sizeof(role) - 1; name++)
		if (!isdigit((unsigned char)*name))
			role[length++] = *name;
		else if (!length || role[length - 1] != '#')
			role[length++] = '#';
	role[length] = 0;
	uint32_t number = intern_text(&survey->roles, role);
	return number < ROLES_MAX ? number : ROLES_MAX;
}

static void roles_find(struct survey_making *making)
{
	const struct trace_dictionary *dictionary = making->source->table->dictionary;
	making->role_of = memory_resize(NULL, (size_t)dictionary->thread_count + 1, sizeof(*making->role_of));
	for (uint32_t i = 0; i < dictionary->thread_count; i++)
		making->role_of[i] = role_add(making->survey, dictionary, i);
}

/* A process that was attached to, or whose past is not kept, has begun before. */
static bool has_begun_here(const struct trace_dictionary *dictionary, const struct trace_process *process,
			   int64_t from_ns)
{
	bool is_attached = losses_has_option(dictionary, "attached") && process->parent == TRACE_NONE;
	return !is_attached && !dictionary->dropped_events && process->start_ns >= from_ns;
}

static struct growth_clock clock_of(const struct action_source *source, uint32_t number, int64_t from_ns)
{
	const struct trace_dictionary *dictionary = source->table->dictionary;
	const struct trace_process *process = &dictionary->processes[number];
	int64_t to_ns =
		process->end == TRACE_END_OPEN ? source->table->duration_ns : source->table->processes[number].end_ns;
	bool has_begin = has_begun_here(dictionary, process, from_ns);
	/* At its end a program may free what it has kept for all of its life. */
	if ((process->end == TRACE_END_EXIT || process->end == TRACE_END_UNKNOWN) && to_ns > process->start_ns)
		to_ns -= (to_ns - process->start_ns) / ENDING;
	return (struct growth_clock){process->start_ns > from_ns ? process->start_ns : from_ns,
				     to_ns < source->window->range.to_ns ? to_ns : source->window->range.to_ns,
				     has_begin};
}

/* Keep the processes that held most at their end. */
static void slot_add(struct survey_making *making, const struct slot *slot)
{
	const struct heap_process *processes = making->source->table->processes;
	unsigned at = making->slot_count;
	while (at > 0 && processes[making->slots[at - 1].process].live_bytes < processes[slot->process].live_bytes)
		at--;
	if (at == GROWING_PROCESSES)
		return;
	making->slot_count += making->slot_count < GROWING_PROCESSES;
	memmove(&making->slots[at + 1], &making->slots[at], (making->slot_count - 1 - at) * sizeof(*slot));
	making->slots[at] = *slot;
}

static void growth_explain(struct survey_making *making, int64_t longest_ns)
{
	struct text *why = &making->survey->growth_unknown;
	if (!making->slot_count)
		snprintf(why->data, sizeof(why->data), "10 s are needed, not %.15s", text_duration(longest_ns).data);
}

/* Choose the processes whose growth may be known. */
static void slots_find(struct survey_making *making)
{
	const struct heap_table *table = making->source->table;
	const struct trace_dictionary *dictionary = table->dictionary;
	int64_t from_ns = making->survey->chart_range.from_ns, longest_ns = 0;
	from_ns = dictionary->dropped_events && dictionary->dropped_until_ns > from_ns ? dictionary->dropped_until_ns
										       : from_ns;
	making->slot_of = memory_resize(NULL, (size_t)dictionary->process_count + 1, 1);
	memset(making->slot_of, no_slot, dictionary->process_count);
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		struct slot slot = {i, clock_of(making->source, i, from_ns), 0};
		int64_t length_ns = slot.clock.to_ns - slot.clock.from_ns;
		longest_ns = length_ns > longest_ns ? length_ns : longest_ns;
		slot.part_ns = length_ns / GROWTH_PARTS;
		if (length_ns >= GROWTH_LEAST_NS)
			slot_add(making, &slot);
	}
	for (unsigned i = 0; i < making->slot_count; i++)
		making->slot_of[making->slots[i].process] = (uint8_t)i;
	growth_explain(making, longest_ns);
}

struct survey_stack {
	uint32_t node;
	uint64_t outstanding_count, total_count;
};

static int candidate_compare(const void *a, const void *b)
{
	const struct survey_stack *left = a, *right = b;
	if (left->outstanding_count != right->outstanding_count)
		return left->outstanding_count > right->outstanding_count ? -1 : 1;
	if (left->total_count != right->total_count)
		return left->total_count > right->total_count ? -1 : 1;
	return left->node < right->node ? -1 : left->node > right->node;
}

/* Choose the stacks that may grow. Not only those of which blocks are left: some programs free all at their end. */
static void candidates_find(struct survey_making *making)
{
	const struct heap_window *window = making->source->window;
	uint32_t site_count = making->source->table->site_count;
	struct survey_stack *candidates = memory_zeroed((size_t)site_count + 1, sizeof(*candidates));
	struct map place_of = {0};
	size_t count = 0;
	bool added;
	making->candidate = memory_resize(NULL, (size_t)site_count + 1, sizeof(*making->candidate));
	memset(making->candidate, 0xff, site_count * sizeof(*making->candidate));
	for (uint32_t cell = 0; cell < window->cell_count && making->slot_count; cell++) {
		if (!window->numbers[cell].total_count)
			continue;
		uint32_t node = action_site_node(making->input, making->source, &window->cells[cell]);
		uint32_t *place = map_add(&place_of, node, &added);
		if (added) {
			*place = (uint32_t)count++;
			candidates[*place].node = node;
		}
		candidates[*place].outstanding_count += window->numbers[cell].outstanding_count;
		candidates[*place].total_count += window->numbers[cell].total_count;
		making->candidate[window->cells[cell].site] = node;
	}
	map_fini(&place_of);
	qsort(candidates, count, sizeof(*candidates), candidate_compare);
	for (size_t i = 0; i < count && i < GROWING_STACKS; i++)
		if (candidates[i].total_count >= GROWING_BLOCKS_LEAST)
			*map_add(&place_of, candidates[i].node, &added) = 1;
	for (uint32_t site = 0; site < site_count; site++)
		if (making->candidate[site] != HEAP_NONE && !map_find(&place_of, making->candidate[site]))
			making->candidate[site] = HEAP_NONE;
	map_fini(&place_of);
	free(candidates);
}

/* ---- the pass ---- */

static void rounding_add(struct survey_rounding *rounding, const struct heap_details *details)
{
	rounding->bytes += heap_slack(details);
	rounding->unknown_count += details->slack_bytes == HEAP_SLACK_UNKNOWN;
}

static struct growth_series *series_of(struct survey_part *part, uint8_t slot, uint32_t node)
{
	bool added;
	uint64_t key = map_pair(slot, node);
	uint32_t *place = map_add(&part->series_of, key, &added);
	if (added) {
		if (part->series_count >= part->series_capacity) {
			part->series_capacity = memory_capacity(part->series_capacity, (size_t)part->series_count + 1);
			part->series = memory_resize(part->series, part->series_capacity, sizeof(*part->series));
			part->series_keys =
				memory_resize(part->series_keys, part->series_capacity, sizeof(*part->series_keys));
		}
		memset(&part->series[part->series_count], 0, sizeof(*part->series));
		part->series_keys[part->series_count] = key;
		*place = part->series_count++;
	}
	return &part->series[*place];
}

static inline void row_grow(struct survey_part *part, const struct heap_allocation *row, uint32_t process,
			    struct heap_weight weight)
{
	const struct survey_making *making = part->making;
	uint8_t number = making->slot_of[process];
	if (number == no_slot)
		return;
	const struct slot *slot = &making->slots[number];
	bool is_open = !heap_end_is_given_back(row->end);
	bool is_chain = row->flags & HEAP_REALLOC || row->end == HEAP_END_REALLOC;
	if (!is_open && !is_chain && heap_lifetime_ns(row) < slot->part_ns)
		return;
	int64_t end_ns = is_open ? INT64_MAX : row->end_ns;
	if (is_chain && making->candidate[row->site] != HEAP_NONE && !(row->flags & HEAP_EARLIER))
		growth_add_chain(series_of(part, number, making->candidate[row->site]), &slot->clock, row->birth_ns,
				 end_ns, weight.bytes);
	if (row->flags & HEAP_EARLIER)
		growth_add(&part->replaced[number], &slot->clock, INT64_MIN, end_ns, weight.count, weight.bytes);
	else if (making->candidate[row->site] != HEAP_NONE)
		growth_add(series_of(part, number, making->candidate[row->site]), &slot->clock, row->birth_ns, end_ns,
			   weight.count, weight.bytes);
}

/* Whichever thread of ours came first: the answer does not depend on that. */
static void handed_add(struct handed *sum, const struct handed *own, uint64_t count, uint64_t bytes)
{
	sum->count += count;
	sum->bytes += bytes;
	sum->thread = own->thread < sum->thread ? own->thread : sum->thread;
	sum->free_site = own->free_site < sum->free_site ? own->free_site : sum->free_site;
}

static void row_hand_over(struct survey_part *part, const struct heap_allocation *row, uint32_t end_thread,
			  struct heap_weight weight)
{
	const uint32_t *role_of = part->making->role_of;
	struct handed own = {.from = role_of[row->thread],
			     .to = role_of[end_thread],
			     .site = row->site,
			     .free_site = row->end_site,
			     .thread = row->thread};
	bool added;
	uint32_t *place = map_add(&part->handed_of, map_pair(own.from << 16 | own.to, row->site), &added);
	if (added) {
		memory_grow(part->handed, part->handed_count, part->handed_capacity);
		*place = (uint32_t)part->handed_count;
		part->handed[part->handed_count++] = own;
	}
	handed_add(&part->handed[*place], &own, weight.count, weight.bytes);
	part->sites[row->site].crossed_count += weight.count;
	part->sites[row->site].crossed_bytes += weight.bytes;
}

/* The resident memory has all blocks in it, also of times before the range. */
static inline void row_reside(struct survey_part *part, const struct heap_allocation *row,
			      const struct heap_details *details, uint32_t process)
{
	const struct survey_plan *plan = &part->making->survey->plan;
	if (plan->resident_process == TRACE_NONE || row->birth_ns > plan->resident_at_ns ||
	    !resident_is_of(part->making->source->table->dictionary, plan->resident_process, process))
		return;
	heap_extents_add(&part->extents, 0, row, details);
	if (process != plan->resident_process || !heap_is_live_at(row, plan->resident_at_ns))
		return;
	part->live_bytes += row->size_bytes;
	rounding_add(&part->resident, details);
}

static uint32_t level_part(const struct trace_process *process, int64_t end_ns, int64_t time_ns)
{
	double length = (double)end_ns - (double)process->start_ns, at = (double)time_ns - (double)process->start_ns;
	double part = length > 0 ? at / length * LEVEL_PARTS : 0;
	return part <= 0 ? 0 : part >= LEVEL_PARTS ? LEVEL_PARTS - 1 : (uint32_t)part;
}

static inline void row_level(struct survey_part *part, const struct heap_allocation *row, uint32_t process,
			     uint64_t bytes)
{
	const struct heap_table *table = part->making->source->table;
	const struct trace_process *own = &table->dictionary->processes[process];
	int64_t end_ns = table->processes[process].end_ns;
	struct survey_level *levels = &part->levels[(size_t)process * LEVEL_PARTS];
	levels[level_part(own, end_ns, row->flags & HEAP_EARLIER ? own->start_ns : row->birth_ns)].began_bytes += bytes;
	if (heap_end_is_given_back(row->end))
		levels[level_part(own, end_ns, row->end_ns)].ended_bytes += bytes;
}

static inline void row_survey(struct survey_part *part, const struct heap_allocation *row,
			      const struct heap_details *details)
{
	const struct survey_making *making = part->making;
	const struct heap_table *table = making->source->table;
	const struct heap_window *window = making->source->window;
	uint32_t process = table->dictionary->threads[row->thread].process;
	struct heap_weight weight = heap_weigh(table, row);
	if (heap_is_live_at(row, window->peak_at_ns))
		rounding_add(&part->at_peak, details);
	row_reside(part, row, details, process);
	row_grow(part, row, process, weight);
	if (making->has_levels)
		row_level(part, row, process, weight.bytes);
	if (!heap_is_in_range(row, window->range) || row->end > HEAP_END_DESTROY)
		return;
	if (heap_lifetime_ns(row) < making->survey->plan.short_ns) {
		part->sites[row->site].short_count += weight.count;
		part->sites[row->site].short_bytes += weight.bytes;
	}
	if (details->end_thread != row->thread && details->end_thread != HEAP_NONE)
		row_hand_over(part, row, details->end_thread, weight);
}

static void part_run(void *context)
{
	struct survey_part *part = context;
	const struct survey_making *making = part->making;
	const struct heap_scan_plan plan = {
		INT64_MIN, making->source->window->range.to_ns, INT64_MIN, PACK_EVERYTHING, making->source->filter,
		NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, making->source->table, &plan, &part->making->shared);
	while ((rows = heap_scan_next(&scan))) {
		if (making->search)
			heap_peak_search_add(making->search, part->number, rows);
		for
			heap_rows_each (rows, i) {
				const struct heap_allocation row = heap_rows_get(rows, i);
				row_survey(part, &row, &rows->details[i]);
			}
	}
	heap_scan_end(&scan);
}

static void part_begin(struct survey_part *part, struct survey_making *making, unsigned number)
{
	const struct heap_table *table = making->source->table;
	*part = (struct survey_part){.making = making, .number = number};
	part->sites = memory_zeroed((size_t)table->site_count + 1, sizeof(*part->sites));
	if (making->has_levels)
		part->levels =
			memory_zeroed((size_t)table->dictionary->process_count * LEVEL_PARTS, sizeof(*part->levels));
}

static void rounding_merge(struct survey_rounding *to, const struct survey_rounding *from)
{
	to->bytes += from->bytes;
	to->unknown_count += from->unknown_count;
}

static void handed_merge(struct survey_part *to, const struct survey_part *from)
{
	for (size_t i = 0; i < from->handed_count; i++) {
		const struct handed *own = &from->handed[i];
		bool added;
		uint32_t *place = map_add(&to->handed_of, map_pair(own->from << 16 | own->to, own->site), &added);
		if (added) {
			memory_grow(to->handed, to->handed_count, to->handed_capacity);
			*place = (uint32_t)to->handed_count;
			to->handed[to->handed_count++] = *own;
			continue;
		}
		handed_add(&to->handed[*place], own, own->count, own->bytes);
	}
}

static void part_merge(struct survey_part *to, struct survey_part *from)
{
	const struct heap_table *table = to->making->source->table;
	for (uint32_t i = 0; i < table->site_count; i++) {
		to->sites[i].short_count += from->sites[i].short_count;
		to->sites[i].short_bytes += from->sites[i].short_bytes;
		to->sites[i].crossed_count += from->sites[i].crossed_count;
		to->sites[i].crossed_bytes += from->sites[i].crossed_bytes;
	}
	rounding_merge(&to->at_peak, &from->at_peak);
	rounding_merge(&to->resident, &from->resident);
	to->live_bytes += from->live_bytes;
	heap_extents_merge(&to->extents, &from->extents);
	for (uint32_t i = 0; i < from->series_count; i++)
		growth_merge(series_of(to, (uint8_t)(from->series_keys[i] >> 32), (uint32_t)from->series_keys[i]),
			     &from->series[i]);
	for (unsigned i = 0; i < GROWING_PROCESSES; i++)
		growth_merge(&to->replaced[i], &from->replaced[i]);
	handed_merge(to, from);
	for (size_t i = 0; from->levels && i < (size_t)table->dictionary->process_count * LEVEL_PARTS; i++) {
		to->levels[i].began_bytes += from->levels[i].began_bytes;
		to->levels[i].ended_bytes += from->levels[i].ended_bytes;
	}
}

static void part_fini(struct survey_part *part)
{
	free(part->sites);
	heap_extents_fini(&part->extents);
	map_fini(&part->series_of);
	free(part->series);
	free(part->series_keys);
	map_fini(&part->handed_of);
	free(part->handed);
	free(part->levels);
}

/* ---- what was found ---- */

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
		const struct handed *own = &part->handed[i];
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

/* Return how many frees of the process were lost in the time. */
static uint64_t lost_frees(const struct trace_dictionary *dictionary, const struct slot *slot)
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

static void growths_judge(struct survey *survey, const struct survey_part *part)
{
	const struct survey_making *making = part->making;
	const struct trace_dictionary *dictionary = making->source->table->dictionary;
	survey->growths = memory_zeroed((size_t)part->series_count + 1, sizeof(*survey->growths));
	for (uint32_t i = 0; i < part->series_count; i++) {
		unsigned number = (unsigned)(part->series_keys[i] >> 32);
		const struct slot *slot = &making->slots[number];
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

static void peaks_guess(struct survey *survey, const struct survey_part *part)
{
	uint32_t count = part->making->source->table->dictionary->process_count;
	survey->process_peaks = memory_zeroed((size_t)count + 1, sizeof(*survey->process_peaks));
	for (uint32_t i = 0; i < count && part->levels; i++) {
		uint64_t live = 0, most = 0;
		for (uint32_t k = 0; k < LEVEL_PARTS; k++) {
			const struct survey_level *level = &part->levels[(size_t)i * LEVEL_PARTS + k];
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
	growths_judge(survey, part);
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

static void survey_scan(struct survey_making *making)
{
	struct survey *survey = making->survey;
	unsigned width = heap_scan_width(making->source->table);
	struct survey_part *parts = memory_zeroed(width, sizeof(*parts));
	for (unsigned i = 0; i < width; i++)
		part_begin(&parts[i], making, i);
	heap_scan_threads(part_run, parts, sizeof(*parts), width);
	if (making->search)
		heap_peak_search_finish(making->search, survey->chart);
	for (unsigned i = 1; i < width; i++) {
		part_merge(&parts[0], &parts[i]);
		part_fini(&parts[i]);
	}
	survey_settle(survey, &parts[0]);
	part_fini(&parts[0]);
	free(parts);
}

void survey_make(struct survey *survey, struct action_input *input, struct action_source *source,
		 const struct survey_plan *plan)
{
	struct survey_making making = {.survey = survey, .input = input, .source = source};
	*survey = (struct survey){.plan = *plan};
	survey->chart_range = known_range(source);
	making.has_levels = source->table->dictionary->process_count > 1;
	roles_find(&making);
	slots_find(&making);
	candidates_find(&making);
	if (plan->chart_parts) {
		survey->chart = memory_zeroed(plan->chart_parts, sizeof(*survey->chart));
		making.search =
			heap_peak_search_new(source->table, source->filter, survey->chart_range, plan->chart_parts);
	}
	survey_scan(&making);
	free(making.slot_of);
	free(making.candidate);
	free(making.role_of);
}

const char *survey_role(const struct survey *survey, uint32_t role)
{
	return role < ROLES_MAX ? survey->roles.items[role].data : "others";
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
