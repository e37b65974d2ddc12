/* SPDX-License-Identifier: MIT */
/** How many pages blocks have lain in, each page counted once. Pages that overlap or touch are joined as they come, so
    the number of blocks does not matter. */
#ifndef XHEAP_QUERY_EXTENTS_H
#define XHEAP_QUERY_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "table/allocation.h"

enum { HEAP_PAGE_BYTES = 4096 };

/** Pages of a set, which is any number of the caller's. */
struct heap_extent {
	uint64_t first, last;
	uint32_t set;
};

/** Zero it to begin. */
struct heap_extents {
	struct heap_extent *items;
	size_t count, capacity;
	bool is_joined;             /**< nothing was added since they were joined */
	struct heap_extent *recent; /**< by a hash of the first page: what was added last */
};

/** Add the pages of a block to the set. */
void heap_extents_add(struct heap_extents *extents, uint32_t set, const struct heap_allocation *allocation,
		      const struct heap_details *details);

/** Add the pages of other extents. */
void heap_extents_merge(struct heap_extents *to, const struct heap_extents *from);

/** Add the bytes of all pages of each set to bytes[set]; leave out sets from `sets` on. */
void heap_extents_sum(struct heap_extents *extents, uint64_t *bytes, uint32_t sets);

/** Return the bytes of the set's pages between two addresses, both multiples of a page. Joins what was added before. */
uint64_t heap_extents_within(struct heap_extents *extents, uint32_t set, uint64_t low, uint64_t high);

/** Free the pages. */
void heap_extents_fini(struct heap_extents *extents);

#endif
