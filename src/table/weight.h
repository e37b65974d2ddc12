/* SPDX-License-Identifier: MIT */
/**
 * What a recorded block of a sample stands for. A block of `size` bytes was recorded with the probability p = 1 -
 * exp(-size / sample_bytes), so 1 / p blocks are counted for it, and size / p bytes (Horvitz and Thompson's estimate,
 * which is unbiased for any group of blocks that was not chosen by looking at the sample). Where every event was
 * recorded a block stands for itself.
 */
#ifndef XHEAP_TABLE_WEIGHT_H
#define XHEAP_TABLE_WEIGHT_H

#include "table/table.h"

/** Whole numbers: fractions are rounded by lot, up as often as they say, which the block's own time and size decide; so
 *  sums are unbiased too, and a block has the same weight whenever it is asked for. */
struct heap_weight {
	uint64_t count, bytes;
	double count_variance, bytes_variance;
};

/** Mean distance of the sample's chosen bytes; 0: every event was recorded. */
uint64_t heap_sample_bytes(const struct trace_dictionary *dictionary);

/** The weight in a sample. */
struct heap_weight heap_sample_weight(uint64_t sample_bytes, const struct heap_allocation *allocation);

/** The weight, whatever the trace is. */
static inline struct heap_weight heap_weigh(const struct heap_table *table, const struct heap_allocation *allocation)
{
	if (__builtin_expect(!table->sample_bytes, 1))
		return (struct heap_weight){1, allocation->size_bytes, 0, 0};
	return heap_sample_weight(table->sample_bytes, allocation);
}

#endif
