/* SPDX-License-Identifier: MIT */
/** What the parts of a walk share: what is known of the process's malloc, and what is found. */
#ifndef XHEAP_INJECT_CHUNKS_H
#define XHEAP_INJECT_CHUNKS_H

#include "base/map.h"
#include "inject/glibc.h"
#include "inject/walk.h"

enum { CHUNKS_PAGE = 4096, CHUNKS_WINDOW_BYTES = 64 << 10, CHUNKS_READ_TRIES = 5000 };

/** Why nothing is known where threads' caches are not. */
#define CACHES_MISSING "the caches of its threads were not found"

/** Of blocks that may be cached. */
#define DOUBTS_LEFT "blocks that may be free in a cache are left out"

/** A walk under way. */
struct chunks {
	struct walk *walk;
	const struct region *region;
	struct glibc glibc;
	bool is_alone;                /* one thread, which takes no locks */
	struct map listed;            /* chunks in fast bins */
	struct map keys;              /* marks of cached blocks */
	struct map caches;            /* the caches themselves, which are blocks of nobody's */
	int64_t cache_offset;         /* where a thread names its own, from its pointer; 0: none does */
	uint64_t data;                /* where what the library writes begins: before it are constants */
	bool has_no_cache_seen;       /* no thread seems to have one */
	uint64_t until_ns;            /* later it is given up */
	uint8_t *first, *second;      /* a window, read twice */
	uint32_t *offsets;            /* of its chunks */
	uint32_t window_chunks;       /* so many */
};

/** Blocks whose second word is that of a cached one: that may be one that was cached, and is in use. */
struct doubt { struct walk_block block; uint64_t words[3]; };
struct doubts { struct doubt *items; size_t count; };

/** Of a cache. */
struct bins { bool is_wanted[GLIBC_BINS_MAX]; };

enum { WALK_DOUBTFUL = INT32_MIN /* in a block's heap: it seems to be cached */ };

/** A chain of chunks: the main arena's, or that of one heap of another. */
struct chain {
	uint64_t arena, base;         /* base: of the heap; 0: of the main arena */
	uint64_t start, end;          /* of the chunks that are wanted */
	uint32_t heap;                /* in the walk's heaps */
};

/** Add the blocks of a chain. False: it could not be followed to its end; what was added is not to be believed. */
bool chain_walk(struct chunks *state, const struct chain *chain);

/** Whether it has taken so long that it is given up. */
bool walk_is_late(const struct chunks *state);

/** Something was read: the reading does not stand still. */
void walk_has_advanced(struct chunks *state);

/** Whether a thread is in a heap call that it began before these ticks. */
bool walk_has_call(const struct region *region, uint64_t before_ticks);

/** Whether to try again, after a pause: not for ever, and not a process that is gone. */
bool walk_goes_on(const struct chunks *state);

/** Add to the results: why something is not known; a heap, whose number is returned, or UINT32_MAX; a block, false without memory. */
void walk_missing_add(struct walk *walk, const char *text);
uint32_t walk_heap_add(struct walk *walk, uint64_t handle, uint16_t kind);
bool walk_block_add(struct walk *walk, uint64_t address, uint64_t usable_bytes, uint32_t heap);

/** Take blocks back, down to so many. */
void walk_blocks_drop(struct walk *walk, size_t count);

/** Find the threads' caches and the mark of what lies in them. False: they are not where they should be. */
bool caches_find(struct chunks *state);

/** Whether a block whose second word this is lies in a cache. */
bool caches_have(const struct chunks *state, uint64_t key);

/** Take back the caches themselves, also those of threads that have come since: they are blocks of nobody's. */
void caches_drop(struct chunks *state);

/** Note the caches of threads that have come since. */
void caches_renew(struct chunks *state);

/** List the chunks in these bins of all caches that there are now. False: some change too fast. */
bool caches_list(struct chunks *state, const struct bins *bins, struct map *cached);

/** List those in one. False: they cannot be read while nothing changes. */
bool cached_read(struct chunks *state, uint64_t cache, const struct bins *bins, struct map *cached);

/** List the chunks in the fast bins of an arena. False: they make no sense. */
bool lists_read(struct chunks *state, uint64_t arena);

/** Of the blocks that were found, take out those that seem to be cached. */
void doubts_take(struct chunks *state, struct doubts *doubts);

/** Watch them for a while, and drop those that lie in a list of free chunks, or change. */
void doubts_watch(struct chunks *state, struct doubts *doubts);

/** Drop those that have changed. */
void doubts_look(const struct chunks *state, struct doubts *doubts);

/** Drop those that another walk has not found. */
void doubts_confirm(struct doubts *doubts, const struct walk *other);

/** Give back to the walk those that are left. */
void doubts_give_back(struct doubts *doubts, struct walk *walk);

/** Add the blocks that are mapped alone. Nobody has a list of them, but malloc knows how many there are: false, unless all are found. */
bool mapped_walk(struct chunks *state, uint32_t heap);

#endif
