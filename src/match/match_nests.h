/* SPDX-License-Identifier: MIT */
/** Nesting: blocks of annotated heaps, and their containers. */
#ifndef XHEAP_MATCH_MATCH_NESTS_H
#define XHEAP_MATCH_MATCH_NESTS_H

#include <stdint.h>

struct matching;
struct nest_span;
struct point;

/** Return the allocation around the block that begins here, or HEAP_NONE; *enclosing is its span if it belongs to an
    annotated heap, else NULL. */
uint32_t matching_container(struct matching *matching, const struct point *point, struct nest_span **enclosing);

/** Note the container of the new allocation, and the allocation as a container of later ones. */
void matching_nest_note(struct matching *matching, const struct point *point, uint32_t id, uint32_t container,
			const struct nest_span *enclosing);

/** End everything that lay in the bytes of the block at the point's address, which has ended. */
void matching_nested_end(struct matching *matching, const struct point *point, uint64_t bytes);

#endif
