/* SPDX-License-Identifier: MIT */
#include "cells/fine_cells.h"

#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/memory.h"
#include "cells/cell_row.h"
#include "query/peak.h"
#include "query/scan.h"
#include "table/kept_answer.h"
#include "trace/trace.h"

/* ---- the pass ---- */

/* One thread's part of it. */
struct fine_part {
	const struct fine_cells *of;
	const struct heap_table *table;
	const struct heap_filter *filter;
	struct heap_peak_search *search;
	unsigned number;
	uint32_t *shared, most;
	bool *is_over; /* of all parts */
	struct cell_set set;
	uint64_t *calls;
};

static struct cell cell_of(const struct heap_table *table, const struct heap_allocation *row, uint32_t begin,
			   uint32_t end)
{
	uint64_t heap = row->heap < table->dictionary->heap_count ? row->heap : FINE_NO_HEAP;
	return (struct cell){.place = (uint64_t)row->site << 32 | row->thread,
			     .moments = (uint64_t)begin << FINE_BIRTH_SHIFT | (uint64_t)end << FINE_END_SHIFT |
					heap << FINE_HEAP_SHIFT | (uint64_t)cell_row_kind(row) << CELL_KIND_SHIFT |
					(uint64_t)cell_size_class(row->size_bytes) << CELL_SIZE_SHIFT |
					cell_life_class(heap_lifetime_ns(row))};
}

/* Return false if there are too many cells. */
static bool rows_add(struct fine_part *part, const struct heap_rows *rows, const struct heap_row_moments *moments)
{
	const uint32_t behind = part->of->bounds.count;
	heap_rows_each (rows, i) {
		const struct heap_allocation row = heap_rows_get(rows, i);
		const uint32_t begin = moments->begins[i], end = moments->ends[i];
		const struct cell like = cell_of(part->table, &row, begin, end);
		const struct cell_sums sums = {1, row.size_bytes, row.flags & HEAP_REALLOC ? 1 : 0,
					       row.flags & HEAP_TEMPORARY ? 1 : 0};
		if (!cell_set_add(&part->set, &like, &sums, part->most))
			return false;
		if (begin && begin < behind)
			part->calls[begin - 1]++;
		if (row.end == HEAP_END_FREE && end && end < behind)
			part->calls[end - 1]++;
	}
	return true;
}

static void part_run(void *context)
{
	struct fine_part *part = context;
	const struct cell_bounds *bounds = &part->of->bounds;
	const struct heap_scan_plan plan = cell_row_plan(bounds, part->filter, NULL);
	const int64_t stays_from_ns = cell_row_stays_from(part->table);
	struct heap_row_moments moments;
	struct heap_scan scan;
	const struct heap_rows *rows;
	part->calls = memory_zeroed(bounds->count, sizeof(*part->calls));
	heap_scan_begin(&scan, part->table, &plan, part->shared);
	while (!__atomic_load_n(part->is_over, __ATOMIC_RELAXED) && (rows = heap_scan_next(&scan))) {
		cell_row_moments(&moments, bounds, stays_from_ns, rows);
		heap_peak_search_add_between(part->search, part->number, rows, &moments);
		if (!rows_add(part, rows, &moments))
			__atomic_store_n(part->is_over, true, __ATOMIC_RELAXED);
	}
	heap_scan_end(&scan);
}

static int cell_compare(const void *a, const void *b)
{
	const struct cell *left = a, *right = b;
	if (left->moments != right->moments)
		return left->moments < right->moments ? -1 : 1;
	return (left->place > right->place) - (left->place < right->place);
}

/* The same cells are found by several threads where their shares meet. */
static void parts_merge(struct fine_cells *fine, struct fine_part *parts, unsigned width, bool *is_over)
{
	struct cell_set *all = &parts[0].set;
	for (unsigned i = 1; i < width; i++) {
		for (uint32_t k = 0; k < parts[i].set.count && !*is_over; k++) {
			const struct cell *cell = &parts[i].set.cells[k];
			*is_over = !cell_set_add(all, cell, &cell->sums, parts[i].most);
		}
		for (uint32_t k = 0; k < fine->bounds.count; k++)
			parts[0].calls[k] += parts[i].calls[k];
		cell_set_fini(&parts[i].set);
		free(parts[i].calls);
	}
	fine->calls = parts[0].calls;
	if (*is_over)
		cell_set_fini(all);
	free(all->places);
	fine->cells = all->cells;
	fine->count = all->count;
	if (fine->count)
		qsort(fine->cells, fine->count, sizeof(*fine->cells), cell_compare);
}

static void bounds_make(struct fine_cells *fine, const struct heap_table *table, uint32_t intervals)
{
	*fine = (struct fine_cells){.cells = NULL};
	cell_bounds_make(&fine->bounds, -1, table->duration_ns > 0 ? table->duration_ns : 0, intervals,
			 &table->peak.time_ns, 1);
}

