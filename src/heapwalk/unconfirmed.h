/* SPDX-License-Identifier: MIT */
/** Blocks whose second word is a cache's key: each is either cached, or in use after it was cached. */
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
struct unconfirmed {
	struct unconfirmed_block *items;
	size_t count;
};

/** Move the blocks that seem to be cached out of the results. */
void unconfirmed_take(struct heap_reading *reading, struct unconfirmed *unconfirmed);

/** Watch them for a while, and drop those that lie in a list of free chunks, or change. */
void unconfirmed_watch(struct heap_reading *reading, struct unconfirmed *unconfirmed);

/** Drop those that have changed. */
void unconfirmed_drop_changed(const struct heap_reading *reading, struct unconfirmed *unconfirmed);

/** Drop those that another walk has not found. */
void unconfirmed_confirm(struct unconfirmed *unconfirmed, const struct heapwalk *other);

/** Move those that are left back to the results. */
void unconfirmed_return(struct unconfirmed *unconfirmed, struct heapwalk *walk);

#endif
