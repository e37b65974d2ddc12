/* SPDX-License-Identifier: MIT */
/**
 * The begins and ends of blocks in the order of time, for formats of single blocks. Only ends of live blocks are kept,
 * in a radix heap: times never go back, so an element is moved at most once for each bit of a time.
 */
#ifndef XHEAP_EXPORT_BLOCK_TIMES_H
#define XHEAP_EXPORT_BLOCK_TIMES_H

#include "export/export_tree.h"

/** A block of the report's window. */
struct export_block {
	int64_t birth_ns, end_ns;
	uint64_t size_bytes, address;
	uint32_t node;      /**< of the tree: where it was allocated */
	uint32_t end_node;  /**< with details: where it was freed; `node` if that is unknown */
	uint32_t thread;    /**< that allocated it, or, at its end, that freed it; HEAP_NONE: unknown */
	bool is_given_back; /**< it ends within the window; false: it is outstanding */
};

/** What becomes of events. */
struct export_block_visit {
	/** Return a number of the visit's, which end() gets. */
	uint32_t (*begin)(void *context, const struct export_block *block);
	void (*end)(void *context, const struct export_block *block, uint32_t number);
	void *context;
	bool wants_details; /**< addresses, and stacks and threads that freed */
};

/** Read all that the visit of the report's blocks will read: a damaged index shows before anything is written. */
void export_blocks_check(const struct report *report);

/** Go through the window's blocks, unless `out` has an error. If the table proves damaged, so that blocks are missing,
    `out` has one. */
void export_blocks_visit(struct export_tree *tree, const struct export_block_visit *visit, struct sink *out);

#endif
