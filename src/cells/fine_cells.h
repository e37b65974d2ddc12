/* SPDX-License-Identifier: MIT */
/**
 * The cells of a whole run in many more intervals than a picture has: those of a long part of it are sums of these, and
 * of the few blocks that began or ended beside a bound. A program that does the same again and again has few of them,
 * however many blocks it makes. Their nodes are sites of the table, since names may change.
 */
#ifndef XHEAP_CELLS_FINE_CELLS_H
#define XHEAP_CELLS_FINE_CELLS_H

#include <stddef.h>

#include "cells/cell_set.h"
#include "query/filter.h"

enum {
	FINE_INTERVALS = 1 << 14, /* and one more, whose bound is the peak */
	FINE_PER_INTERVAL = 4,    /* at least so many for each of a picture */
	FINE_CELLS_MAX = 1 << 21, /* there are none if there would be more than so many */
	FINE_ROWS_PER_CELL = 16,  /* or if a cell had fewer rows */
	FINE_INDEXES = 16         /* for tables of so many times the events that are worth an index */
};

/** Cells. A cell's keys are packed otherwise than in a picture. Zero it to begin. */
struct fine_cells {
	struct cell_bounds bounds;
	struct cell *cells;          /**< in the order of their beginnings */
	uint32_t count;              /**< 0: there are none, since there would be too many */
	uint64_t *calls, *max_bytes; /**< by interval, as struct cell_scan_result has them */
};

/** Where keys are in struct cell besides node and thread; those of classes and kind are where they always are. */
enum {
	FINE_HEAP_BITS = 20,
	FINE_MOMENT_BITS = 15,
	FINE_HEAP_SHIFT = CELL_END_SHIFT,
	FINE_END_SHIFT = FINE_HEAP_SHIFT + FINE_HEAP_BITS,
	FINE_BIRTH_SHIFT = FINE_END_SHIFT + FINE_MOMENT_BITS
};
_Static_assert(FINE_BIRTH_SHIFT + FINE_MOMENT_BITS == 64, "moments, the heap and classes are one number");
_Static_assert(FINE_INTERVALS + 3 < 1 << FINE_MOMENT_BITS, "every moment has its number");

/** A heap that is not known. */
#define FINE_NO_HEAP ((UINT32_C(1) << FINE_HEAP_BITS) - 1)

/** Return the moments of a cell. */
static inline uint32_t fine_cell_birth(const struct cell *cell)
{
	return cell_bits(cell->moments, FINE_BIRTH_SHIFT, FINE_MOMENT_BITS);
}
static inline uint32_t fine_cell_end(const struct cell *cell)
{
	return cell_bits(cell->moments, FINE_END_SHIFT, FINE_MOMENT_BITS);
}

/** Return the cell of a picture at other moments, with this node and no sums. */
static inline struct cell fine_cell_at(const struct cell *cell, uint32_t node, uint32_t birth, uint32_t end)
{
	const uint64_t heap = cell_bits(cell->moments, FINE_HEAP_SHIFT, FINE_HEAP_BITS);
	return (struct cell){.place = (uint64_t)node << 32 | (uint32_t)cell->place,
			     .moments = (heap == FINE_NO_HEAP ? CELL_NO_HEAP : heap) << CELL_HEAP_SHIFT |
					(uint64_t)birth << CELL_BIRTH_SHIFT | (uint64_t)end << CELL_END_SHIFT |
					(cell->moments & ((UINT64_C(1) << CELL_END_SHIFT) - 1))};
}

/** Return whether a filter lets all blocks pass: only then sums of cells are those that a pass would find. */
static inline bool fine_cells_pass(const struct heap_filter *filter)
{
	return !filter->selection && !filter->moment.is_asked;
}

/** Make the cells of all blocks of a table in so many intervals, at most `most`. The filter lets all pass, and the
    table is neither a sample nor has it sums. Return false if it was cancelled, or the table is damaged: then nothing
    is made. */
bool fine_cells_make(struct fine_cells *fine, const struct heap_table *table, const struct heap_filter *filter,
		     uint32_t intervals, uint32_t most);

/** Take the cells out of the table's index, or make them, and keep them there, also that there are too many. Return as
    fine_cells_make(). */
bool fine_cells_find(struct fine_cells *fine, const struct heap_table *table, const struct heap_filter *filter,
		     uint32_t intervals, uint32_t most);

/** Make bounds for a picture, as cell_bounds_make() does: those between its ends that are not wanted by themselves are
    bounds of the fine cells. Return false if these are too few for that: then nothing is made. */
bool fine_cells_bounds(const struct fine_cells *fine, struct cell_bounds *bounds, int64_t from_ns, int64_t to_ns,
		       uint32_t intervals, const int64_t *wanted, unsigned wanted_count);

/** Free the cells. */
void fine_cells_fini(struct fine_cells *fine);

#endif
