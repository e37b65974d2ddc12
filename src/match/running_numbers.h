/* SPDX-License-Identifier: MIT */
/** The numbers of a table's whole time, updated as allocations begin and end. */
#ifndef XHEAP_MATCH_RUNNING_NUMBERS_H
#define XHEAP_MATCH_RUNNING_NUMBERS_H

#include "table/weight.h"

/** Add an allocation that begins. */
static inline void numbers_begin(struct heap_numbers *numbers, struct heap_weight weight, unsigned flags)
{
	numbers->total_count += weight.count;
	numbers->recorded_count++;
	numbers->total_bytes += weight.bytes;
	numbers->outstanding_count += weight.count;
	numbers->outstanding_bytes += weight.bytes;
	numbers->open_count += weight.count;
	numbers->realloc_count += flags & HEAP_REALLOC ? weight.count : 0;
	numbers->realloc_moved_count += flags & HEAP_MOVED ? weight.count : 0;
}

/** Take back a live allocation of a trace that is no sample: it turns out to be nested. */
static inline void numbers_forget(struct heap_numbers *numbers, uint64_t size_bytes, unsigned flags)
{
	numbers->total_count--;
	numbers->recorded_count--;
	numbers->total_bytes -= size_bytes;
	numbers->outstanding_count--;
	numbers->outstanding_bytes -= size_bytes;
	numbers->open_count--;
	numbers->realloc_count -= !!(flags & HEAP_REALLOC);
	numbers->realloc_moved_count -= !!(flags & HEAP_MOVED);
}

/** Subtract from the outstanding ones an allocation that ends, if it is freed. */
static inline void numbers_end(struct heap_numbers *numbers, struct heap_weight weight, unsigned end, unsigned flags)
{
	if (!heap_end_is_given_back(end))
		return;
	numbers->outstanding_count -= weight.count;
	numbers->outstanding_bytes -= weight.bytes;
	numbers->open_count -= weight.count;
	numbers->temporary_count += !!(flags & HEAP_TEMPORARY);
}

#endif
