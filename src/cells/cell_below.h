/* SPDX-License-Identifier: MIT */
/** Stacks below a place. */
#ifndef XHEAP_CELLS_CELL_BELOW_H
#define XHEAP_CELLS_CELL_BELOW_H

#include "query/frame_names.h"

/** Return, by site, whether its outermost frames are those of `frames`: `image!full name`, outermost first, separated
    by line feeds. nodes: by site, its node. NULL: none is so. The caller frees the array. */
bool *cell_below_find(const struct heap_table *table, const struct heap_names *names, const uint32_t *nodes,
		      const char *frames);

#endif
