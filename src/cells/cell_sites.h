/* SPDX-License-Identifier: MIT */
/**
 * The cells of a range before anything has a name: their nodes are sites of the table. If they are too many, the
 * lightest sites are lumped: those whose innermost frames are equal become one of them, so that the function that asked
 * stays. If that is not enough, intervals are merged in pairs.
 */
#ifndef XHEAP_CELLS_CELL_SITES_H
#define XHEAP_CELLS_CELL_SITES_H

#include "base/diag.h"
#include "cells/cell_scan.h"

/** Cells with sites. Zero it to begin; end it with cell_sites_fini(). */
struct cell_sites {
	struct cell_bounds bounds;
	struct cell_scan_result found; /**< its nodes are sites */
	uint32_t *lumped;              /**< by site: how many stacks are lumped in it; 0: it stands for itself */
};

/** Make the cells of base->bounds, at most `most`, of the allocations that pass the filter, and of some sites; NULL: of
    all. peak: a bound that stays, or CELL_NO_BOUND; its new number is returned in *peak. Return 0; -ECANCELED by the
    flag of the filter; or -E2BIG: there are too many cells in any case; with the reason in `diag`. */
int cell_sites_make(struct cell_sites *base, const struct heap_table *table, const struct heap_filter *filter,
		    const bool *sites, uint32_t most, uint32_t *peak, struct diag *diag);

/** Merge intervals in pairs; sums stay exact. *peak: as above. Return false if nothing was merged. */
bool cell_sites_merge(struct cell_sites *base, uint32_t *peak);

/** Free the cells and the bounds. */
void cell_sites_fini(struct cell_sites *base);

#endif
