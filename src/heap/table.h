/* SPDX-License-Identifier: MIT */
/**
 * The model: every allocation of a trace, matched with what ended it. Reports are passes over this table (heap/scan.h), in which allocations
 * are in the order of their beginnings. It is packed: in an index (heap/index.h) that the next question finds, or in memory.
 */
#ifndef XHEAP_HEAP_TABLE_H
#define XHEAP_HEAP_TABLE_H

#include "heap/allocation.h"
#include "heap/groups.h"
#include "trace/trace.h"

/** A stack and the allocation function that it called. */
struct heap_site {
	uint32_t stack;              /**< node of the trace; 0: not recorded */
	uint32_t entry;              /**< HEAP_NONE: where blocks from before the trace come from; or HEAP_OVERHEAD */
};

/** The most that was live at one time of a range, and the first such moment: the range's first, or when something changed. */
struct heap_peak {
	int64_t time_ns;
	uint64_t bytes;
};

/** A process, as far as the model knows more than the trace. */
struct heap_process {
	int64_t end_ns;              /**< not before its last point */
	int64_t last_loss_ns;        /**< end of its last gap that lost frees; INT64_MIN when there is none */
	uint64_t live_count, live_bytes; /**< at its end */
	uint64_t inherited_count, inherited_bytes; /**< live in its parent when it was forked */
	uint64_t inherited_freed;    /**< of those, freed or reallocated by this process */
	uint64_t unknown_frees, order_conflicts;
};

struct heap_table {
	const struct trace *trace;
	const struct trace_dictionary *dictionary;
	uint32_t count;              /**< allocations */
	struct heap_groups groups;   /**< of these */
	bool *is_damaged;            /**< some of them could not be read: it is a bad index */
	struct heap_site *sites;
	uint32_t site_count;
	struct heap_process *processes;
	uint32_t *inside;            /**< by heap of the trace: the one that its blocks lie in, TRACE_NONE when that is none or not known */
	uint64_t nested_count;       /**< allocations that lie in others; then the last site is that of HEAP_OVERHEAD */
	uint64_t unknown_frees, order_conflicts;
	int64_t duration_ns;         /**< latest time of any point */
	uint64_t sample_bytes;       /**< the trace is a sample (heap/sample.h); 0: of every event */
	struct heap_peak peak;       /**< of all allocations and all the time, from T = 0 on */
};

/** How a table is built. */
struct heap_build {
	int fd;                      /**< the file for its groups, the table's from then on; -1: memory */
	uint64_t reserved_bytes;     /**< kept free at its beginning */
	void (*progress)(void *cookie, uint64_t done, uint64_t all); /**< called now and then with the points gone through and all that can come; or NULL */
	void *cookie;
};

/** Match all points of the trace. how NULL: into memory. 0 and the table in *out, or a negative errno with the reason in
 *  diag; the file is closed then. */
int heap_table_build(struct heap_table **out, const struct trace *trace, const struct heap_build *how, struct diag *diag);
void heap_table_free(struct heap_table *table);

#endif
