/* SPDX-License-Identifier: MIT */
/**
 * The model: every allocation of a trace, matched with what ended it. Reports are passes over this table
 * (query/scan.h), in which allocations are in the order of their beginnings. It is packed: in an index
 * (table/index_file.h) that the next question finds, or in memory.
 */
#ifndef XHEAP_TABLE_TABLE_H
#define XHEAP_TABLE_TABLE_H

#include "table/allocation.h"
#include "table/groups.h"
#include "trace/trace.h"

/** A stack and the allocation function that it called. */
struct heap_site {
	uint32_t stack; /**< node of the trace; 0: not recorded */
	uint32_t entry; /**< HEAP_NONE: where blocks from before the trace come from; or HEAP_OVERHEAD */
};

/** How far sums of a sample may be off: the square of the standard error. 0 where nothing is estimated. */
struct heap_variance {
	double count, bytes;
};

/** What allocations of a range add up to. */
struct heap_numbers {
	uint64_t total_count, total_bytes;
	uint64_t outstanding_count, outstanding_bytes;
	uint64_t realloc_count, realloc_moved_count, temporary_count;
	uint64_t open_count;             /**< never given back in the whole trace */
	uint64_t peak_count, peak_bytes; /**< live at the moment of the whole's peak */
	uint64_t recorded_count;         /**< blocks that total_count stands for: the same but in a sample */
	struct heap_variance total_variance, outstanding_variance, peak_variance;
};

/** Something that is added up apart, like a site, was used by a thread; by the first, then thread. */
struct heap_use {
	uint32_t cell, thread;
};

/** What all allocations of the trace add up to, by site; what was live at a moment is not in it. */
struct heap_sums {
	/** NULL: not known, as the trace has contradictions, losses or blocks from before it */
	struct heap_numbers *numbers;
	struct heap_use *uses;
	size_t use_count;
};

/** The most that was live at one time of a range, and the first such moment: the range's first, or when something
    changed. */
struct heap_peak {
	int64_t time_ns;
	uint64_t bytes;
};

/** A process, as far as the model knows more than the trace. */
struct heap_process {
	int64_t end_ns;                  /**< not before its last point */
	int64_t last_loss_ns;            /**< end of its last gap that lost frees; INT64_MIN when there is none */
	uint64_t live_count, live_bytes; /**< at its end */
	uint64_t inherited_count, inherited_bytes; /**< live in its parent when it was forked */
	uint64_t inherited_freed;                  /**< of those, freed or reallocated by this process */
	uint64_t unknown_frees, order_conflicts;
};

struct heap_table {
	const struct trace *trace;
	const struct trace_dictionary *dictionary;
	uint32_t count;            /**< allocations */
	struct heap_groups groups; /**< of these */
	bool *is_damaged;          /**< some of them could not be read: it is a bad index */
	struct heap_site *sites;
	uint32_t site_count;
	struct heap_process *processes;
	/** by heap of the trace: the one that its blocks lie in, TRACE_NONE when that is none or not known */
	uint32_t *inside;
	uint64_t nested_count; /**< allocations that lie in others; then the last site is that of HEAP_OVERHEAD */
	uint64_t unknown_frees, order_conflicts;
	int64_t duration_ns;   /**< latest time of any point */
	uint64_t sample_bytes; /**< the trace is a sample (table/weight.h); 0: of every event */
	struct heap_peak peak; /**< of all allocations and all the time, from T = 0 on */
	struct heap_sums sums; /**< likewise */
	uint32_t *sum_sites;   /**< by sum of the trace (query/folded.h), which are in none of the above */
};

/** Where the allocations of a sum were made. */
static inline struct heap_site heap_sum_site(const struct trace_sum *sum)
{
	return (struct heap_site){sum->stack, sum->entry};
}

/** Whether the trace has sums. */
static inline bool heap_is_folded(const struct heap_table *table)
{
	return table->dictionary->fold_count > 0;
}

/** Find the site of each sum and keep it in sum_sites. Return false if a site is not in the table. */
bool heap_table_find_sum_sites(struct heap_table *table);

void heap_table_free(struct heap_table *table);

/** Whether all of a table that was built holds together: rows, groups, sites, sums (base/check.h). Takes a pass over
    all rows. */
bool heap_table_is_valid(const struct heap_table *table);

/** Add the numbers of one to the other. */
void heap_numbers_add(struct heap_numbers *to, const struct heap_numbers *from);
void heap_variance_add(struct heap_variance *to, const struct heap_variance *from);

/** Put them in order. */
void heap_uses_sort(struct heap_use *uses, size_t count);

#endif
