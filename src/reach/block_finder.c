/* SPDX-License-Identifier: MIT */
#include "reach/block_finder.h"

#include <stdlib.h>

#include "base/bisect.h"
#include "base/memory.h"

enum { PAGE_SHIFT = 12, PAGES_PER_BLOCK = 32, PAGES_FREE = 1024 };
#define SPAN_GAP_BYTES (UINT64_C(1) << 24) /* between spans, at least */

static size_t page_of(const struct block_span *span, uint64_t address)
{
	return (size_t)((address >> PAGE_SHIFT) - (span->low >> PAGE_SHIFT));
}

/* Sizes may be anything: the pages of a span are limited by its number of blocks. */
static void pages_make(const struct block_finder *finder, struct block_span *span)
{
	const size_t pages = page_of(span, span->high - 1) + 1;
	if (pages / PAGES_PER_BLOCK > (size_t)span->count + PAGES_FREE)
		return;
	span->before = memory_resize(NULL, pages, sizeof(*span->before));
	uint32_t block = 0;
	for (size_t page = 0; page < pages; page++) {
		while (block < span->count && page_of(span, finder->addresses[span->first + block]) <= page)
			block++;
		span->before[page] = block;
	}
}

void block_finder_make(struct block_finder *finder, const uint64_t *addresses, const uint64_t *ends, uint32_t count)
{
	struct block_span *span = NULL;
	*finder = (struct block_finder){.addresses = addresses, .ends = ends};
	for (uint32_t i = 0; i < count; i++) {
		if (!span || addresses[i] > span->high + SPAN_GAP_BYTES) {
			memory_grow(finder->spans, finder->span_count, finder->span_capacity);
			span = &finder->spans[finder->span_count++];
			*span = (struct block_span){.low = addresses[i], .high = ends[i], .first = i};
		}
		span->high = ends[i] > span->high ? ends[i] : span->high;
		span->count++;
	}
	for (size_t i = 0; i < finder->span_count; i++)
		pages_make(finder, &finder->spans[i]);
}

uint32_t block_finder_find(const struct block_finder *finder, uint64_t address)
{
	size_t place;
	BISECT(place, finder->span_count, i, finder->spans[i].low <= address);
	if (!place || address >= finder->spans[place - 1].high)
		return BLOCK_NOWHERE;
	const struct block_span *span = &finder->spans[place - 1];
	uint32_t low = 0, high = span->count;
	if (span->before) {
		const size_t page = page_of(span, address);
		low = page ? span->before[page - 1] : 0;
		high = span->before[page];
	}
	const uint64_t *addresses = finder->addresses + span->first + low;
	BISECT(place, high - low, i, addresses[i] <= address);
	/* Without one on its page, the last block before that page may reach as far. */
	if (!(low + place))
		return BLOCK_NOWHERE;
	const uint32_t block = span->first + low + (uint32_t)place - 1;
	return address < finder->ends[block] ? block : BLOCK_NOWHERE;
}

void block_finder_fini(struct block_finder *finder)
{
	for (size_t i = 0; i < finder->span_count; i++)
		free(finder->spans[i].before);
	free(finder->spans);
	*finder = (struct block_finder){.addresses = NULL};
}
