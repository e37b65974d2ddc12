/* SPDX-License-Identifier: MIT */
/**
 * An index: a table in a file, which later questions about the trace read instead of the trace. It is never necessary,
 * and is made anew when the trace has changed. Reading trusts nothing: a table with impossible rows is_damaged, and
 * then none of its answers is valid.
 *
 *     head (struct heap_index_head, 4096 bytes kept free), chunks of packed groups (table/groups.h), groups, sites,
 *     processes, sums' numbers and uses
 */
#ifndef XHEAP_TABLE_INDEX_FILE_H
#define XHEAP_TABLE_INDEX_FILE_H

#include "table/table.h"

#define HEAP_INDEX_MAGIC "XHEAPIX4"
enum { HEAP_INDEX_HEAD_BYTES = 4096, HEAP_INDEX_MAGIC_BYTES = 8 };

/** The trace that the index belongs to, and the lengths of the trace's lists that numbers of the index refer to. */
struct heap_index_trace {
	uint64_t size_bytes, event_count;
	int64_t modified_ns, start_realtime_ns, duration_ns;
	uint64_t nodes, threads, heaps, entries;
};

/** The first bytes of the file. */
struct heap_index_head {
	char magic[HEAP_INDEX_MAGIC_BYTES];
	uint32_t head_bytes, group_rows; /**< size of this struct; PACK_ROWS */
	struct heap_index_trace trace;
	/** of the arrays: groups (table/groups.h), then sites and others (table/table.h), with `inside` of the heaps */
	uint64_t tables_offset;
	uint32_t count, group_count, site_count, process_count;
	uint32_t numbers_count, use_count; /**< of the sums; both 0 if they are unknown */
	uint64_t unknown_frees, order_conflicts;
	int64_t duration_ns;
	struct heap_peak peak;
	uint64_t nested_count;
	uint64_t tables_checksum; /**< XXH3 of these arrays */
	uint64_t checksum;        /**< XXH3 of the fields before it */
};

/** Read the index of a trace from the first path that has a valid one. (Later paths are used when earlier ones cannot
    be written.) Return 0, or a negative errno; -ENOENT: there is none. */
int heap_index_read(struct heap_table **out, const struct trace *trace, const char *trace_path,
		    const char *const *paths, unsigned path_count);

/** Make a file for an index in the directory of the first path that allows it. The file has no name yet, so nothing
    remains after an interruption. Set *chosen to the path's index. Return a descriptor, or a negative errno with the
    reason in `diag`. */
int heap_index_begin(const char *const *paths, unsigned path_count, unsigned *chosen, struct diag *diag);

/** Complete the file into which the table was built and give it this name. Return 0, or a negative errno with the
    reason in `diag`. */
int heap_index_write(const struct heap_table *table, const char *trace_path, const char *path, struct diag *diag);

#endif
