/* SPDX-License-Identifier: MIT */
#include "query/cached_blocks.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/order.h"

enum {
	STEP = 16, /* of sizes */
	BINS = THREAD_CACHE_USABLE_MAX / STEP + 1,
	BIN_COUNT = 7,
	FREED_MAX = 1 << 20
};

/* The cache of a thread for a size. */
struct cache_bin {
	int64_t empty_ns; /* it was empty then */
	uint32_t count;   /* of blocks that are kept, while others are forgotten */
};

void thread_caches_begin(struct thread_caches *caches, uint32_t thread_count, int64_t at_ns)
{
	*caches = (struct thread_caches){.at_ns = at_ns, .thread_count = thread_count};
	caches->bins = memory_zeroed(thread_count + 1, sizeof(*caches->bins));
}

static struct cache_bin *bin_of(struct thread_caches *caches, uint32_t thread, uint32_t usable)
{
	struct cache_bin **bins = &caches->bins[thread];
	if (!*bins) {
		*bins = memory_zeroed(BINS, sizeof(**bins));
		for (uint32_t i = 0; i < BINS; i++)
			(*bins)[i].empty_ns = INT64_MIN;
	}
	return *bins + usable / STEP;
}

static bool may_be_cached(const struct freed_block *freed)
{
	return freed->bin && freed->end_ns > freed->bin->empty_ns;
}

COMPARE_BY(freed_compare, struct freed_block, end_ns)

/* Keep so many blocks of each bin, those that were freed first: others found no room in the cache, unless later rows
   take some of these. */
static void forget(struct thread_caches *caches, uint32_t most)
{
	size_t kept = 0;
	map_fini(&caches->freed_at);
	if (caches->count)
		qsort(caches->freed, caches->count, sizeof(*caches->freed), freed_compare);
	for (size_t i = 0; i < caches->count; i++)
		if (caches->freed[i].bin)
			caches->freed[i].bin->count = 0;
	for (size_t i = 0; i < caches->count; i++) {
		bool added;
		const struct freed_block freed = caches->freed[i];
		if (!may_be_cached(&freed) || freed.bin->count == most)
			continue;
		freed.bin->count++;
		*map_add(&caches->freed_at, freed.address, &added) = (uint32_t)kept;
		caches->freed[kept++] = freed;
	}
	caches->count = kept;
	caches->is_full = kept > FREED_MAX / 2;
}

static void freed_add(struct thread_caches *caches, const struct freed_block *freed)
{
	bool added;
	if (caches->count == FREED_MAX)
		forget(caches, 8 * BIN_COUNT);
	uint32_t *place = map_add(&caches->freed_at, freed->address, &added);
	if (added) {
		*place = (uint32_t)caches->count;
		memory_grow(caches->freed, caches->count, caches->capacity);
		caches->count++;
	}
	caches->freed[*place] = *freed;
}

void thread_caches_note(struct thread_caches *caches, const struct heap_allocation *row,
			const struct heap_details *details)
{
	uint32_t usable = (uint32_t)row->size_bytes + heap_slack(details), *place;
	if (caches->is_full)
		return;
	struct cache_bin *own = bin_of(caches, row->thread, usable);
	struct freed_block *before =
		(place = map_find(&caches->freed_at, details->address)) ? &caches->freed[*place] : NULL;
	bool is_in_place = row->flags & HEAP_REALLOC && !(row->flags & HEAP_MOVED),
	     was_cached = before && before->bin == own && may_be_cached(before);
	if (!is_in_place && !was_cached && row->birth_ns > own->empty_ns)
		own->empty_ns = row->birth_ns;
	if (before)
		before->bin = NULL;
	bool is_freed = (row->end == HEAP_END_FREE || row->end == HEAP_END_REALLOC) && row->end_ns <= caches->at_ns &&
			details->end_thread < caches->thread_count;
	if (is_freed)
		freed_add(caches, &(struct freed_block){.address = details->address,
							.end_ns = row->end_ns,
							.bin = bin_of(caches, details->end_thread, usable),
							.usable = usable,
							.site = row->site,
							.heap = row->heap});
}

bool thread_caches_each(struct thread_caches *caches, void (*visit)(void *cookie, const struct freed_block *freed),
			void *cookie)
{
	if (caches->is_full)
		return false;
	forget(caches, BIN_COUNT);
	for (size_t i = 0; i < caches->count; i++)
		visit(cookie, &caches->freed[i]);
	return true;
}

void thread_caches_fini(struct thread_caches *caches)
{
	for (uint32_t i = 0; i < caches->thread_count; i++)
		free(caches->bins[i]);
	free(caches->bins);
	free(caches->freed);
	map_fini(&caches->freed_at);
}
