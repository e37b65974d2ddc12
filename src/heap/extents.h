/* SPDX-License-Identifier: MIT */
/** The pages that blocks lie in. */
#ifndef XHEAP_HEAP_EXTENTS_H
#define XHEAP_HEAP_EXTENTS_H

#include "heap/table.h"

enum { HEAP_PAGE_BYTES = 4096 };

/** The pages of one block. */
struct heap_extent {
	uint32_t group;              /**< the caller's */
	bool is_marked;              /**< the caller's */
	uint64_t first, last;        /**< numbers of pages */
};

/** The pages of an allocation; group and mark stay as they are. */
void heap_extent_make(struct heap_extent *extent, const struct heap_table *table, uint32_t allocation);

/** Sort by group, then page. */
void heap_extents_sort(struct heap_extent *extents, size_t count);

/** Pages in any of these extents, which are sorted and of one group; in those that are marked, if only_marked. */
uint64_t heap_extents_pages(const struct heap_extent *extents, size_t count, bool only_marked);

#endif
