/* SPDX-License-Identifier: MIT */
/**
 * The cells of a trace, for pictures: every sum that depends on a choice of times is a sum over them, without a further
 * question. viewer/README.md defines what cells are, and their bytes.
 *
 *     cell_scan        a pass over the table: all cells, or a sample of them and what each stack weighs
 *     cell_tree        which stacks are kept, and which are lumped
 *     cell_bytes       the answer
 */
#ifndef XHEAP_CELLS_CELLS_H
#define XHEAP_CELLS_CELLS_H

#include "base/diag.h"
#include "base/sink.h"
#include "query/cull.h"
#include "query/filter.h"

struct fine_cells;
struct growing_cells;

/** What an answer may have: a page draws so much in the time of a picture. */
enum { CELLS_NODES_MAX = 20000, CELLS_MAX = 400000 };

enum { CELLS_INTERVALS_USUAL = 256, CELLS_INTERVALS_MAX = 1000, CELLS_BOUNDS_MAX = 4 };

/** A trace that is asked; as the sources of an analysis (analysis/analysis.h). */
struct cells_source {
	const struct heap_table *table;
	struct heap_names *names; /**< of this thread alone, for as long as the question takes */
	/** prepared with the table, which may cancel. What remains of blocks with others in them is in no cell: set
	    is_partial */
	const struct heap_filter *filter;
	struct heap_cull *cull; /**< NULL: nothing is culled, so each stack is its own asker */
	/** of cells_name_sites(), for who asks more than once; NULL: they are made */
	const uint32_t *nodes;
	/** of the table: for long ranges without a filter; NULL, or with no cells: none */
	const struct fine_cells *fine;
	/** of a trace that goes on, whose table has no rows: its cells. Only the whole run can be asked for, without a
	    filter. NULL: a pass over the table finds the cells */
	struct growing_cells *growing;
	const uint64_t *growing_max_bytes; /**< with `growing`: by interval, the most that was live in it */
};

/** Name the code of all sites. Return by site its node of the names, which the caller frees; NULL: it was cancelled. */
uint32_t *cells_name_sites(const struct cells_source *source);

/** What is asked. Zero it to begin: the whole run, in the usual number of intervals. */
struct cells_request {
	bool has_range;
	int64_t from_ns, to_ns;  /**< of the range: moments, from_ns < to_ns; what exceeds the run is left out */
	uint32_t interval_count; /**< up to CELLS_INTERVALS_MAX; 0: the usual number */
	int64_t bounds[CELLS_BOUNDS_MAX]; /**< times that must be bounds, if they are in the range */
	unsigned bound_count;
	/** only stacks whose outermost frames are these: `image!full name`, separated by line feeds; NULL, "": all */
	const char *node;
};

/**
 * Write the cells. Errors of the sink are its own. Return 0, or a negative errno with the reason in `diag`; then
 * nothing is written:
 *
 *     -EINVAL     the range has no time of the trace
 *     -ENOENT     no stack has such frames
 *     -ENOTSUP    the trace has sums in place of blocks, which cannot answer the filter
 *     -E2BIG      too many threads and heaps for one picture
 *     -ECANCELED  by the flag of the filter
 *
 * If the table proves damaged, the answer is not to be used.
 */
int cells_write(struct sink *out, const struct cells_source *source, const struct cells_request *request,
		struct diag *diag);

#endif
