/* SPDX-License-Identifier: MIT */
/**
 * Freed blocks that glibc keeps for the thread that freed them. A cache takes 7 chunks of each size, and the trace does
 * not say which. A thread that gets a block of a size whose place it has not freed since then had none in its cache: of
 * what it freed behind the last such time, and nothing has taken since, the first 7 are cached.
 */
#ifndef XHEAP_QUERY_CACHED_BLOCKS_H
#define XHEAP_QUERY_CACHED_BLOCKS_H

#include <stddef.h>

#include "base/map.h"
#include "table/allocation.h"

/** Blocks with more usable bytes are in no cache. */
enum { THREAD_CACHE_USABLE_MAX = 1032 };

/** A freed block that may be in a cache. */
struct freed_block {
	uint64_t address;
	int64_t end_ns;
	struct cache_bin *bin; /**< of the thread that freed it; NULL: it is in none */
	uint32_t usable, site, heap;
};

/** Begin it with thread_caches_begin(). */
struct thread_caches {
	int64_t at_ns; /**< the moment */
	bool is_full;  /**< there are too many freed blocks: nothing is known */
	struct cache_bin **bins;
	uint32_t thread_count;
	struct map freed_at; /**< by address: place of the freed block */
	struct freed_block *freed;
	size_t count, capacity;
};

/** Begin to look for what is in the caches of so many threads of a trace at a time. */
void thread_caches_begin(struct thread_caches *caches, uint32_t thread_count, int64_t at_ns);

/** Note an allocation that may be, or have been, in a cache. They come in the order of their beginnings. */
void thread_caches_note(struct thread_caches *caches, const struct heap_allocation *row,
			const struct heap_details *details);

/** Call visit for each block in a cache. Return false, without a call, if nothing is known. */
bool thread_caches_each(struct thread_caches *caches, void (*visit)(void *cookie, const struct freed_block *freed),
			void *cookie);

/** Free what was noted. */
void thread_caches_fini(struct thread_caches *caches);

#endif
