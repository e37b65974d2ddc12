/* SPDX-License-Identifier: MIT */
/** The peak of the whole run, which is a bound of every answer. */
#ifndef XHEAP_CELLS_CELL_PEAK_H
#define XHEAP_CELLS_CELL_PEAK_H

#include "query/filter.h"

/** Return the peak of what passes, of all stacks. Of sums in place of blocks nobody knows what was live then: no
    bytes. */
struct heap_peak cell_peak_find(const struct heap_table *table, const struct heap_filter *filter);

#endif
