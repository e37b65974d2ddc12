/* SPDX-License-Identifier: MIT */
/** The heap of a block, and its usable size. A heap's key is its handle, with its kind and name in the bits above any
    address (struct heap_place). A thread remembers the last two heaps; all others are in one table of the process. */
#ifndef XHEAP_RECORDER_HEAP_ROWS_H
#define XHEAP_RECORDER_HEAP_ROWS_H

#include "recorder/call.h"

#define HEAP_HANDLE_BITS ((1ull << RECORDER_HEAP_KEY_NAME) - 1)
#define HEAP_CURRENT (1ull << RECORDER_HEAP_KEY_CURRENT)
_Static_assert(REGION_NAME_MAX <= 1 << (RECORDER_HEAP_KEY_CURRENT - RECORDER_HEAP_KEY_NAME), "a name fits into a key");

/** Words of glibc's malloc: flags of a chunk, sizes in bytes. */
enum {
	CHUNK_MMAPPED = 2,
	CHUNK_NON_MAIN = 4,
	CHUNK_HEAD = 16,
	PAGE = 4096,
	ARENA_ALIGNMENT = 64 << 20,
	HEAP_KEY_KIND = RECORDER_HEAP_KEY_KIND
};

/** Find or add the key in the table, with a row. Return NULL if no row is free. Two threads that meet a heap first at
    the same moment may add it twice. */
struct heap_place *heap_place_find(struct thread *thread, const struct hook_context *context, uint64_t key);

/** Return the row of the key, or REGION_HEAP_NONE. */
uint32_t heap_lookup(struct thread *thread, const struct hook_context *context, uint64_t key);

/** Return the row of a heap other than the thread's last one, and remember the heap as the last one. */
uint16_t heap_of_slowly(struct thread *thread, const struct hook_context *context, uint64_t key);

/** Return the hash of a key. */
static inline uint32_t heap_hash(uint64_t key)
{
	return hash_bits(key, 32);
}

/** Return the row of a heap, fast for the thread's last one. */
static inline uint16_t heap_of_key(struct thread *thread, const struct hook_context *context, uint64_t key)
{
	return LIKELY(thread->heap_handle[0] == key) ? (uint16_t)thread->heap_id[0]
						     : heap_of_slowly(thread, context, key);
}

/* Return the key of the heap of a block that glibc mapped alone, or that lies in an arena other than the main one. */
static inline uint64_t odd_heap_key(const struct hook_context *context, uint64_t address, uint64_t word)
{
	if (word & CHUNK_MMAPPED)
		return context->allocator_base | (uint64_t)HEAP_GLIBC_MMAP << HEAP_KEY_KIND;
	uint64_t arena = context->chunk == CHUNK_GLIBC ? *(const uint64_t *)(address & ~(uint64_t)(ARENA_ALIGNMENT - 1))
						       : context->allocator_base;
	return arena | (uint64_t)HEAP_GLIBC_ARENA << HEAP_KEY_KIND;
}

/** Return the row of a block's heap. */
static inline uint16_t heap_of(struct thread *thread, const struct hook_context *context, uint64_t address)
{
	uint64_t key = context->heap_key,
		 word = LIKELY(context->chunk != CHUNK_NONE) ? *(const uint64_t *)(address - 8) : 0;
	if (UNLIKELY(word & (CHUNK_MMAPPED | CHUNK_NON_MAIN)))
		key = odd_heap_key(context, address, word);
	return heap_of_key(thread, context, key);
}

/* Return a block's usable size by glibc's word before it. A block that is mapped alone ends with its mapping; since
   2.43 it ends a chunk's head before that. */
static inline uint64_t usable_of(uint64_t address, uint64_t word)
{
	uint64_t bytes = word & ~7ull;
	return bytes - (LIKELY(!(word & CHUNK_MMAPPED)) || (address - CHUNK_HEAD + bytes) % PAGE ? 8 : CHUNK_HEAD);
}

/* Return a block's usable size; 0: the block is not glibc's. */
static inline uint64_t measure(const struct hook_context *context, uint64_t address)
{
	return context->chunk != CHUNK_NONE ? usable_of(address, *(const uint64_t *)(address - 8)) : 0;
}

/* Ask the allocator for the usable size of its block. 0: unknown, as before main, when an allocator may still be
   setting itself up. */
static inline uint64_t ask_usable(const struct hook_context *context, uint64_t address)
{
	if (!context->usable_size || !LOAD(&context->recorder->mappings.start.has_begun))
		return 0;
	return ((heap_call *)context->usable_size)(address, 0, 0, 0);
}

#endif
