/* SPDX-License-Identifier: MIT */
#include "heap/extents.h"

#include <stdlib.h>

void heap_extent_make(struct heap_extent *extent, const struct heap_table *table, uint32_t allocation)
{
	const struct heap_details *details = &table->details[allocation];
	uint64_t usable = table->allocations[allocation].size_bytes + details->slack_bytes;
	extent->first = details->address / HEAP_PAGE_BYTES;
	extent->last = (details->address + (usable ? usable - 1 : 0)) / HEAP_PAGE_BYTES;
}

static int extent_compare(const void *a, const void *b)
{
	const struct heap_extent *left = a, *right = b;
	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	return (left->first > right->first) - (left->first < right->first);
}

void heap_extents_sort(struct heap_extent *extents, size_t count)
{
	if (count)
		qsort(extents, count, sizeof(*extents), extent_compare);
}

uint64_t heap_extents_pages(const struct heap_extent *extents, size_t count, bool only_marked)
{
	uint64_t pages = 0, next = 0;
	for (size_t i = 0; i < count; i++) {
		if (only_marked && !extents[i].is_marked)
			continue;
		uint64_t first = extents[i].first > next ? extents[i].first : next;
		if (extents[i].last + 1 > first) {
			pages += extents[i].last + 1 - first;
			next = extents[i].last + 1;
		}
	}
	return pages;
}
