/* SPDX-License-Identifier: MIT */
/**
 * What the allocations of a table that pass a filter add up to in a range of time: in all, and in cells, which are
 * sites, or sites split by something else. Definitions: docs/semantics.md.
 */
#ifndef XHEAP_QUERY_WINDOW_H
#define XHEAP_QUERY_WINDOW_H

#include "query/filter.h"
#include "query/scan.h"

/** What sites are split by. */
enum heap_by {
	HEAP_BY_NONE,
	HEAP_BY_PROCESS,
	HEAP_BY_THREAD,
	HEAP_BY_HEAP,
	HEAP_BY_SIZE,
	HEAP_BY_LIFETIME,
	HEAP_BY_TIME,
	HEAP_BY_CLASS
};
enum { HEAP_TIME_PARTS = 20 }; /* of the range, for HEAP_BY_TIME */

/** What is added up apart: a site, and which process, thread, ... it is split by. Places in the trace's lists for those
 *  that have one, else a number that heap_by_text() explains. */
struct heap_cell {
	uint32_t site, by;
};

/** What a label ends in: nothing where no other is the same, else what tells it from the others. */
enum heap_label_end { HEAP_LABEL_PLAIN, HEAP_LABEL_PROCESS, HEAP_LABEL_ID };

struct heap_window {
	struct heap_range range;
	struct heap_numbers totals;
	int64_t peak_at_ns;
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
	/** the peak is that of the time from then on: what of earlier times is folded does not tell it */
	int64_t peak_from_ns;
	bool is_peak_folded; /**< it was when what ended since is folded */
	struct heap_folded {
		uint32_t cell, sum;
	} * folded; /**< sums of the trace that are in the rows */
	size_t folded_count;
};

/** Add up; the filter was prepared with the table. */
void heap_window_make(struct heap_window *window, const struct heap_table *table, const struct heap_filter *filter,
		      struct heap_range range, enum heap_by by, bool is_by_heap);

/** The same range, split and moment of the peak as another's, by heap, for another filter. */
void heap_window_make_by_heap(struct heap_window *window, const struct heap_window *like,
			      const struct heap_table *table, const struct heap_filter *filter);
void heap_window_fini(struct heap_window *window);

/** Lifetimes of allocations, in lists: list i is from values[starts[i]] up to values[starts[i + 1]]. */
struct heap_lifetimes {
	int64_t *values;
	uint64_t *starts;
};

/** Collect the lifetimes of the allocations that the window counts, without those of its sums, of a sample the recorded
 *  ones: those of cell i are in list_of[i], of `count`, or HEAP_NONE. */
void heap_window_lifetimes(struct heap_lifetimes *lifetimes, const struct heap_window *window,
			   const struct heap_table *table, const struct heap_filter *filter, const uint32_t *list_of,
			   uint32_t count);
void heap_lifetimes_fini(struct heap_lifetimes *lifetimes);

/** A pass over those of a window's allocations that pass the filter; what is split by heap has whole ones. */
struct heap_scan_plan heap_window_plan(const struct heap_window *window, const struct heap_filter *filter);

/** Cells are sites. */
static inline bool heap_window_is_by_site(const struct heap_window *window)
{
	return window->by == HEAP_BY_NONE && !window->is_by_heap;
}

/** Likewise, and what remains of blocks with others in them is not counted. */
static inline bool heap_window_is_simple(const struct heap_window *window)
{
	return heap_window_is_by_site(window) && window->overhead_site == HEAP_NONE;
}

/** Begun in the range, in the trace. */
static inline bool heap_is_in_range(const struct heap_allocation *allocation, struct heap_range range)
{
	return allocation->birth_ns >= range.from_ns && allocation->birth_ns <= range.to_ns &&
	       !(allocation->flags & HEAP_EARLIER);
}

/** Whether the allocation is in the rows: begun in the range; with HEAP_BY_CLASS before it, too, if it was not freed
    before it. */
bool heap_window_has(const struct heap_window *window, const struct heap_allocation *allocation);

/** Whether one that the window has is outstanding. */
bool heap_window_is_outstanding(const struct heap_window *window, const struct heap_allocation *allocation);

/** Whether a sum's blocks are all split alike. */
bool heap_window_is_one_part(const struct heap_window *window, const struct trace_sum *sum);

/** Which part of the window's split it is of. */
uint32_t heap_by_of(const struct heap_window *window, const struct heap_table *table,
		    const struct heap_allocation *allocation);

/** What is added up apart for it. */
void heap_window_cell(const struct heap_window *window, const struct heap_table *table,
		      const struct heap_allocation *allocation, struct heap_cell *cell);

/** What a cell's `by` stands for: "pid 17 (python3)", "32 B to 63 B"; "" for HEAP_BY_NONE. No two of a trace have the
 *  same text: where labels are alike, an id follows, "pid 17 (python3) #3". Owned by the caller (free). */
char *heap_by_text(const struct heap_window *window, const struct heap_table *table, uint32_t by);

/** The process, and the thread, that a cell's `by` is of: ids of the trace, or HEAP_NONE. */
uint32_t heap_by_process(const struct heap_window *window, const struct heap_table *table, uint32_t by);
uint32_t heap_by_thread(const struct heap_window *window, const struct heap_table *table, uint32_t by);

/** Fill in label_ends. */
void heap_by_find_shared(struct heap_window *window, const struct heap_table *table);

/** Return the word of a split ("process"); "" for HEAP_BY_NONE. */
const char *heap_by_name(enum heap_by by);

/** Return the split with this word, in any case; HEAP_BY_NONE: there is none. */
enum heap_by heap_by_find(const char *name);

/** Return all words, "process, thread, ...", for messages. */
const char *heap_by_names(void);

#endif
