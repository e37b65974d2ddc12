/* SPDX-License-Identifier: MIT */
/** Blocks that forked processes have from their parents: copies, which the model keeps in no table. */
#ifndef XHEAP_DX_INHERITED_H
#define XHEAP_DX_INHERITED_H

#include "dx/core/value.h"

/** A copy of a block; its number in the table. */
struct dx_copy {
	uint64_t address, size_bytes;
	uint32_t number, heap; /**< heap: of the parent, or TRACE_NONE */
	bool is_annotated;     /**< a block of an annotated heap */
	bool is_gone;
};

/** Copies of one process, by address; then in the order of their numbers. Zero it to begin. */
struct dx_copies {
	struct dx_copy *items;
	uint32_t count;
	size_t capacity;
};

/** Set the copies that a process still has at a position: none if it was not forked, or does not run then. What a
    trace has not (gaps, aggregated events) may have ended some of them. */
void dx_copies_find(struct dx_query *query, struct dx_copies *copies, uint32_t process, struct dx_value position);

/** Free them. */
void dx_copies_fini(struct dx_copies *copies);

#endif
