/* SPDX-License-Identifier: MIT */
/** Where glibc's malloc keeps what it knows, read from a process that runs; the versions whose layout we know. */
#ifndef XHEAP_INJECT_GLIBC_H
#define XHEAP_INJECT_GLIBC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

enum { GLIBC_BIN_COUNT = 64, GLIBC_FAST_COUNT = 10, GLIBC_ARENA_ALIGNMENT = 64 << 20, GLIBC_CHUNK_MIN = 32, GLIBC_FENCE = 16,
       GLIBC_HEAP_MOST = 48 /* bytes before the arena in its first heap */ };

/** Bits of a chunk's size word. */
enum { GLIBC_BEFORE_IN_USE = 1, GLIBC_MAPPED = 2, GLIBC_NON_MAIN = 4, GLIBC_BITS = 7 };

/** The first words of a chunk. */
struct glibc_chunk { uint64_t size_before, word, user[2]; };

/** What differs between versions. */
struct glibc_layout {
	unsigned first, last;         /**< 2.first to 2.last */
	uint32_t mapped_count_before; /**< bytes from the count of mapped chunks to their bytes */
	uint32_t heap_bytes;          /**< of the head of a heap of an arena other than the main one */
	bool is_mangled;              /**< pointers of its lists are */
	bool has_random_key;          /**< the mark of a cached chunk; else it is the cache's address */
};

/** An arena up to its top chunk. */
struct glibc_arena {
	int32_t mutex, flags, has_fast, padding;
	uint64_t fast[GLIBC_FAST_COUNT];
	uint64_t top;
};
_Static_assert(sizeof(struct glibc_arena) == 104, "glibc's layout");

/** Head of a heap of an arena. */
struct glibc_heap { uint64_t arena, before, size; };

/** A thread's cache. */
struct glibc_cache {
	uint16_t count[GLIBC_BIN_COUNT];
	uint64_t first[GLIBC_BIN_COUNT]; /**< the blocks, not the chunks */
};
_Static_assert(sizeof(struct glibc_cache) == 640, "glibc's layout");
enum { GLIBC_CACHE_CHUNK = sizeof(struct glibc_cache) + 16 };

struct glibc {
	const struct glibc_layout *layout;
	uint64_t main_arena;          /**< 0: not found */
	bool is_unused;               /**< malloc was never called */
	uint64_t main_start;          /**< its first chunk; 0: not known, or it has none */
	uint64_t mapped;              /**< address of the bytes in mapped chunks; 0: not known */
};

/** A piece of a process's memory, and where it goes. */
struct glibc_piece { uint64_t address; void *data; size_t size; };

/** Read all pieces, in this order; false when one cannot be read whole. */
bool glibc_read_pieces(pid_t pid, const struct glibc_piece *pieces, size_t count);
bool glibc_read(pid_t pid, uint64_t address, void *data, size_t size);

/** Look into the image of pid that lies at [base, end). 0, or a negative errno with the reason why its heaps cannot be known. */
int glibc_find(struct glibc *glibc, pid_t pid, uint64_t base, uint64_t end, struct diag *diag);

/** The arena behind this one in the ring of all; 0: it cannot be read. */
uint64_t glibc_next_arena(pid_t pid, uint64_t arena);

#endif
