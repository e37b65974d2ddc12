/* SPDX-License-Identifier: MIT */
/** The model: every allocation of a trace, matched with its end. Reports are passes over this table (query/scan.h), in
    the order of the allocations' beginnings. It is packed, in an index (table/index_file.h) that later questions find,
    or in memory. */
#ifndef XHEAP_TABLE_TABLE_H
#define XHEAP_TABLE_TABLE_H

#include "table/allocation.h"
#include "table/checkpoints.h"
#include "table/groups.h"

struct trace;
struct trace_dictionary;
struct trace_sum;

/** A stack and the allocation function that it called. */
struct heap_site {
	uint32_t stack; /**< node of the trace; 0: not recorded */
	uint32_t entry; /**< HEAP_NONE: of blocks from before the trace; or HEAP_OVERHEAD */
};

/** The uncertainty of sums of a sample: the square of the standard error. 0 if nothing is estimated. */
struct heap_variance {
	double count, bytes;
};

/** Sums of the allocations of a range. */
struct heap_numbers {
	uint64_t total_count, total_bytes;
	uint64_t outstanding_count, outstanding_bytes;
	uint64_t realloc_count, realloc_moved_count, temporary_count;
	uint64_t open_count;             /**< never freed in the whole trace */
	uint64_t peak_count, peak_bytes; /**< live at the time of the whole trace's peak */
	/** recorded blocks behind total_count; the same number unless the trace is a sample */
	uint64_t recorded_count;
	struct heap_variance total_variance, outstanding_variance, peak_variance;
};

/** A thread used something with sums of its own, such as a site; sorted by `cell`, then `thread`. */
struct heap_use {
	uint32_t cell, thread;
};

/** Sums of all allocations of the trace, by site; numbers of single moments are not in them. */
struct heap_sums {
	/** NULL: unknown, since the trace has contradictions, losses or blocks from before it */
	struct heap_numbers *numbers;
	struct heap_use *uses;
	size_t use_count;
};

/** The most bytes that were live at one time of a range, and the first such time: the range's first, or that of a
    change. */
struct heap_peak {
	int64_t time_ns;
	uint64_t bytes;
};

/** The facts about a process that the model has and the trace lacks. */
struct heap_process {
	int64_t end_ns;                            /**< at least the time of its last point */
	int64_t last_loss_ns;                      /**< end of its last gap that lost frees; INT64_MIN: none */
	uint64_t live_count, live_bytes;           /**< when it ended */
	uint64_t inherited_count, inherited_bytes; /**< live in its parent when it was forked */
	uint64_t inherited_freed;                  /**< part of them that this process freed or reallocated */
	uint64_t unknown_frees, order_conflicts;
};

/** An instant with several points: their ordinals are first_point and those behind it. */
struct heap_instant {
	uint32_t first_point, point_count;
};

/** A free of a block that nobody saw begin. */
struct heap_fault {
	int64_t time_ns;
	uint64_t address; /**< that it should free */
	uint32_t point;   /**< its ordinal */
	uint32_t thread;
};

/** Of every 65,536th point the table knows the time. */
enum { HEAP_POINTS_PER_TIME = 1 << 16 };

/** Return how many times so many points have. */
static inline uint32_t heap_time_count(uint32_t point_count)
{
	return point_count / HEAP_POINTS_PER_TIME + (point_count % HEAP_POINTS_PER_TIME > 0);
}

/** Further faults are counted in unknown_frees only. */
enum { HEAP_FAULTS_MAX = 1 << 20 };

/** The table of a trace, which must outlive it. */
struct heap_table {
	const struct trace *trace;
	const struct trace_dictionary *dictionary;
	uint32_t count;            /**< of allocations */
	struct heap_groups groups; /**< of the allocations */
	/** of a table from an index; others have none */
	struct heap_checkpoints checkpoints;
	bool *is_damaged; /**< set when rows could not be read: the index is damaged */
	struct heap_site *sites;
	uint32_t site_count;
	struct heap_process *processes;
	/** by heap of the trace: the heap that its blocks lie in, TRACE_NONE: none, or unknown */
	uint32_t *inside;
	/** allocations that lie in others; if there are any, the last site is that of HEAP_OVERHEAD */
	uint64_t nested_count;
	uint64_t unknown_frees, order_conflicts;
	uint32_t point_count;          /**< of all threads: ordinals are below it */
	struct heap_instant *instants; /**< in their order; all other instants have one point */
	uint32_t instant_count;
	int64_t *point_times;      /**< of every HEAP_POINTS_PER_TIME points: the first one's */
	struct heap_fault *faults; /**< in the order of their points */
	uint32_t fault_count;
	int64_t duration_ns;   /**< latest time of any point */
	uint64_t sample_bytes; /**< the trace is a sample (table/weight.h); 0: it has every event */
	struct heap_peak peak; /**< of all allocations and all times, from T = 0 on */
	struct heap_sums sums; /**< of all allocations and all times */
	/** by sum of the trace (query/folded.h): its site; these sums are in none of the fields above */
	uint32_t *sum_sites;
};

/** Return the site of a sum's allocations. */
struct heap_site heap_sum_site(const struct trace_sum *sum);

/** Return whether the trace has sums. */
bool heap_is_folded(const struct heap_table *table);

/** Return whether instants and faults are in the order of their points, and all points below point_count. */
bool heap_points_are_good(const struct heap_table *table);

/** Return the step of a point, from 1 on: its place among the points of its instant. 0: HEAP_NONE, no point. */
uint32_t heap_table_step(const struct heap_table *table, uint32_t point);

/** Return whether blocks that are live at the table's last time stay so: recording ended there with a detach, and no
    process ended by itself. */
bool heap_table_ends_detached(const struct heap_table *table);

/** Find the site of each sum and keep it in sum_sites. Return false if a site is not in the table. */
bool heap_table_find_sum_sites(struct heap_table *table);

/** Free the table and close its file; NULL is allowed. */
void heap_table_free(struct heap_table *table);

/** Add *from to *to. */
void heap_numbers_add(struct heap_numbers *to, const struct heap_numbers *from);
/** Add *from to *to. */
void heap_variance_add(struct heap_variance *to, const struct heap_variance *from);

/** Sort by point. */
void heap_faults_sort(struct heap_fault *faults, size_t count);
/** Sort by cell, then thread. */
void heap_uses_sort(struct heap_use *uses, size_t count);

#endif
