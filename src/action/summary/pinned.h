/* SPDX-License-Identifier: MIT */
/** Pages that few live blocks keep in memory. */
#ifndef XHEAP_ACTION_PINNED_H
#define XHEAP_ACTION_PINNED_H

#include <stdint.h>

struct summary;

/** Pages of a process that live blocks cover by less than a quarter, at a moment; with an account, at its time. */
struct pinned {
	int64_t at_ns;
	uint64_t page_bytes;              /**< of these pages; 0: there are none, or they were not looked for */
	uint64_t live_bytes, block_count; /**< on them */
	uint32_t node;                    /**< the stack of the blocks that have most of these pages; 0: not known */
	uint64_t node_page_bytes;         /**< the pages of which they have the most bytes */
};

/** Find the pages of the process with the largest resident memory, at the last moment when nearly as much was
    resident. The summary has its survey. */
struct pinned pinned_find(const struct summary *summary);

#endif
