/* SPDX-License-Identifier: MIT */
/** Light sites that become one. */
#ifndef XHEAP_CELLS_CELL_LUMPS_H
#define XHEAP_CELLS_CELL_LUMPS_H

#include "cells/cell_set.h"
#include "query/filter.h"

/** What is chosen. The caller frees the arrays. */
struct cell_lumps {
	uint32_t *sites;  /**< by site: the one that stands for it, which may be itself */
	uint32_t *lumped; /**< by site: how many it stands for; 0: it is not lumped */
	uint32_t kept;    /**< sites that are not lumped */
};

/** Keep the heaviest sites that have at most `budget` of the cells in `some`, a part of all; lump the others if their
    innermost `depth` frames are equal. A heavy site has a large share of all bytes, of all blocks, of the peak, or of
    what was never freed, among the allocations of a range that pass the filter. */
void cell_lumps_choose(struct cell_lumps *lumps, const struct heap_table *table, const struct heap_filter *filter,
		       struct heap_range range, const struct cell_set *some, uint64_t budget, unsigned depth);

/** Free the arrays. */
void cell_lumps_fini(struct cell_lumps *lumps);

#endif
