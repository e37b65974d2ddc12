/* SPDX-License-Identifier: MIT */
/** What the allocations of a table add up to in a range of time: per site and in all. Definitions: docs/semantics.md. */
#ifndef XHEAP_HEAP_WINDOW_H
#define XHEAP_HEAP_WINDOW_H

#include "heap/table.h"

/** Both ends belong to it. */
struct heap_range {
	int64_t from_ns, to_ns;
};

struct heap_numbers {
	uint64_t total_count, total_bytes;
	uint64_t outstanding_count, outstanding_bytes;
	uint64_t realloc_count, realloc_moved_count, temporary_count;
	uint64_t open_count;         /**< never given back in the whole trace */
	uint64_t peak_count, peak_bytes; /**< live at the moment of the whole's peak */
};

/** A site was used by a thread; by site, then thread. */
struct heap_use {
	uint32_t site, thread;
};

struct heap_window {
	struct heap_range range;
	struct heap_numbers totals;
	int64_t peak_at_ns;
	struct heap_numbers *sites;  /**< one for each site of the table */
	int64_t *lifetimes;          /**< of the allocations in the range, by site */
	uint32_t *lifetime_starts;   /**< those of site i: from [i] to [i + 1] */
	struct heap_use *uses;
	size_t use_count;
	uint64_t earlier_count, earlier_bytes;
	uint64_t uncertain_count, uncertain_bytes; /**< outstanding, but their free may have been lost in a gap */
};

/** Add up. Never fails. */
void heap_window_make(struct heap_window *window, const struct heap_table *table, struct heap_range range);
void heap_window_fini(struct heap_window *window);

/** Add the numbers of one to the other. */
void heap_numbers_add(struct heap_numbers *to, const struct heap_numbers *from);

#endif
