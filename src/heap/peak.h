/* SPDX-License-Identifier: MIT */
/** When most was live. */
#ifndef XHEAP_HEAP_PEAK_H
#define XHEAP_HEAP_PEAK_H

#include "heap/filter.h"

/**
 * The peak of each of `parts` equal parts of the range, of the allocations that pass the filter, which was prepared with the table.
 * A block is live from its beginning up to, not at, its end; all that happens at one time is taken together.
 */
void heap_peaks(struct heap_peak *peaks, uint32_t parts, const struct heap_table *table, const struct heap_filter *filter, struct heap_range range);

#endif
