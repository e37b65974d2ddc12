/* SPDX-License-Identifier: MIT */
/** A map of overlapping address ranges, prepared once, that finds the one that counts at an address by halving. */
#ifndef XHEAP_SYMBOLS_SPANS_H
#define XHEAP_SYMBOLS_SPANS_H

#include <stddef.h>
#include <stdint.h>

#define SPAN_NONE UINT32_MAX

/** [low, high) has `value`, unless a span of a higher priority covers it; among equal priorities the lower value
    wins. */
struct span {
	uint64_t low, high;
	uint64_t priority;
	uint32_t value;
};

/** Collected spans. Zero it to begin. */
struct span_list {
	struct span *spans;
	size_t count, capacity;
};

struct span_piece {
	uint64_t low;   /**< the piece ends at the low of the next one */
	uint32_t value; /**< or SPAN_NONE */
};

/** Disjoint pieces in order. */
struct span_map {
	struct span_piece *pieces;
	size_t count, capacity;
};

/** Add a span; an empty one is ignored. */
void span_list_add(struct span_list *list, uint64_t low, uint64_t high, uint64_t priority, uint32_t value);
/** Free the list. */
void span_list_fini(struct span_list *list);

/** Flatten the list into pieces; this sorts the list. */
void span_map_init(struct span_map *map, struct span_list *list);
/** Free the pieces. */
void span_map_fini(struct span_map *map);

/** Return the value at the address, or SPAN_NONE. */
uint32_t span_map_find(const struct span_map *map, uint64_t address);

#endif
