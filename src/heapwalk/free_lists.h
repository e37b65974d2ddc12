/* SPDX-License-Identifier: MIT */
/** glibc's lists of free chunks that the chunks themselves do not show: fast bins and threads' caches. */
#ifndef XHEAP_HEAPWALK_FREE_LISTS_H
#define XHEAP_HEAPWALK_FREE_LISTS_H

#include "heapwalk/reading.h"

/** The bins of a cache that are wanted. */
struct cache_bins {
	bool is_wanted[GLIBC_BINS_MAX];
};

/** List the chunks in the fast bins of an arena. Return false if the lists make no sense. */
bool fast_bins_list(struct heap_reading *reading, uint64_t arena);

/** Add the chunks in these bins of one cache to `cached`. Return false if the cache changes too fast to be read. */
bool cache_list(struct heap_reading *reading, uint64_t cache, const struct cache_bins *bins, struct map *cached);

#endif
