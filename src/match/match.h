/* SPDX-License-Identifier: MIT */
/**
 * Matching: the making of a table from a trace, also while the trace is recorded. Then the trace is opened again
 * whenever it has grown, and matched up to a time before which the file is complete. The result is that of
 * heap_table_build() for the whole trace: byte for byte, unless a process of which points were matched is forked. Then
 * the rows are the same, and their places in the groups may differ.
 *
 * A fact may come too late: the end of a process, a fork, a loss. Then matching_increment() fails with -ESTALE, and
 * nothing was made.
 *
 *     matching_new(), matching_increment() ..., matching_end(), matching_free()
 */
#ifndef XHEAP_MATCH_MATCH_H
#define XHEAP_MATCH_MATCH_H

#include "match/live_chart.h"
#include "table/table.h"

struct diag;
struct trace;

/** Who follows the rows themselves: each is added once, live or over, in any order, and ended once if it was live. Both
    are called by the thread that matches. Rows have sites of the table, whose other fields are those of a growing
    one. */
struct row_watch {
	void (*add)(void *context, const struct heap_table *table, const struct heap_allocation *row);
	void (*end)(void *context, const struct heap_table *table, const struct heap_allocation *row);
	void *context;
};

/** Parameters of a table's making. */
struct heap_build {
	int fd;                  /**< the file for its groups, owned by the table from then on; -1: memory */
	uint64_t reserved_bytes; /**< kept free at the file's beginning */
	/** called now and then with the points matched so far and all that can come; or NULL */
	void (*progress)(void *cookie, uint64_t done, uint64_t all);
	void *cookie;
	const int64_t *until_ns;  /**< ignore all later points; NULL: match all */
	const bool *is_cancelled; /**< as in base/cancel.h: matching fails with -ECANCELED then */
	bool has_chart;           /**< sums have the chart */
	bool without_rows;        /**< rows are not kept: there are sums and the watch, but never a table */
	/** takes more time and less memory; the peak is not searched for if the points alone do not give it */
	bool is_small;
	const struct row_watch *watch; /**< NULL: nobody follows rows */
};

/** Match all points of the trace. how: NULL for a table in memory. Return 0 and set *out, which the caller frees by
    heap_table_free(). Otherwise return a negative errno with the reason in `diag`, and close how->fd. */
int heap_table_build(struct heap_table **out, const struct trace *trace, const struct heap_build *how,
		     struct diag *diag);

/** A matching under way. One thread at a time may use it. */
struct matching;

/** Begin a matching. how: without until_ns. */
struct matching *matching_new(const struct heap_build *how);

/** Match points up to until_ns, or to a slightly earlier time. The trace must continue that of the last increment
    (trace_continues()), and its new event blocks must begin after matching_passed_ns(). The earlier trace may be closed
    afterwards. Return 0, or a negative errno with the reason in `diag`. */
int matching_increment(struct matching *matching, const struct trace *trace, int64_t until_ns, struct diag *diag);

/** Return the time of the latest matched point, INT64_MIN before the first. */
int64_t matching_passed_ns(const struct matching *matching);

/** The sums of all points that are matched so far, by site. Peaks of sites, and variances, are not in them. */
struct matching_sums {
	struct heap_site *sites;
	struct heap_numbers *numbers; /**< of the site at the same place */
	uint32_t site_count;
	uint64_t sample_bytes; /**< as in a table */
	uint64_t point_count;  /**< points that are matched */
	int64_t until_ns;      /**< time of the latest of them */
	uint64_t live_bytes;   /**< then */
	struct heap_peak peak; /**< of the time up to then */
	bool is_peak_known;    /**< false: points contradict each other, or blocks began before the trace; peak is 0 */
	/** of the time up to then; no intervals: nobody asked for it. If the peak is not known, values may be off by
	    the blocks in question */
	struct live_chart chart;
};

/** Copy the sums; end them with matching_sums_fini(). Return false for a trace that has sums in place of events: they
    are in none of these. In a sample they are estimates. */
bool matching_sums_take(const struct matching *matching, struct matching_sums *sums);

/** Free the copy. */
void matching_sums_fini(struct matching_sums *sums);

/** Bring all rows that are matched so far to their watcher. Return false if these are not all rows: of a folded trace
    some are in sums, and of blocks in other blocks it is not known yet which these are. */
bool matching_watch_settle(struct matching *matching);

/** Match the rest. Return 0 and the table in *out, which the caller frees and which needs this trace; or a negative
    errno with the reason in `diag`. */
int matching_end(struct matching *matching, const struct trace *trace, struct heap_table **out, struct diag *diag);
/** Free the matching. */
void matching_free(struct matching *matching);

#endif
