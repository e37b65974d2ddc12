/* SPDX-License-Identifier: MIT */
#include "query/extents.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/order.h"

enum { EXTENTS_FIRST = 1 << 14, RECENT_BITS = 10 };

COMPARE_BY_TWO(extent_compare, struct heap_extent, set, first)

/* Sort them and join those that overlap or touch. */
static void extents_join(struct heap_extents *extents)
{
	size_t kept = 0;
	if (!extents->count || extents->is_joined)
		return;
	extents->is_joined = true;
	qsort(extents->items, extents->count, sizeof(*extents->items), extent_compare);
	for (size_t i = 1; i < extents->count; i++) {
		struct heap_extent *last = &extents->items[kept], *next = &extents->items[i];
		if (next->set != last->set || next->first > last->last + 1)
			extents->items[++kept] = *next;
		else if (next->last > last->last)
			last->last = next->last;
	}
	extents->count = kept + 1;
}

/* Where an extent is, if it came not long ago. */
static struct heap_extent *recent_place(struct heap_extents *extents, const struct heap_extent *extent)
{
	if (!extents->recent) {
		extents->recent = memory_resize(NULL, 1 << RECENT_BITS, sizeof(*extents->recent));
		for (int i = 0; i < 1 << RECENT_BITS; i++)
			extents->recent[i] = (struct heap_extent){.first = 1, .last = 0};
	}
	return &extents->recent[hash_bits(extent->first + extent->set, RECENT_BITS)];
}

void heap_extents_add(struct heap_extents *extents, uint32_t set, const struct heap_allocation *allocation,
		      const struct heap_details *details)
{
	uint64_t usable = allocation->size_bytes + heap_slack(details),
		 last = details->address + (usable ? usable - 1 : 0);
	struct heap_extent extent = {details->address / HEAP_PAGE_BYTES,
				     (last < details->address ? UINT64_MAX : last) / HEAP_PAGE_BYTES, set};
	struct heap_extent *before = recent_place(extents, &extent);
	/* Many blocks lie where others did just before. */
	if (before->set == set && extent.first >= before->first && extent.last <= before->last)
		return;
	*before = extent;
	if (extents->count == extents->capacity) {
		extents_join(extents);
		if (extents->count >= extents->capacity / 2) {
			extents->capacity = extents->capacity ? extents->capacity * 2 : EXTENTS_FIRST;
			extents->items = memory_resize(extents->items, extents->capacity, sizeof(*extents->items));
		}
	}
	extents->items[extents->count++] = extent;
	extents->is_joined = false;
	assert(extents->count <= extents->capacity);
}

void heap_extents_merge(struct heap_extents *to, const struct heap_extents *from)
{
	if (!from->count)
		return;
	to->items = memory_resize(to->items, to->count + from->count, sizeof(*to->items));
	memcpy(to->items + to->count, from->items, from->count * sizeof(*to->items));
	to->count = to->capacity = to->count + from->count;
	to->is_joined = false;
	extents_join(to);
}

void heap_extents_sum(struct heap_extents *extents, uint64_t *bytes, uint32_t sets)
{
	extents_join(extents);
	for (size_t i = 0; i < extents->count; i++)
		if (extents->items[i].set < sets)
			bytes[extents->items[i].set] +=
				(extents->items[i].last - extents->items[i].first + 1) * HEAP_PAGE_BYTES;
}

/* Return the first extent of the set that ends behind the page, or where it would be. */
static size_t extent_from(const struct heap_extents *extents, uint32_t set, uint64_t page)
{
	const struct heap_extent *items = extents->items;
	size_t place;
	BISECT(place, extents->count, i, items[i].set < set || (items[i].set == set && items[i].last < page));
	return place;
}

uint64_t heap_extents_within(struct heap_extents *extents, uint32_t set, uint64_t low, uint64_t high)
{
	uint64_t first = low / HEAP_PAGE_BYTES, end = high / HEAP_PAGE_BYTES, pages = 0;
	extents_join(extents);
	for (size_t i = extent_from(extents, set, first); i < extents->count; i++) {
		const struct heap_extent *extent = &extents->items[i];
		if (extent->set != set || extent->first >= end)
			break;
		uint64_t from = extent->first > first ? extent->first : first,
			 to = extent->last + 1 < end ? extent->last + 1 : end;
		pages += to - from;
	}
	return pages * HEAP_PAGE_BYTES;
}

void heap_extents_fini(struct heap_extents *extents)
{
	free(extents->items);
	free(extents->recent);
	*extents = (struct heap_extents){0};
}
