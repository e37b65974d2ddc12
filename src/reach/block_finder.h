/* SPDX-License-Identifier: MIT */
/** From an address to the block that it lies in, for each word of a memory: most words are no addresses of blocks, and
    have to be refused fast. */
#ifndef XHEAP_REACH_BLOCK_FINDER_H
#define XHEAP_REACH_BLOCK_FINDER_H

#include <stddef.h>
#include <stdint.h>

enum { BLOCK_NOWHERE = UINT32_MAX };

/** Blocks with little room between them. */
struct block_span {
	uint64_t low, high; /**< of all its blocks */
	uint32_t first, count;
	/** by page from `low` on: the number of blocks that begin before the end of that page; NULL: the span is
	    sparse, and all of its blocks are searched */
	uint32_t *before;
};

/** Zero it to begin. */
struct block_finder {
	const uint64_t *addresses, *ends; /**< the caller's */
	struct block_span *spans;
	size_t span_count, span_capacity;
};

/** Make it of `count` blocks [addresses[i], ends[i]), in the order of addresses. The arrays stay the caller's. */
void block_finder_make(struct block_finder *finder, const uint64_t *addresses, const uint64_t *ends, uint32_t count);

/** Return the number of the block with the address in it, BLOCK_NOWHERE if there is none. Of blocks that overlap the
    one counts that begins last. */
uint32_t block_finder_find(const struct block_finder *finder, uint64_t address);

/** Free what it has of its own. */
void block_finder_fini(struct block_finder *finder);

#endif