bool fine_cells_make(struct fine_cells *fine, const struct heap_table *table, const struct heap_filter *filter,
		     uint32_t intervals, uint32_t most)
{
	const unsigned width = heap_scan_width(table);
	bool is_over = table->dictionary->heap_count >= FINE_NO_HEAP;
	uint32_t shared = 0;
	bounds_make(fine, table, intervals);
	const uint32_t count = fine->bounds.count - 1;
	struct heap_peak_search *search = heap_peak_search_new_between(table, filter, NULL, fine->bounds.times, count);
	struct fine_part *parts = memory_zeroed(width, sizeof(*parts));
	for (unsigned i = 0; i < width; i++)
		parts[i] = (struct fine_part){.of = fine,
					      .table = table,
					      .filter = filter,
					      .search = search,
					      .number = i,
					      .shared = &shared,
					      .most = most,
					      .is_over = &is_over};
	heap_scan_threads(part_run, parts, sizeof(*parts), width);
	parts_merge(fine, parts, width, &is_over);
	fine->max_bytes = cell_row_peaks(search, count);
	free(parts);
	if (!cancel_is_asked(filter->is_cancelled) && !__atomic_load_n(table->is_damaged, __ATOMIC_RELAXED))
		return true;
	fine_cells_fini(fine);
	return false;
}

/* ---- what an index keeps ---- */

/* Set the cells, or note them. */
static void cells_keep(struct fine_cells *fine, struct kept_answer *kept, size_t *intervals)
{
	size_t count = fine->count;
	fine->calls = kept_answer_array(kept, fine->calls, intervals, sizeof(*fine->calls));
	fine->max_bytes = kept_answer_array(kept, fine->max_bytes, intervals, sizeof(*fine->max_bytes));
	fine->cells = kept_answer_array(kept, fine->cells, &count, sizeof(*fine->cells));
	fine->count = count <= FINE_CELLS_MAX ? (uint32_t)count : 0;
}

static bool cells_are_good(const struct fine_cells *fine, const struct heap_table *table)
{
	for (uint32_t i = 0; i < fine->count; i++) {
		const struct cell *cell = &fine->cells[i];
		if (cell->place >> 32 >= table->site_count ||
		    (uint32_t)cell->place >= table->dictionary->thread_count ||
		    fine_cell_birth(cell) > fine->bounds.count || fine_cell_end(cell) > fine->bounds.count)
			return false;
	}
	return true;
}

bool fine_cells_find(struct fine_cells *fine, const struct heap_table *table, const struct heap_filter *filter,
		     uint32_t intervals, uint32_t most)
{
	struct kept_answer kept;
	kept_answer_begin(&kept, table, HEAP_ANSWER_FINE_CELLS, &intervals, sizeof(intervals));
	bool is_found = kept.is_known;
	if (is_found)
		bounds_make(fine, table, intervals);
	else
		is_found = fine_cells_make(fine, table, filter, intervals, most);
	if (is_found) {
		size_t count = fine->bounds.count - 1, same = count;
		cells_keep(fine, &kept, &count);
		is_found = count == same && cells_are_good(fine, table);
		if (!is_found)
			fine_cells_fini(fine);
	}
	kept_answer_end(&kept, is_found);
	return is_found;
}

void fine_cells_fini(struct fine_cells *fine)
{
	cell_bounds_fini(&fine->bounds);
	free(fine->cells);
	free(fine->calls);
	free(fine->max_bytes);
	*fine = (struct fine_cells){.cells = NULL};
}

/* ---- bounds of a picture ---- */

static int64_t time_near(const struct cell_bounds *bounds, int64_t time_ns)
{
	uint32_t moment = cell_bounds_moment(bounds, time_ns);
	const int64_t *at = &bounds->times[moment];
	return moment && time_ns - at[-1] < at[0] - time_ns ? at[-1] : at[0];
}

bool fine_cells_bounds(const struct fine_cells *fine, struct cell_bounds *bounds, int64_t from_ns, int64_t to_ns,
		       uint32_t intervals, const int64_t *wanted, unsigned wanted_count)
{
	const uint64_t length = (uint64_t)to_ns - (uint64_t)from_ns,
		       own = cell_bounds_moment(&fine->bounds, to_ns) - cell_bounds_moment(&fine->bounds, from_ns);
	if (!fine->count || own < (uint64_t)intervals * FINE_PER_INTERVAL)
		return false;
	int64_t *times = memory_zeroed((size_t)intervals + wanted_count, sizeof(*times));
	for (uint32_t i = 1; i < intervals; i++) {
		uint64_t offset = (uint64_t)((unsigned __int128)length * i / intervals);
		times[i - 1] = time_near(&fine->bounds, (int64_t)((uint64_t)from_ns + offset));
	}
	memcpy(&times[intervals - 1], wanted, wanted_count * sizeof(*wanted));
	cell_bounds_make(bounds, from_ns, to_ns, 1, times, intervals - 1 + wanted_count);
	free(times);
	return true;
}
