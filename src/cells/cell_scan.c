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

enum { JOINED_LATER = 100000 /* cells from which on those of several threads are joined by sorting */ };

/* One thread's part of the pass. */
struct scan_part {
	const struct cell_scan *of;
	struct cell_set set;
	uint64_t *calls;
	struct heap_peak_search *search;
	unsigned number;
	uint32_t *shared;
	bool *is_over; /* of all parts */
};

static uint8_t kind_of(const struct heap_allocation *row)
{
	return heap_end_is_given_back(row->end) ? CELL_FREED : row->end == HEAP_END_OPEN ? CELL_OPEN : CELL_ENDED;
}

/* Set the keys of the row's cell. Return false if it has nothing to do with the range. */
static inline bool keys_find(struct cell_keys *keys, const struct cell_scan *scan, const struct heap_allocation *row)
{
	const struct cell_bounds *bounds = scan->bounds;
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
				   .size = cell_size_class(row->size_bytes),
				   .life = cell_life_class(heap_lifetime_ns(row))};
	return true;
}

/* A block of a sample counts for several. */
static inline bool row_add(struct scan_part *part, const struct heap_allocation *row)
{
	const struct cell_scan *scan = part->of;
	struct cell_keys keys;
	if (!keys_find(&keys, scan, row))
		return true;
	const struct heap_weight weight = heap_weigh(scan->table, row);
	const struct cell_sums sums = {.blocks = weight.count,
				       .bytes = weight.bytes,
				       .reallocs = row->flags & HEAP_REALLOC ? weight.count : 0,
				       .temporaries = row->flags & HEAP_TEMPORARY ? 1 : 0};
	if (keys.birth)
		part->calls[keys.birth - 1] += weight.count;
	if (row->end == HEAP_END_FREE && keys.end < scan->bounds->count)
		part->calls[keys.end - 1] += weight.count;
	return cell_set_add(&part->set, &keys, &sums, scan->most);
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
	const struct heap_scan_plan plan = plan_of(part->of);
	struct heap_scan scan;
	const struct heap_rows *rows;
	bool is_good = true;
	heap_scan_begin(&scan, part->of->table, &plan, part->shared);
	while (is_good && !__atomic_load_n(part->is_over, __ATOMIC_RELAXED) && (rows = heap_scan_next(&scan))) {
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

/* What several threads have found is joined when there is an order, or one by one if it may be too much. */
static bool set_merge(struct cell_set *set, struct cell_set *from, uint32_t most)
{
	const struct cell_change none = {.nodes = NULL};
	if (set->count >= JOINED_LATER && from->count <= most - set->count) {
		cell_set_append(set, from);
		return true;
	}
	bool is_fit = cell_set_add_changed(set, from, &none, most);
	cell_set_fini(from);
	return is_fit;
}

static void parts_merge(const struct cell_scan *scan, struct scan_part *parts, unsigned width,
			struct cell_scan_result *result)
{
	result->set = parts[0].set;
	result->calls = parts[0].calls;
	for (unsigned i = 1; i < width; i++) {
		bool is_fit = set_merge(&result->set, &parts[i].set, scan->most);
		result->is_over |= !is_fit;
		for (uint32_t k = 0; k + 1 < scan->bounds->count; k++)
			result->calls[k] += parts[i].calls[k];
		free(parts[i].calls);
	}
}

/* A sum in place of blocks: times and classes are those of most of them. */
static bool sum_add(const struct cell_scan *scan, const struct heap_window *all, uint32_t number, struct cell_set *set)
{
	const struct trace_sum *sum = &scan->table->dictionary->sums[number];
	uint32_t site = scan->table->sum_sites[number];
	struct heap_folded_part part;
	struct cell_keys keys;
	bool is_counted = heap_folded_count(&part, all, scan->filter, sum, site),
	     is_wanted = !scan->sites || scan->sites[site];
	struct heap_allocation row = part.like;
	if (!is_counted || !is_wanted || !sum->count)
		return true;
	row.birth_ns = sum->birth_last_ns;
	row.end_ns = sum->end_last_ns;
	row.size_bytes = sum->bytes / sum->count;
	if (!keys_find(&keys, scan, &row))
		return true;
	keys.life = cell_life_class((int64_t)(sum->lifetime_min_ns / 2 + sum->lifetime_max_ns / 2));
	return cell_set_add(set, &keys, &(struct cell_sums){sum->count, sum->bytes, sum->reallocs, sum->temporary},
			    scan->most);
}

static void sums_add(const struct cell_scan *scan, struct cell_scan_result *result)
{
	const struct heap_window all = {.range = {0, scan->table->duration_ns}, .overhead_site = HEAP_NONE};
	for (uint32_t i = 0; i < scan->table->dictionary->sum_count && !result->is_over; i++)
		result->is_over = !sum_add(scan, &all, i, &result->set);
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
	struct heap_peak_search *search =
		heap_peak_search_new_between(scan->table, scan->filter, scan->sites, scan->bounds->times, intervals);
	*result = (struct cell_scan_result){.is_over = false};
	for (unsigned i = 0; i < width; i++)
		parts[i] = (struct scan_part){.of = scan,
					      .calls = memory_zeroed(intervals, sizeof(*parts[i].calls)),
					      .search = search,
					      .number = i,
					      .shared = &shared,
					      .is_over = &result->is_over};
	heap_scan_threads(part_run, parts, sizeof(*parts), width);
	parts_merge(scan, parts, width, result);
	sums_add(scan, result);
	peaks_take(search, scan->bounds, result);
	free(parts);
}

void cell_scan_result_fini(struct cell_scan_result *result)
{
	cell_set_fini(&result->set);
	free(result->calls);
	free(result->max_bytes);
	*result = (struct cell_scan_result){.is_over = false};
}
