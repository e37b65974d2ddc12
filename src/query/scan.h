/* SPDX-License-Identifier: MIT */
/** One pass over the allocations of a table, or over those groups that a question has to see; several threads may share
    it. */
#ifndef XHEAP_QUERY_SCAN_H
#define XHEAP_QUERY_SCAN_H

#include "query/filter.h"

/** Groups that have an allocation begun in the range, or live behind live_from_ns and begun up to its end. Others may
    be left out. */
struct heap_scan_plan {
	int64_t from_ns, to_ns;
	int64_t live_from_ns;             /**< INT64_MAX: those begun before from_ns are not wanted */
	unsigned columns;                 /**< PACK_TIMES, ...: what is wanted of allocations */
	const struct heap_filter *filter; /**< which allocations are wanted, prepared with the table; NULL: all */
	const bool *sites;                /**< by site: those begun there are; NULL: all of these */
};

/** The plan for all allocations. */
#define HEAP_SCAN_ALL ((struct heap_scan_plan){INT64_MIN, INT64_MAX, INT64_MIN, PACK_ALL, NULL, NULL})

struct heap_rows {
	/** number of the first allocation, and how many there are. If no details are wanted, they may be copies
	    (table/checkpoints.h) of what is live at the filter's moment, or before the range: `first` is 0 then */
	uint32_t first, count;
	struct pack_columns columns;            /**< if they were asked for */
	struct heap_details details[PACK_ROWS]; /**< if they were asked for */
	uint64_t passes[PACK_ROWS / 64];        /**< which of them are wanted; no bits behind the last one */
};

/** Return row i, as far as it was asked for. */
static inline struct heap_allocation heap_rows_get(const struct heap_rows *rows, uint32_t i)
{
	return pack_row(&rows->columns, i);
}

/** Return the first row from `at` on that is wanted; rows->count: there is none. */
static inline uint32_t heap_rows_from(const struct heap_rows *rows, uint32_t at)
{
	for (uint32_t word = at / 64; at < rows->count; at = ++word * 64) {
		uint64_t passes = rows->passes[word] >> at % 64;
		if (passes)
			return at + (uint32_t)__builtin_ctzll(passes);
	}
	return rows->count;
}

/** Go through the rows i that are wanted. */
#define heap_rows_each(rows, i) \
	for (uint32_t i = heap_rows_from(rows, 0); i < (rows)->count; i = heap_rows_from(rows, i + 1))

struct heap_scan {
	const struct heap_table *table;
	struct heap_scan_plan plan;
	struct groups_reader reader;
	/** groups of copies, which come first, and the group that the pass begins with behind them */
	uint32_t first_copies, copies, first_group;
	uint32_t next, end;           /**< places in the pass */
	uint32_t ahead;               /**< places from it on are another thread's, or not wanted */
	uint32_t own_shared, *shared; /**< the first one that no thread has taken */
	bool has_reallocs_only;
	bool had_wanted;              /**< the last group that was read had some of those wanted */
	struct heap_rows rows;
};

/** Begin a pass. Threads of one pass share `shared`, which is the first place that is wanted at first; NULL: a pass of
 *  its own, of all groups. End it with heap_scan_end(). */
void heap_scan_begin(struct heap_scan *scan, const struct heap_table *table, const struct heap_scan_plan *plan,
		     uint32_t *shared);

/** Leave out groups where no block came from a realloc, or went into one. */
static inline void heap_scan_reallocs(struct heap_scan *scan)
{
	scan->has_reallocs_only = true;
}

/** Return how many groups the pass has: those of copies, and of the table. */
uint32_t heap_scan_places(const struct heap_scan *scan);
/** Return the place of a group of the table in a pass with this plan; 0 if copies stand in for it. */
uint32_t heap_scan_place(const struct heap_table *table, const struct heap_scan_plan *plan, uint32_t group);
/** Return the group at a place in the pass. */
const struct heap_group *heap_scan_group(const struct heap_scan *scan, uint32_t place);
/** Return the sizes of the group at a place; NULL: they are not known. */
const struct heap_sizes *heap_scan_sizes(const struct heap_scan *scan, uint32_t place);

/** Go on with the places from `from` up to, not with, `to`, and end there, or at the next heap_scan_range(). */
void heap_scan_range(struct heap_scan *scan, uint32_t from, uint32_t to);

/** Places up to, not with, `to` may be read together: this thread goes through most of them. */
static inline void heap_scan_ahead(struct heap_scan *scan, uint32_t to)
{
	scan->ahead = to;
}

/** Take places of a pass that threads share, enough to read them in few pieces: from *from up to, not with, *to. A pass
    that leaves little out is read ahead. Return false at the end. */
bool heap_scan_take(struct heap_scan *scan, uint32_t *shared, bool leaves_little_out, uint32_t *from, uint32_t *to);

/** Return the next allocations, in order; of a shared pass, those that this thread takes; NULL at the end, or when the
    plan's filter is cancelled. They are
    valid until the next call. Groups that cannot be read are left out, and the table is damaged from then on. */
const struct heap_rows *heap_scan_next(struct heap_scan *scan);

/** End the pass and free its memory. */
void heap_scan_end(struct heap_scan *scan);

/** Run `work` on `count` contexts of `size` bytes each, in a thread each but for the first. */
void heap_scan_threads(void (*work)(void *context), void *contexts, size_t size, unsigned count);

/** Return how many threads a pass over this table is worth. */
unsigned heap_scan_width(const struct heap_table *table);

#endif
