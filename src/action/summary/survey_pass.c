/* SPDX-License-Identifier: MIT */
#include "action/summary/survey_pass.h"

#include <stdlib.h>
#include <string.h>

#include "action/summary/survey_making.h"
#include "base/memory.h"
#include "table/weight.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

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
	if (number == SURVEY_NO_SLOT)
		return;
	const struct survey_slot *slot = &making->slots[number];
	bool is_open = !heap_end_is_given_back(row->end);
	bool is_chain = row->flags & HEAP_REALLOC || row->end == HEAP_END_REALLOC;
	if (!is_open && !is_chain && heap_lifetime_ns(row) < slot->part_ns)
		return;
	int64_t end_ns = is_open ? INT64_MAX : row->end_ns;
	if (row->flags & HEAP_EARLIER) {
		growth_add(&part->replaced[number], &slot->clock, INT64_MIN, end_ns, weight.count, weight.bytes);
		return;
	}
	growth_add(&part->wholes[number], &slot->clock, row->birth_ns, end_ns, weight.count, weight.bytes);
	if (making->candidate[row->site] == HEAP_NONE)
		return;
	struct growth_series *series = series_of(part, number, making->candidate[row->site]);
	if (is_chain)
		growth_add_chain(series, &slot->clock, row->birth_ns, end_ns, weight.bytes);
	growth_add(series, &slot->clock, row->birth_ns, end_ns, weight.count, weight.bytes);
}

/* Whichever thread of ours came first: the answer does not depend on that. */
static void handed_add(struct survey_handed *sum, const struct survey_handed *own, uint64_t count, uint64_t bytes)
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
	struct survey_handed own = {.from = role_of[row->thread],
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
	double part = length > 0 ? at / length * SURVEY_LEVEL_PARTS : 0;
	return part <= 0 ? 0 : part >= SURVEY_LEVEL_PARTS ? SURVEY_LEVEL_PARTS - 1 : (uint32_t)part;
}

static inline void row_level(struct survey_part *part, const struct heap_allocation *row, uint32_t process,
			     uint64_t bytes)
{
	const struct heap_table *table = part->making->source->table;
	const struct trace_process *own = &table->dictionary->processes[process];
	int64_t end_ns = table->processes[process].end_ns;
	struct survey_level *levels = &part->levels[(size_t)process * SURVEY_LEVEL_PARTS];
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
	/* With what remains of blocks around others, bytes are those of the outer block, and all else is of the inner
	   ones. */
	bool has_remainders = making->source->filter->has_overhead;
	if (!has_remainders || !(row->flags & HEAP_NESTED)) {
		if (heap_is_live_at(row, window->peak_at_ns))
			rounding_add(&part->at_peak, details);
		row_reside(part, row, details, process);
		if (making->has_levels)
			row_level(part, row, process, weight.bytes);
	}
	if (has_remainders && row->flags & HEAP_HAS_NESTED)
		return;
	row_grow(part, row, process, weight);
	if (!heap_is_in_range(row, window->range) || row->end > HEAP_END_DESTROY)
		return;
	if (heap_lifetime_ns(row) < making->survey->plan.short_ns) {
		part->sites[row->site].short_count += weight.count;
		part->sites[row->site].short_bytes += weight.bytes;
	}
	if (making->has_handovers && details->end_thread != row->thread && details->end_thread != HEAP_NONE)
		row_hand_over(part, row, details->end_thread, weight);
}

/* Of one thread nothing is handed over, and pages of blocks are only asked for where the account has none. */
static unsigned columns_needed(const struct survey_making *making)
{
	return PACK_TIMES | PACK_SIZES | PACK_SITES | PACK_THREADS | PACK_SLACKS |
	       (making->has_handovers ? PACK_END_SITES | PACK_END_THREADS : 0) |
	       (making->survey->plan.resident_process != TRACE_NONE ? PACK_ADDRESSES : 0);
}

void survey_part_run(void *context)
{
	struct survey_part *part = context;
	const struct survey_making *making = part->making;
	const struct heap_scan_plan plan = {INT64_MIN,
					    making->source->window->range.to_ns,
					    INT64_MIN,
					    columns_needed(making),
					    making->source->filter,
					    NULL};
	struct heap_scan scan;
	const struct heap_rows *rows;
	heap_scan_begin(&scan, making->source->table, &plan, &part->making->shared);
	while ((rows = heap_scan_next(&scan))) {
		if (making->search)
			heap_peak_search_add(making->search, part->number, rows);
		heap_rows_each (rows, i) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			row_survey(part, &row, &rows->details[i]);
		}
	}
	heap_scan_end(&scan);
}

void survey_part_begin(struct survey_part *part, struct survey_making *making, unsigned number)
{
	const struct heap_table *table = making->source->table;
	*part = (struct survey_part){.making = making, .number = number};
	part->sites = memory_zeroed((size_t)table->site_count + 1, sizeof(*part->sites));
	if (making->has_levels)
		part->levels = memory_zeroed((size_t)table->dictionary->process_count * SURVEY_LEVEL_PARTS,
					     sizeof(*part->levels));
}

static void rounding_merge(struct survey_rounding *to, const struct survey_rounding *from)
{
	to->bytes += from->bytes;
	to->unknown_count += from->unknown_count;
}

static void handed_merge(struct survey_part *to, const struct survey_part *from)
{
	for (size_t i = 0; i < from->handed_count; i++) {
		const struct survey_handed *own = &from->handed[i];
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

void survey_part_merge(struct survey_part *to, struct survey_part *from)
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
	for (unsigned i = 0; i < SURVEY_GROWING_PROCESSES; i++) {
		growth_merge(&to->replaced[i], &from->replaced[i]);
		growth_merge(&to->wholes[i], &from->wholes[i]);
	}
	handed_merge(to, from);
	for (size_t i = 0; from->levels && i < (size_t)table->dictionary->process_count * SURVEY_LEVEL_PARTS; i++) {
		to->levels[i].began_bytes += from->levels[i].began_bytes;
		to->levels[i].ended_bytes += from->levels[i].ended_bytes;
	}
}

void survey_part_fini(struct survey_part *part)
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
