/* SPDX-License-Identifier: MIT */
/** Unconfirmed blocks: the second word of each is a cache's key, so it is either cached, or in use after it was
    cached. */
#ifndef XHEAP_HEAPWALK_UNCONFIRMED_H
#define XHEAP_HEAPWALK_UNCONFIRMED_H

#include "heapwalk/reading.h"

/** The reason to give where blocks stay unconfirmed. */
#define UNCONFIRMED_LEFT "blocks that may be free in a cache are left out"

/** A block and its first words when it was read. */
struct unconfirmed_block {
	struct heapwalk_block block;
	uint64_t words[3];
};
/** A list of such blocks, by address; each function below may shorten it. */
struct unconfirmed {
	struct unconfirmed_block *items;
	size_t count;
};

/** Move the blocks that seem to be cached out of the results. */
void unconfirmed_take(struct heap_reading *reading, struct unconfirmed *unconfirmed);

/** Watch the blocks for a while. Drop those that lie in a list of free chunks, or change. */
void unconfirmed_watch(struct heap_reading *reading, struct unconfirmed *unconfirmed);

/** Drop the blocks whose first words have changed. */
void unconfirmed_drop_changed(const struct heap_reading *reading, struct unconfirmed *unconfirmed);

/** Drop the blocks that another walk has not found, whose blocks are in the order of addresses. */
void unconfirmed_confirm(struct unconfirmed *unconfirmed, const struct heapwalk *other);

/** Move the remaining blocks back to the results, and free the list. */
void unconfirmed_return(struct unconfirmed *unconfirmed, struct heapwalk *walk);

#endif
