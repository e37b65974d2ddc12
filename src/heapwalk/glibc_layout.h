/* SPDX-License-Identifier: MIT */
/** Where glibc's malloc keeps what it knows, read from a process that runs; the versions whose layout we know. */
#ifndef XHEAP_HEAPWALK_GLIBC_LAYOUT_H
#define XHEAP_HEAPWALK_GLIBC_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

enum {
	GLIBC_BINS_MAX = 76,
	GLIBC_FAST_COUNT = 10,
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

/** What differs between versions. */
struct glibc_layout {
	unsigned first, last;         /**< 2.first to 2.last */
	uint32_t mapped_count_before; /**< bytes from the count of mapped chunks to their bytes */
	uint32_t heap_bytes;          /**< of the head of a heap of an arena other than the main one */
	/** behind a chunk that is mapped alone; what is less than a head there is its block's */
	uint32_t mapped_tail_bytes;
	uint32_t fast_count;    /**< of an arena's fast bins, which lie before the word that names its top */
	uint32_t bin_count;     /**< of a cache */
	uint64_t cached_most;   /**< no larger chunk can be made to be cached */
	bool is_mangled;        /**< pointers of its lists are */
	bool has_random_key;    /**< the mark of a cached chunk; else it is the cache's address */
	bool counts_room;       /**< a cache has for each bin how many more it takes; else how many it has */
	bool has_no_null_cache; /**< who has no cache has one of the library's own, which is all zero */
};

/** An arena's first words, up to the one that names its top chunk at least: glibc_top() and glibc_fast() know where
    that is. */
struct glibc_arena {
	int32_t mutex, flags;
	uint64_t words[12];
};
_Static_assert(sizeof(struct glibc_arena) == 104, "glibc's layout");

/** Head of a heap of an arena. */
struct glibc_heap {
	uint64_t arena, before, size;
};

/** A thread's cache, of whose bins there are the layout's bin_count: their numbers lie before their lists. */
struct glibc_cache {
	uint16_t number[GLIBC_BINS_MAX];
	uint64_t first[GLIBC_BINS_MAX]; /**< the blocks, not the chunks */
};

struct glibc {
	const struct glibc_layout *layout;
	uint64_t main_arena;   /**< 0: not found */
	bool is_unused;        /**< malloc was never called */
	uint64_t main_start;   /**< its first chunk; 0: it has none */
	uint64_t mapped;       /**< address of the bytes in mapped chunks; 0: not known */
	uint64_t cached_bytes; /**< smaller chunks may be cached */
	uint64_t cached_count; /**< so many of a bin */
};

/** A piece of a process's memory, and where it goes. */
struct glibc_piece {
	uint64_t address;
	void *data;
	size_t size;
};

/** Read all pieces, in this order; false when one cannot be read whole. */
bool glibc_read_pieces(pid_t pid, const struct glibc_piece *pieces, size_t count);
bool glibc_read(pid_t pid, uint64_t address, void *data, size_t size);

/** The chunk at the end of an arena; where its bins begin, if it has no chunk yet. */
uint64_t glibc_top(const struct glibc *glibc, const struct glibc_arena *arena);

/** Its fast bins, of which there are the layout's fast_count. */
const uint64_t *glibc_fast(const struct glibc_arena *arena);

/** What an arena's top is before it has a chunk. */
uint64_t glibc_no_top(const struct glibc *glibc, uint64_t arena);

/** Bytes of the structure of an arena. */
uint64_t glibc_arena_bytes(const struct glibc *glibc);

/** Read a cache; false when it cannot be read whole. */
bool glibc_read_cache(const struct glibc *glibc, pid_t pid, uint64_t address, struct glibc_cache *cache);

/** Where a cache names the first block of a bin. */
uint64_t glibc_cache_list(const struct glibc *glibc, uint64_t cache, uint32_t bin);

/** Bytes of a cache. */
uint64_t glibc_cache_bytes(const struct glibc *glibc);

/** Look into the image of pid that lies at [base, end). 0, or a negative errno with the reason why its heaps cannot be
    known. */
int glibc_find(struct glibc *glibc, pid_t pid, uint64_t base, uint64_t end, struct diag *diag);

/** The arena behind this one in the ring of all; 0: it cannot be read. */
uint64_t glibc_next_arena(const struct glibc *glibc, pid_t pid, uint64_t arena);

#endif
