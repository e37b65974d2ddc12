/* SPDX-License-Identifier: MIT */
/** Cells from a pass over the table. */
#ifndef XHEAP_CELLS_CELL_SCAN_H
#define XHEAP_CELLS_CELL_SCAN_H

#include "cells/cell_bounds.h"
#include "cells/cell_set.h"
#include "cells/fine_cells.h"
#include "query/filter.h"

/** What a pass goes over, and how. */
struct cell_scan {
	const struct heap_table *table;
	const struct heap_filter *filter; /**< prepared with the table */
	const struct cell_bounds *bounds;
	const uint32_t *nodes; /**< by site: the node of its cells */
	const bool *is_plain;  /**< by site: its cells have no classes of size and lifetime; NULL: none is so */
	const bool *sites;     /**< by site: those wanted; NULL: all */
	uint32_t most;         /**< cells */
	uint32_t sample_most;  /**< cells of a sample, with node_count */
	/** nodes, which are weighed: then calls and the most bytes are found, too, and of too many cells a sample.
	    0: cells alone */
	uint32_t node_count;
	uint32_t moment; /**< for weights */
	/** of the whole run, where the filter and the sites let all blocks pass; NULL: all blocks are looked at */
	const struct fine_cells *fine;
};

/** Sums of the blocks of a node. */
struct cell_weights {
	uint64_t made_bytes; /**< in the range */
	uint64_t bytes, blocks, live_bytes, never_freed_bytes;
};

/** What it found. The caller frees the members. */
struct cell_scan_result {
	struct cell_set set;
	unsigned level;               /**< of the sample, as cell_is_in() has it; 0: the set has all cells */
	uint64_t *calls;              /**< by interval: beginnings and frees of blocks */
	uint64_t *max_bytes;          /**< by interval: the most that was live in it */
	struct cell_weights *weights; /**< by node */
	bool is_over;                 /**< there are more cells than wanted: nothing else holds then */
};

/** Make the cells of the blocks that live or begin in the range of the bounds. If the filter is cancelled, or the table
    damaged, the result lacks some. */
void cell_scan(const struct cell_scan *scan, struct cell_scan_result *result);

/** Free what was found. */
void cell_scan_result_fini(struct cell_scan_result *result);

#endif
