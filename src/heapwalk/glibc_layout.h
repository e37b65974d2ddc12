/* SPDX-License-Identifier: MIT */
/** The data structures of glibc's malloc, read from a running process, for the versions with a known layout. */
#ifndef XHEAP_HEAPWALK_GLIBC_LAYOUT_H
#define XHEAP_HEAPWALK_GLIBC_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

enum {
	GLIBC_BINS_MAX = 76,
	GLIBC_ARENA_ALIGNMENT = 64 << 20,
	GLIBC_CHUNK_MIN = 32,
	GLIBC_CHUNK_HEAD = 16,
	GLIBC_FENCE = 16,
	GLIBC_HEAP_MOST = 48 /* bytes before the arena in its first heap */
};

/** Bits of a chunk's size word. */
enum { GLIBC_BEFORE_IN_USE = 1, GLIBC_MAPPED = 2, GLIBC_NON_MAIN = 4, GLIBC_BITS = 7 };

/** The first words of a chunk. */
struct glibc_chunk {
	uint64_t size_before, word, user[2];
};

/** The differences between versions. */
struct glibc_layout {
	unsigned first, last;         /**< 2.first to 2.last */
	uint32_t mapped_count_before; /**< bytes from the count of mapped chunks to their bytes */
	uint32_t heap_bytes;          /**< of the head of a heap of an arena other than the main one */
	/** behind a chunk that is mapped alone; fewer bytes than a head there belong to its block */
	uint32_t mapped_tail_bytes;
	uint32_t fast_count;  /**< of an arena's fast bins, which lie before the word that holds its top */
	uint32_t bin_count;   /**< of a cache */
	uint64_t cached_most; /**< the largest chunk that any setting lets be cached */
	bool is_mangled;      /**< pointers of its lists are mangled */
	bool has_random_key;  /**< the mark of a cached chunk is a random key; otherwise it is the cache's address */
	/** a cache holds, for each bin, how many more chunks it takes; otherwise how many it has */
	bool counts_room;
	bool has_no_null_cache; /**< a thread without a cache points to one of the library's own, all zero */
};

/** An arena's first words, at least up to the one that holds its top chunk; glibc_top() and glibc_fast() know the
    place. */
struct glibc_arena {
	int32_t mutex, flags;
	uint64_t words[12];
};
_Static_assert(sizeof(struct glibc_arena) == 104, "glibc's layout");

/** Head of a heap of an arena. */
struct glibc_heap {
	uint64_t arena, before, size;
};

/** A thread's cache. The layout's bin_count of its bins exist; their numbers lie before their lists. */
struct glibc_cache {
	uint16_t number[GLIBC_BINS_MAX];
	uint64_t first[GLIBC_BINS_MAX]; /**< the blocks, not the chunks */
};

/** The malloc of one process. */
struct glibc {
	const struct glibc_layout *layout;
	uint64_t main_arena;   /**< 0: not found */
	bool is_unused;        /**< malloc was never called */
	uint64_t main_start;   /**< address of its first chunk; 0: it has none */
	uint64_t mapped;       /**< address of the count of bytes in mapped chunks; 0: unknown */
	uint64_t cached_bytes; /**< smaller chunks may be cached */
	uint64_t cached_count; /**< the most chunks of a bin */
};

/** A piece of a process's memory, and the buffer for it. */
struct glibc_piece {
	uint64_t address;
	void *data;
	size_t size;
};

/** Read all pieces in this order. Return false unless each is read whole. */
bool glibc_read_pieces(pid_t pid, const struct glibc_piece *pieces, size_t count);
/** Read one piece. Return false unless it is read whole. */
bool glibc_read(pid_t pid, uint64_t address, void *data, size_t size);

/** Return the address of the chunk at the end of an arena; of its bins if it has no chunk yet. */
uint64_t glibc_top(const struct glibc *glibc, const struct glibc_arena *arena);

/** Return its fast bins; the layout's fast_count of them exist. */
const uint64_t *glibc_fast(const struct glibc_arena *arena);

/** Return the size of an arena's structure in bytes. */
uint64_t glibc_arena_bytes(const struct glibc *glibc);

/** Read a cache. Return false unless it is read whole. */
bool glibc_read_cache(const struct glibc *glibc, pid_t pid, uint64_t address, struct glibc_cache *cache);

/** Return the address of the pointer to a bin's first block in a cache. */
uint64_t glibc_cache_list(const struct glibc *glibc, uint64_t cache, uint32_t bin);

/** Return the size of a cache in bytes. */
uint64_t glibc_cache_bytes(const struct glibc *glibc);

/** Examine the image of pid at [base, end). Return 0, or a negative errno with the reason why its heaps cannot be
    read. */
int glibc_find(struct glibc *glibc, pid_t pid, uint64_t base, uint64_t end, struct diag *diag);

/** Return the address of the next arena in the ring of all arenas; 0: it cannot be read. */
uint64_t glibc_next_arena(const struct glibc *glibc, pid_t pid, uint64_t arena);

#endif
