/* SPDX-License-Identifier: MIT */
#include "cells/cell_scan.h"

#include <stdlib.h>

#include "base/memory.h"
#include "query/folded.h"
#include "query/peak.h"
#include "query/scan.h"
#include "table/weight.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

enum { LEVEL_MAX = 40 };

/* Cells that are found, or a sample of them. */
struct scan_found {
	const struct cell_scan *of;
	struct cell_set set;
	unsigned level;
};

/* One thread's part of the pass. */
struct scan_part {
	struct scan_found found;
	uint64_t *calls;
	struct cell_weights *weights;
	struct heap_peak_search *search;
	unsigned number;
	uint32_t *shared;
	bool *is_over; /* of all parts */
};

static void found_thin(struct scan_found *found, unsigned level)
{
	if (level == found->level)
		return;
	found->level = level;
	cell_set_thin(&found->set, level);
}

/* Return false if there are too many. */
static inline bool found_add(struct scan_found *found, const struct cell_keys *keys, const struct cell_sums *sums)
{
	while (!found->level || cell_keys_are_in(keys, found->level)) {
		if (cell_set_add(&found->set, keys, sums, found->of->most))
			return true;
		if (!found->of->node_count || found->level == LEVEL_MAX)
			return false;
		found_thin(found, found->level + 1);
	}
	return true;
}

static uint8_t kind_of(const struct heap_allocation *row)
{
	return heap_end_is_given_back(row->end) ? CELL_FREED : row->end == HEAP_END_OPEN ? CELL_OPEN : CELL_ENDED;
}

/* Set the keys of the row's cell. Return false if it has nothing to do with the range. */
static inline bool keys_find(struct cell_keys *keys, const struct cell_scan *scan, const struct heap_allocation *row)
{
	const struct cell_bounds *bounds = scan->bounds;
	bool is_plain = scan->is_plain && scan->is_plain[row->site];
	uint32_t birth = row->flags & HEAP_EARLIER ? 0 : cell_bounds_moment(bounds, row->birth_ns),
		 end = row->end == HEAP_END_OPEN ? bounds->count : cell_bounds_moment(bounds, row->end_ns);
	if (birth >= bounds->count || !end)
		return false;
	*keys = (struct cell_keys){.node = scan->nodes[row->site],
				   .thread = row->thread,
				   .heap = row->heap < scan->table->dictionary->heap_count && row->heap < CELL_NO_HEAP
						   ? row->heap
						   : CELL_NO_HEAP,
				   .birth = birth,
				   .end = end > birth ? end : birth, /* times of a damaged trace may be anything */
				   .kind = kind_of(row),
				   .size = is_plain ? CELL_SIZE_ANY : cell_size_class(row->size_bytes),
				   .life = is_plain ? CELL_LIFE_ANY : cell_life_class(heap_lifetime_ns(row))};
	return true;
}

static inline void weights_add(struct cell_weights *weights, const struct cell_keys *keys, const struct cell_sums *sums,
			       uint32_t moment)
{
	weights->made_bytes += keys->birth ? sums->bytes : 0;
	weights->bytes += sums->bytes;
	weights->blocks += sums->blocks;
	weights->live_bytes += keys->birth <= moment && moment < keys->end ? sums->bytes : 0;
	weights->never_freed_bytes += keys->kind != CELL_FREED ? sums->bytes : 0;
}

/* A block of a sample counts for several. */
static inline bool row_add(struct scan_part *part, const struct heap_allocation *row)
{
	const struct cell_scan *scan = part->found.of;
	struct cell_keys keys;
	if (!keys_find(&keys, scan, row))
		return true;
	const struct heap_weight weight = heap_weigh(scan->table, row);
	const struct cell_sums sums = {.blocks = weight.count,
				       .bytes = weight.bytes,
				       .reallocs = row->flags & HEAP_REALLOC ? weight.count : 0,
				       .temporaries = row->flags & HEAP_TEMPORARY ? 1 : 0};
	if (scan->node_count) {
		if (keys.birth)
			part->calls[keys.birth - 1] += weight.count;
		if (row->end == HEAP_END_FREE && keys.end < scan->bounds->count)
			part->calls[keys.end - 1] += weight.count;
		weights_add(&part->weights[keys.node], &keys, &sums, scan->moment);
	}
	return found_add(&part->found, &keys, &sums);
}

static struct heap_scan_plan plan_of(const struct cell_scan *scan)
{
	const struct cell_bounds *bounds = scan->bounds;
	return (struct heap_scan_plan){
		bounds->times[0], bounds->times[bounds->count - 1],
		bounds->times[0], PACK_TIMES | PACK_SIZES | PACK_SITES | PACK_THREADS | PACK_HEAPS,
		scan->filter,     scan->sites};
}

static void part_run(void *context)
{
	struct scan_part *part = context;
	const struct heap_scan_plan plan = plan_of(part->found.of);
	struct heap_scan scan;
	const struct heap_rows *rows;
	bool is_good = true;
	heap_scan_begin(&scan, part->found.of->table, &plan, part->shared);
	while (is_good && !__atomic_load_n(part->is_over, __ATOMIC_RELAXED) && (rows = heap_scan_next(&scan))) {
		if (part->search)
			heap_peak_search_add(part->search, part->number, rows);
		heap_rows_each (rows, i) {
			const struct heap_allocation row = heap_rows_get(rows, i);
			is_good = is_good && row_add(part, &row);
		}
	}
	if (!is_good)
		__atomic_store_n(part->is_over, true, __ATOMIC_RELAXED);
	heap_scan_end(&scan);
}

