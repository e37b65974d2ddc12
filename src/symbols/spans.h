/* SPDX-License-Identifier: MIT */
/** Which of many overlapping ranges of addresses counts at an address: prepared once, found by halving. */
#ifndef XHEAP_SYMBOLS_SPANS_H
#define XHEAP_SYMBOLS_SPANS_H

#include <stddef.h>
#include <stdint.h>

#define SPAN_NONE UINT32_MAX

/** [low, high) belongs to `value`, unless a span of a higher priority covers it; among equals the lower value wins. */
struct span {
	uint64_t low, high;
	uint64_t priority;
	uint32_t value;
};

/** Spans as they are collected. Zero it to begin. */
struct span_list {
	struct span *spans;
	size_t count, capacity;
};

struct span_piece {
	uint64_t low;   /**< up to the low of the next piece */
	uint32_t value; /**< or SPAN_NONE */
};

/** Disjoint pieces in order. */
struct span_map {
	struct span_piece *pieces;
	size_t count, capacity;
};

/** Add a span; an empty one is left out. */
void span_list_add(struct span_list *list, uint64_t low, uint64_t high, uint64_t priority, uint32_t value);
void span_list_fini(struct span_list *list);

/** Flatten the list, which is sorted in doing so. */
void span_map_init(struct span_map *map, struct span_list *list);
void span_map_fini(struct span_map *map);

/** The value that counts at the address, or SPAN_NONE. */
uint32_t span_map_find(const struct span_map *map, uint64_t address);

#endif
