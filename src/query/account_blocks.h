/* SPDX-License-Identifier: MIT */
/** The blocks in the memory of a process at a moment, and where glibc's arenas lie: what an account puts on pages. */
#ifndef XHEAP_QUERY_ACCOUNT_BLOCKS_H
#define XHEAP_QUERY_ACCOUNT_BLOCKS_H

#include "query/account.h"
#include "table/table.h"

/** A block in memory, with the allocator's head. */
struct account_block {
	uint64_t low, high;    /**< all of it; no two overlap, and they are in order */
	uint64_t address, end; /**< what was asked for */
	uint32_t site, heap;   /**< heap: of the trace; HEAP_NONE */
	bool is_cached;        /**< it was freed, and lies in the cache of a thread */
	bool is_glibc;         /**< its chunk ends 8 bytes before `high` */
};

/** Memory of an arena of glibc: the main one, or one of the 64 MiB of another. */
struct account_area {
	uint64_t low, high;
	uint64_t first; /**< where chunks begin */
	uint32_t heap;
	bool is_main;
	bool is_last;    /**< chunks are added at its end */
	int64_t used_ns; /**< birth of its newest block */
};

/** Zero it to begin. */
struct account_blocks {
	struct account_block *blocks;
	size_t count, capacity;
	struct account_area *areas; /**< by address */
	size_t area_count, area_capacity;
	uint8_t *heap_kinds; /**< by heap of the trace: enum glibc_heap */
};

/** Find the blocks of the account's process at its time. Set what the account says of allocators, and the heaps of its
    mappings, which are there. */
void account_blocks_find(struct account_blocks *blocks, struct account *account, const struct heap_table *table);

/** Free them. */
void account_blocks_fini(struct account_blocks *blocks);

#endif
