/* SPDX-License-Identifier: MIT */
/**
 * Sums over the allocations of a table that pass a filter, in a range of time: in all, and in cells, which are
 * sites, or sites split by something else. Definitions: docs/semantics.md.
 */
#ifndef XHEAP_QUERY_WINDOW_H
#define XHEAP_QUERY_WINDOW_H

#include "query/filter.h"
#include "query/scan.h"

struct trace_sum;

/** What sites are split by. */
/* clang-format off */
#define HEAP_BYS(X) \
	X(PROCESS, "process") X(THREAD, "thread") X(HEAP, "heap") X(SIZE, "size") X(LIFETIME, "lifetime") \
	X(TIME, "time") X(CLASS, "class")
/* clang-format on */

enum heap_by {
	HEAP_BY_NONE,
#define X(id, name) HEAP_BY_##id,
	HEAP_BYS(X)
#undef X
};
enum { HEAP_TIME_PARTS = 20 }; /* of the range, for HEAP_BY_TIME */

/** Allocations that are added up apart: of a site, and of a process, thread, ... of the split. Both are places in the
 *  trace's lists if there is one, else a number that heap_by_text() explains. */
struct heap_cell {
	uint32_t site, by;
};

/** The end of a label: nothing if no other is the same, else the difference to the others. */
enum heap_label_end { HEAP_LABEL_PLAIN, HEAP_LABEL_PROCESS, HEAP_LABEL_ID };

struct heap_window {
	struct heap_range range;
	struct heap_numbers totals;
	int64_t peak_at_ns;
	bool is_moment;      /**< its allocations are those that are live at its end: all are outstanding */
	const uint8_t *gone; /**< the filter's */
	enum heap_by by;
	/** enum heap_label_end, by place in the trace's list of processes, threads or heaps that it is split by */
	uint8_t *label_ends;
	/** cells have heaps in place of sites: the heap's place in the trace's list from 1, 0 without one */
	bool is_by_heap;
	struct heap_cell *cells;
	struct heap_numbers *numbers; /**< one for each cell */
	uint32_t cell_count;
	struct heap_use *uses;
	size_t use_count;
	uint64_t earlier_count, earlier_bytes;
	/** of what remains of blocks with others in them; HEAP_NONE: that is not counted */
	uint32_t overhead_site;
	uint64_t uncertain_count, uncertain_bytes; /**< outstanding, but their free may have been lost in a gap */
	/** the peak is that of the time from then on: folded blocks of earlier times do not give it */
	int64_t peak_from_ns;
	bool is_peak_folded; /**< it lies in the folded time */
	struct heap_folded {
		uint32_t cell, sum;
	} * folded; /**< sums of the trace that are in the rows */
	size_t folded_count;
};

/** Add up; the filter was prepared with the table. End the window with heap_window_fini(). */
void heap_window_make(struct heap_window *window, const struct heap_table *table, const struct heap_filter *filter,
		      struct heap_range range, enum heap_by by);

/** Add up by heap, for another filter, with the range, split and moment of the peak of `like`. */
void heap_window_make_by_heap(struct heap_window *window, const struct heap_window *like,
			      const struct heap_table *table, const struct heap_filter *filter);

/** Free the window. */
void heap_window_fini(struct heap_window *window);

/** Return the plan of a pass over a window's allocations that pass the filter. */
struct heap_scan_plan heap_window_plan(const struct heap_window *window, const struct heap_filter *filter);

/** Return whether cells are sites. */
static inline bool heap_window_is_by_site(const struct heap_window *window)
{
	return window->by == HEAP_BY_NONE && !window->is_by_heap;
}

/** Return whether cells are sites, and remainders of blocks with others in them are not counted. */
static inline bool heap_window_is_simple(const struct heap_window *window)
{
	return heap_window_is_by_site(window) && window->overhead_site == HEAP_NONE;
}

/** Return whether the block began in the range, in the trace. */
static inline bool heap_is_in_range(const struct heap_allocation *allocation, struct heap_range range)
{
	return allocation->birth_ns >= range.from_ns && allocation->birth_ns <= range.to_ns &&
	       !(allocation->flags & HEAP_EARLIER);
}

/** Return whether the allocation is in the rows: begun in the range; with HEAP_BY_CLASS also before it, if it had not
    ended before it. */
bool heap_window_has(const struct heap_window *window, const struct heap_allocation *allocation);

/** Return whether an allocation that the window has is outstanding. */
bool heap_window_is_outstanding(const struct heap_window *window, const struct heap_allocation *allocation);

/** Set the cell of the allocation. */
void heap_window_cell(const struct heap_window *window, const struct heap_table *table,
		      const struct heap_allocation *allocation, struct heap_cell *cell);

#endif
