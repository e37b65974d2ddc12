/* SPDX-License-Identifier: MIT */
/**
 * The cells of a trace that goes on: kept, so that a look costs what is new. Their nodes are sites of the table.
 * Intervals are of one length, 2^k ns, and are merged in pairs when the run outgrows them. A block that is live has a
 * cell of its own end; when it ends, it moves to another one.
 */
#ifndef XHEAP_CELLS_GROWING_CELLS_H
#define XHEAP_CELLS_GROWING_CELLS_H

#include "cells/cell_scan.h"

enum { GROWING_INTERVALS = 256 };

/** The moment at which a live block ends. */
enum { GROWING_NEVER = CELL_INTERVALS_MAX + 1 };

/** Zero it to begin, but for `most`. */
struct growing_cells {
	struct cell_set set;               /**< with cells of no block, which moved */
	uint32_t most;                     /**< cells */
	unsigned shift;                    /**< interval i has the times from i << shift on */
	uint64_t calls[GROWING_INTERVALS]; /**< by interval: beginnings and frees of blocks */
	bool is_over;                      /**< there were more cells than wanted: nothing else holds then */
};

/** Add a block, which is live or not. */
void growing_cells_add(struct growing_cells *cells, const struct heap_table *table, const struct heap_allocation *row);

/** Move a block that was added while it was live, and has ended since. */
void growing_cells_end(struct growing_cells *cells, const struct heap_table *table, const struct heap_allocation *row);

/** Have the intervals that a run up to until_ns has, and return how many these are. */
uint32_t growing_cells_reach(struct growing_cells *cells, int64_t until_ns);

/** Set the cells as a pass over a table of the time up to until_ns finds them, with these bounds: nodes[site] is the
    node of its cells, of node_count. The last interval ends at until_ns. Weights are of now; what was live in intervals
    is not set. End both as usual. */
void growing_cells_take(struct growing_cells *cells, int64_t until_ns, const uint32_t *nodes, uint32_t node_count,
			struct cell_bounds *bounds, struct cell_scan_result *result);

/** Free the cells. */
void growing_cells_fini(struct growing_cells *cells);

#endif
