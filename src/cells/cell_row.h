/* SPDX-License-Identifier: MIT */
/** The cell of a block. */
#ifndef XHEAP_CELLS_CELL_ROW_H
#define XHEAP_CELLS_CELL_ROW_H

#include "cells/cell_set.h"
#include "query/peak.h"
#include "query/scan.h"
#include "table/table.h"
#include "trace/trace.h"

/** Return the plan of a pass over the rows between the first and the last bound, of sites if they are given. */
struct heap_scan_plan cell_row_plan(const struct cell_bounds *bounds, const struct heap_filter *filter,
				    const bool *sites);

/** Finish a search for the peaks of so many intervals. Return the most bytes in each, which the caller frees. */
uint64_t *cell_row_peaks(struct heap_peak_search *search, uint32_t intervals);

/** Return the time from which on the end of a process is a detach at the end of the recording: its blocks stay. */
int64_t cell_row_stays_from(const struct heap_table *table);

/** Find where the times of rows lie among bounds, which are at most UINT16_MAX - 1. */
void cell_row_moments(struct heap_row_moments *moments, const struct cell_bounds *of, int64_t stays_from_ns,
		      const struct heap_rows *rows);

/** Return how the row ended. */
static inline uint8_t cell_row_kind(const struct heap_allocation *row)
{
	return heap_end_is_given_back(row->end) ? CELL_FREED : row->end == HEAP_END_OPEN ? CELL_OPEN : CELL_ENDED;
}

/** Return the keys of the cell of a row that begins and ends at these moments. Times of a damaged trace may be
    anything. */
static inline struct cell_keys cell_row_keys(const struct heap_table *table, const struct heap_allocation *row,
					     uint32_t node, uint32_t begin, uint32_t end)
{
	bool has_heap = row->heap < table->dictionary->heap_count && row->heap < CELL_NO_HEAP;
	return (struct cell_keys){.node = node,
				  .thread = row->thread,
				  .heap = has_heap ? row->heap : CELL_NO_HEAP,
				  .birth = begin,
				  .end = end > begin ? end : begin,
				  .kind = cell_row_kind(row),
				  .size = cell_size_class(row->size_bytes),
				  .life = cell_life_class(heap_lifetime_ns(row))};
}

#endif
