/* SPDX-License-Identifier: MIT */
/** Rows on their way into a table's groups, in the order of their numbers. The stream's thread pool packs whole event
    blocks. */
#ifndef XHEAP_MATCH_PACKING_H
#define XHEAP_MATCH_PACKING_H

#include "match/block_match.h"

struct packing;

/** Make an empty one for these groups; NULL: rows are not kept. */
struct packing *packing_new(struct heap_groups *groups);

/** Use the stream's thread pool from now on; NULL: none. Tasks of the former stream are finished first. */
void packing_follow(struct packing *packing, struct heap_stream *stream);

/** Add rows; they are copied or packed at once. */
void packing_add(struct packing *packing, const struct heap_allocation *rows, const struct heap_details *details,
		 uint32_t count);

/** Add the rows of an event block, whose site_ids and first_point are set. The block returns to the stream later. */
void packing_add_match(struct packing *packing, struct block_match *match);

/** Bring everything that was added into the groups, the last of which may be short. */
void packing_finish(struct packing *packing);
/** Free it. */
void packing_free(struct packing *packing);

#endif
