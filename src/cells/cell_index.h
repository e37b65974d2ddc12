/* SPDX-License-Identifier: MIT */
/**
 * The cells of the whole run in an index: those of all blocks that reports count, without a filter. The bytes:
 *
 *     numbers     bounds, as differences; the peak's number plus 1, or 0; sites that are lumped, with their counts; of
 *                 each interval calls and the most bytes; cells; bytes of the columns
 *     columns     compressed by zstd: of all cells the site, as a difference, then of all the thread, and so on
 *
 * Numbers are LEB128. They may be anything: each one is checked.
 */
#ifndef XHEAP_CELLS_CELL_INDEX_H
#define XHEAP_CELLS_CELL_INDEX_H

#include "cells/cell_sites.h"

/** Return whether the cells that a table has are those of this filter. */
bool cell_index_is_of(const struct heap_table *table, const struct heap_filter *filter);

/** Read the cells that a table has, and the number of the peak's bound, or CELL_NO_BOUND. Return false if there are
    none, or if they are damaged: the table is damaged then, too. */
bool cell_index_read(struct cell_sites *sites, const struct heap_table *table, uint32_t *peak);

#endif
