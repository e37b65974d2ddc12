/* SPDX-License-Identifier: MIT */
/** Cells from a pass over the table. */
#ifndef XHEAP_CELLS_CELL_SCAN_H
#define XHEAP_CELLS_CELL_SCAN_H

#include "cells/cell_bounds.h"
#include "cells/cell_set.h"
#include "query/filter.h"

/** What a pass goes over, and how. */
struct cell_scan {
	const struct heap_table *table;
	const struct heap_filter *filter; /**< prepared with the table */
	const struct cell_bounds *bounds;
	const uint32_t *nodes; /**< by site: the node of its cells */
	const bool *sites;     /**< by site: those wanted; NULL: all */
	uint32_t most;         /**< cells */
};

/** What it found. The caller frees the members. */
struct cell_scan_result {
	struct cell_set set;
	uint64_t *calls;     /**< by interval: beginnings and frees of blocks */
	uint64_t *max_bytes; /**< by interval: the most that was live in it */
	bool is_over;        /**< there are more cells than wanted: nothing else holds then */
};

/** Make the cells of the blocks that live or begin in the range of the bounds. If the filter is cancelled, or the table
    damaged, the result lacks some. */
void cell_scan(const struct cell_scan *scan, struct cell_scan_result *result);

/** Free what was found. */
void cell_scan_result_fini(struct cell_scan_result *result);

#endif
