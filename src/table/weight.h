/* SPDX-License-Identifier: MIT */
/**
 * The weight of a recorded block of a sample.
 * A block of `size` bytes was recorded with the probability p = 1 - exp(-size / sample_bytes). So it counts for 1 / p
 * blocks and size / p bytes: Horvitz and Thompson's estimate, unbiased for any group of blocks that was not chosen by
 * the sample itself. In a trace of every event, a block counts for itself.
 */
#ifndef XHEAP_TABLE_WEIGHT_H
#define XHEAP_TABLE_WEIGHT_H

#include "table/table.h"

struct trace_dictionary;

/** A weight in whole numbers. Fractions are rounded at random, up as often as they require; the block's own time and
    size decide. So sums stay unbiased, and a block has the same weight each time. */
struct heap_weight {
	uint64_t count, bytes;
	double count_variance, bytes_variance;
};

/** Return the mean distance of the sample's chosen bytes; 0: every event was recorded. */
uint64_t heap_sample_bytes(const struct trace_dictionary *dictionary);

/** Return the weight of an allocation in a sample. */
struct heap_weight heap_sample_weight(uint64_t sample_bytes, const struct heap_allocation *allocation);

/** Return the variance of bytes that are estimated to be so many blocks, by their mean size; 0: it is no sample. */
double heap_sample_variance(uint64_t sample_bytes, uint64_t bytes, uint64_t count);

/** Return the weight of an allocation, in a sample or not. */
static inline struct heap_weight heap_weigh(const struct heap_table *table, const struct heap_allocation *allocation)
{
	if (__builtin_expect(!table->sample_bytes, 1))
		return (struct heap_weight){1, allocation->size_bytes, 0, 0};
	return heap_sample_weight(table->sample_bytes, allocation);
}

#endif
