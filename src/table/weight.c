/* SPDX-License-Identifier: MIT */
#include "table/weight.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "trace/option_names.h"
#include "trace/trace.h"

uint64_t heap_sample_bytes(const struct trace_dictionary *dictionary)
{
	for (uint32_t i = 0; i < dictionary->option_count; i++)
		if (!strcmp(dictionary->options[i].name, "sample"))
			return strtoull(dictionary->options[i].value, NULL, 10);
	return 0;
}

/* Return a whole number near the value, whose mean over blocks is the value. It is the same for the same block each
   time, even if its thread has another id. */
static uint64_t round_by_lot(double value, const struct heap_allocation *allocation, uint64_t which)
{
	uint64_t hash = ((uint64_t)allocation->birth_ns ^ (uint64_t)allocation->size_bytes << 40 ^ which) * HASH_FACTOR;
	hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
	double whole = floor(value), lot = (double)((hash ^ hash >> 32) >> 11) * 0x1p-53;
	return (uint64_t)whole + (lot < value - whole);
}

struct heap_weight heap_sample_weight(uint64_t sample_bytes, const struct heap_allocation *allocation)
{
	assert(sample_bytes > 0);
	double size = (double)allocation->size_bytes, length = size > 0 ? size : 1,
	       chance = -expm1(-length / (double)sample_bytes);
	double count = 1 / chance, variance = (1 - chance) * count * count;
	return (struct heap_weight){.count = round_by_lot(count, allocation, 0),
				    .bytes = round_by_lot(size * count, allocation, 1),
				    .count_variance = variance,
				    .bytes_variance = variance * size * size};
}

double heap_sample_variance(uint64_t sample_bytes, uint64_t bytes, uint64_t count)
{
	if (!sample_bytes || !count)
		return 0;
	const double size = (double)bytes / (double)count, chance = -expm1(-size / (double)sample_bytes);
	return chance > 0 ? (double)bytes * size * (1 - chance) / chance : 0;
}
