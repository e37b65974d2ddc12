/* SPDX-License-Identifier: MIT */
/** Chains of chunks, the way in which glibc's arenas keep their blocks. */
#ifndef XHEAP_HEAPWALK_CHUNK_CHAINS_H
#define XHEAP_HEAPWALK_CHUNK_CHAINS_H

#include "heapwalk/reading.h"

/** A chain of chunks: the main arena's, or that of one heap of another arena. */
struct chunk_chain {
	uint64_t arena, base; /**< base: of the heap; 0: of the main arena */
	uint64_t start, end;  /**< of the chunks that are wanted */
	uint32_t heap;        /**< number in the walk's heaps */
};

/** Add the blocks of a chain. Return false if it could not be followed to its end; then the added blocks must be
    dropped. */
bool chunk_chain_walk(struct heap_reading *reading, const struct chunk_chain *chain);

#endif