/* Return false if there are too many. */
static bool found_merge(struct scan_found *to, struct scan_found *from)
{
	bool is_fit = true;
	unsigned level = to->level > from->level ? to->level : from->level;
	found_thin(to, level);
	found_thin(from, level);
	for (uint32_t i = 0; i < from->set.count && is_fit; i++) {
		const struct cell_keys keys = cell_keys_of(&from->set.cells[i]);
		is_fit = found_add(to, &keys, &from->set.cells[i].sums);
	}
	cell_set_fini(&from->set);
	return is_fit;
}

static void weights_merge(struct cell_weights *to, const struct cell_weights *from, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		to[i].made_bytes += from[i].made_bytes;
		to[i].bytes += from[i].bytes;
		to[i].blocks += from[i].blocks;
		to[i].live_bytes += from[i].live_bytes;
		to[i].never_freed_bytes += from[i].never_freed_bytes;
	}
}

static void parts_merge(const struct cell_scan *scan, struct scan_part *parts, unsigned width, bool *is_over)
{
	for (unsigned i = 1; i < width; i++) {
		bool is_fit = found_merge(&parts[0].found, &parts[i].found);
		*is_over |= !is_fit;
		for (uint32_t k = 0; scan->node_count && k + 1 < scan->bounds->count; k++)
			parts[0].calls[k] += parts[i].calls[k];
		weights_merge(parts[0].weights, parts[i].weights, scan->node_count);
		free(parts[i].calls);
		free(parts[i].weights);
	}
}

/* A sum in place of blocks: times and classes are those of most of them. */
static bool sum_add(struct scan_part *part, const struct heap_window *all, uint32_t number)
{
	const struct cell_scan *scan = part->found.of;
	const struct trace_sum *sum = &scan->table->dictionary->sums[number];
	uint32_t site = scan->table->sum_sites[number];
	struct heap_folded_part folded;
	struct cell_keys keys;
	bool is_counted = heap_folded_count(&folded, all, scan->filter, sum, site),
	     is_wanted = !scan->sites || scan->sites[site];
	struct heap_allocation row = folded.like;
	if (!is_counted || !is_wanted || !sum->count)
		return true;
	row.birth_ns = sum->birth_last_ns;
	row.end_ns = sum->end_last_ns;
	row.size_bytes = sum->bytes / sum->count;
	if (!keys_find(&keys, scan, &row))
		return true;
	if (keys.life != CELL_LIFE_ANY)
		keys.life = cell_life_class((int64_t)(sum->lifetime_min_ns / 2 + sum->lifetime_max_ns / 2));
	const struct cell_sums sums = {sum->count, sum->bytes, sum->reallocs, sum->temporary};
	if (scan->node_count)
		weights_add(&part->weights[keys.node], &keys, &sums, scan->moment);
	return found_add(&part->found, &keys, &sums);
}

static void sums_add(struct scan_part *part)
{
	const struct cell_scan *scan = part->found.of;
	const struct heap_window all = {.range = {0, scan->table->duration_ns}, .overhead_site = HEAP_NONE};
	for (uint32_t i = 0; i < scan->table->dictionary->sum_count && !*part->is_over; i++)
		*part->is_over = !sum_add(part, &all, i);
}

static void peaks_take(struct heap_peak_search *search, const struct cell_bounds *bounds,
		       struct cell_scan_result *result)
{
	uint32_t intervals = bounds->count - 1;
	struct heap_peak *peaks = memory_zeroed(intervals, sizeof(*peaks));
	result->max_bytes = memory_zeroed(intervals, sizeof(*result->max_bytes));
	heap_peak_search_finish(search, peaks);
	for (uint32_t i = 0; i < intervals; i++)
		result->max_bytes[i] = peaks[i].bytes;
	free(peaks);
}

void cell_scan(const struct cell_scan *scan, struct cell_scan_result *result)
{
	unsigned width = heap_scan_width(scan->table);
	uint32_t shared = 0, intervals = scan->bounds->count - 1;
	struct scan_part *parts = memory_zeroed(width, sizeof(*parts));
	struct heap_peak_search *search = scan->node_count
						  ? heap_peak_search_new_between(scan->table, scan->filter, scan->sites,
										 scan->bounds->times, intervals)
						  : NULL;
	*result = (struct cell_scan_result){.is_over = false};
	for (unsigned i = 0; i < width; i++) {
		parts[i] = (struct scan_part){.found = {.of = scan},
					      .search = search,
					      .number = i,
					      .shared = &shared,
					      .is_over = &result->is_over};
		if (!scan->node_count)
			continue;
		parts[i].calls = memory_zeroed(intervals, sizeof(*parts[i].calls));
		parts[i].weights = memory_zeroed(scan->node_count, sizeof(*parts[i].weights));
	}
	heap_scan_threads(part_run, parts, sizeof(*parts), width);
	parts_merge(scan, parts, width, &result->is_over);
	sums_add(&parts[0]);
	result->set = parts[0].found.set;
	result->level = parts[0].found.level;
	result->calls = parts[0].calls;
	result->weights = parts[0].weights;
	if (search)
		peaks_take(search, scan->bounds, result);
	free(parts);
}

void cell_scan_result_fini(struct cell_scan_result *result)
{
	cell_set_fini(&result->set);
	free(result->calls);
	free(result->max_bytes);
	free(result->weights);
	*result = (struct cell_scan_result){.is_over = false};
}
