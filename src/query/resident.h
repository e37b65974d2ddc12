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

#include "base/sink.h"
#include "query/extents.h"
#include "table/table.h"
#include "trace/memory_rows.h"

struct trace_dictionary;
struct trace_limit;

/** The resident memory of a process. */
struct resident {
	const struct trace_sample *largest; /**< NULL: no sample of it is in the trace */
	/** where it was read by kind of mapping, at its largest; NULL: unknown, in an older trace or of a process that
	    ended soon. Its bytes may be some percent less than `largest` */
	const struct trace_resident *split;
	uint64_t bytes;      /**< the sum of the split, or the largest sample without one */
	uint64_t heap_bytes; /**< of the split; 0 before resident_tell() */
	/** resident memory that is no heap; with heap_bytes the sum is the split's. All 0 without one */
	uint64_t rest[TRACE_MAPPING_KIND_COUNT];
};

/** The key of a kind of mapping in reports: "stacks". */
const char *resident_kind_key(unsigned kind);

/** Find the largest sample and the largest split of each process. The result has dictionary->process_count elements and
    is the caller's to free; nothing of heap is known. */
struct resident *resident_list(const struct trace_dictionary *dictionary);

/** Return whether blocks of one process lie in the memory of another: it is the process itself, or one that it was
    forked from. */
bool resident_is_of(const struct trace_dictionary *dictionary, uint32_t process, uint32_t other);

/** Tell heap from the rest of the split. Set 0 of the extents has the pages in which blocks of the process, and of
    those that it was forked from, have lain up to the time of the split. */
void resident_tell(struct resident *resident, const struct trace_dictionary *dictionary, struct heap_extents *extents);

/** Add "13.0 MiB anonymous, 1.0 MiB files" to the sink: the rest by kind, the largest first, at most so many kinds,
    without those that have nothing. */
void resident_rest_text(const struct resident *resident, unsigned most, struct sink *out);

/** Return the split that was read of a process at a time, or NULL. `order` is of resident_order(). */
const struct trace_resident *resident_of_reading(const struct trace_dictionary *dictionary, const uint32_t *order,
						 uint32_t process, int64_t time_ns);

/** Return the places of splits in the order of processes and times; the caller's to free. */
uint32_t *resident_order(const struct trace_dictionary *dictionary);

/** Return the limits of a process's memory, or NULL: they are in no older trace. */
const struct trace_limit *resident_limit(const struct trace_dictionary *dictionary, uint32_t process);

/** Return the sum of the split. */
uint64_t resident_sum(const struct trace_resident *split);

#endif
