/* SPDX-License-Identifier: MIT */
/** Rows on their way into a table's groups, in the order of their numbers. Whole event blocks are packed by the
    stream's pool of threads. */
#ifndef XHEAP_MATCH_PACKING_H
#define XHEAP_MATCH_PACKING_H

#include "match/block_match.h"

struct packing;

struct packing *packing_new(struct heap_groups *groups);

/** The stream whose pool packs from now on; NULL: none does, and nothing of the one before is needed any more. */
void packing_follow(struct packing *packing, struct heap_stream *stream);

/** Add rows, which may change then. */
void packing_add(struct packing *packing, const struct heap_allocation *rows, const struct heap_details *details,
		 uint32_t count);

/** Add those of an event block, whose site_ids are known; it is given back to the stream some time. */
void packing_add_within(struct packing *packing, struct block_match *local);

/** All that was added is in the groups, the last of which may be short. */
void packing_finish(struct packing *packing);
void packing_free(struct packing *packing);

#endif
