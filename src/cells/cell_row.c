/* SPDX-License-Identifier: MIT */
#include "cells/cell_row.h"

#include <stdlib.h>

#include "base/memory.h"

struct heap_scan_plan cell_row_plan(const struct cell_bounds *bounds, const struct heap_filter *filter,
				    const bool *sites)
{
	enum { COLUMNS = PACK_TIMES | PACK_SIZES | PACK_SITES | PACK_THREADS | PACK_HEAPS };
	return (struct heap_scan_plan){
		bounds->times[0], bounds->times[bounds->count - 1], bounds->times[0], COLUMNS, filter, sites};
}

uint64_t *cell_row_peaks(struct heap_peak_search *search, uint32_t intervals)
{
	struct heap_peak *peaks = memory_zeroed(intervals, sizeof(*peaks));
	uint64_t *max_bytes = memory_zeroed(intervals, sizeof(*max_bytes));
	heap_peak_search_finish(search, peaks);
	for (uint32_t i = 0; i < intervals; i++)
		max_bytes[i] = peaks[i].bytes;
	free(peaks);
	return max_bytes;
}

int64_t cell_row_stays_from(const struct heap_table *table)
{
	return heap_table_ends_detached(table) ? table->duration_ns : INT64_MAX;
}

void cell_row_moments(struct heap_row_moments *moments, const struct cell_bounds *of, int64_t stays_from_ns,
		      const struct heap_rows *rows)
{
	const struct cell_bounds copy = *of, *bounds = &copy; /* which no write here can change */
	const uint64_t *begins_ns = rows->columns.numbers[PACK_BIRTH], *ends_ns = rows->columns.numbers[PACK_END],
		       *states = rows->columns.numbers[PACK_STATE];
	heap_rows_each (rows, i) {
		unsigned end = states[i] & PACK_END_MASK;
		bool is_earlier = states[i] >> PACK_FLAGS_SHIFT & HEAP_EARLIER,
		     is_open = end == HEAP_END_OPEN || (end == HEAP_END_EXIT && (int64_t)ends_ns[i] >= stays_from_ns);
		moments->begins[i] = (uint16_t)(is_earlier ? 0 : cell_bounds_moment(bounds, (int64_t)begins_ns[i]));
		moments->ends[i] =
			(uint16_t)(is_open ? bounds->count : cell_bounds_moment(bounds, (int64_t)ends_ns[i]));
	}
}
