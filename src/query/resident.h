/* SPDX-License-Identifier: MIT */
/**
 * The resident memory of processes where it was largest: how much of it is heap, and what the rest is.
 *
 *     resident at a sample  =  heap  +  the rest, by kind of mapping
 *     heap                  =  live blocks + rounding + free inside heaps
 *
 * The logger writes the resident bytes of a process by kind of mapping at rising maxima. Heap is memory without a file
 * in whose pages blocks have lain up to then; it is never more than what is resident of a mapping. Of live blocks not
 * every page may be resident, so each of live, rounding and free is the most that it can be, in this order.
 */
#ifndef XHEAP_QUERY_RESIDENT_H
#define XHEAP_QUERY_RESIDENT_H

#include "table/table.h"

/** The resident memory of a process. All times are of the trace. */
struct resident {
	const struct trace_sample *largest; /**< NULL: no sample of it is in the trace */
	/** where it was read by kind of mapping, at its largest; NULL: unknown, in an older trace or of a process that
	    ended soon. Its bytes may be some percent less than `largest`: sizes below are of this time */
	const struct trace_resident *split;
	uint64_t bytes;                         /**< the sum of the split, or of the largest sample without one */
	bool is_heap_known;                     /**< the numbers of heap below are known: the trace has every block */
	uint64_t live_bytes, live_count;        /**< blocks that were live */
	uint64_t rounding_bytes, unknown_count; /**< beyond what was asked for; of so many blocks unknown */
	uint64_t heap_bytes;                    /**< resident memory that is heap */
	uint64_t heap_live, heap_rounding, heap_free; /**< its parts; their sum is heap_bytes */
	/** resident memory that is no heap; with heap_bytes the sum is `bytes`. All of the split if is_heap_known is
	    false; nothing without a split, when only heap_bytes is known */
	uint64_t rest[TRACE_MAPPING_KIND_COUNT];
	uint64_t rest_bytes; /**< their sum */
};

/** The word of a kind of mapping for people: "stacks". */
const char *resident_kind_words(unsigned kind);

/** The key of a kind of mapping in reports: "stacks". */
const char *resident_kind_key(unsigned kind);

/** Find the largest sample and the largest split of each process. The result has dictionary->process_count elements and
    is the caller's to free; nothing of heap is known. */
struct resident *resident_find(const struct trace_dictionary *dictionary);

/** The same, and tell heap from the rest, in one pass over the table; not of a sample, nor if blocks were folded. */
struct resident *resident_split(const struct heap_table *table);

/** Return the process with the largest sample, or TRACE_NONE. */
uint32_t resident_largest(const struct resident *residents, uint32_t process_count);

/** Return the split that has the time and the process of a sample, or NULL. `order` is of resident_order(). */
const struct trace_resident *resident_of_sample(const struct trace_dictionary *dictionary, const uint32_t *order,
						const struct trace_sample *sample);

/** Return the places of splits in the order of processes and times; the caller's to free. */
uint32_t *resident_order(const struct trace_dictionary *dictionary);

/** Return the sum of the split. */
uint64_t resident_sum(const struct trace_resident *split);

#endif
