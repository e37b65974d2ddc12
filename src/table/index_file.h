/* SPDX-License-Identifier: MIT */
/**
 * A table that stays: the next question about the trace reads it in place of the trace. It is never needed, and made
 * anew when the trace has changed. What is read is not trusted: a table with rows that cannot be is_damaged, and then
 * none of its answers counts.
 *
 *     head (struct heap_index_head, 4096 bytes kept free), chunks of packed groups (table/groups.h), groups, sites,
 *     processes, sums' numbers and uses
 */
#ifndef XHEAP_TABLE_INDEX_FILE_H
#define XHEAP_TABLE_INDEX_FILE_H

#include "table/table.h"

#define HEAP_INDEX_MAGIC "XHEAPIX4"
enum { HEAP_INDEX_HEAD_BYTES = 4096, HEAP_INDEX_MAGIC_BYTES = 8 };

/** Which trace it is of; the counts are those of the trace's lists, in which numbers of the index are places. */
struct heap_index_trace {
	uint64_t size_bytes, event_count;
	int64_t modified_ns, start_realtime_ns, duration_ns;
	uint64_t nodes, threads, heaps, entries;
};

struct heap_index_head {
	char magic[HEAP_INDEX_MAGIC_BYTES];
	uint32_t head_bytes, group_rows; /**< of this struct; PACK_ROWS */
	struct heap_index_trace trace;
	/** of the arrays, of the structs of table/groups.h and table/table.h; with heaps' inside */
	uint64_t tables_offset;
	uint32_t count, group_count, site_count, process_count;
	uint32_t numbers_count, use_count; /**< of the sums; none of both when they are not known */
	uint64_t unknown_frees, order_conflicts;
	int64_t duration_ns;
	struct heap_peak peak;
	uint64_t nested_count;
	uint64_t tables_checksum; /**< XXH3 of these arrays */
	uint64_t checksum;        /**< XXH3 of what is before */
};

/** The index of a trace at one of these paths, of which later ones are for when earlier ones cannot be written: 0, or a
 *  negative errno, -ENOENT when there is none that is good and of this trace. */
int heap_index_read(struct heap_table **out, const struct trace *trace, const char *trace_path,
		    const char *const *paths, unsigned path_count);

/** A file for an index in the directory of the first path where one can be made: it has no name yet, so nothing is left
 *  behind when we are interrupted. *chosen is its path's number. A descriptor, or a negative errno with the reason in
 *  diag. */
int heap_index_begin(const char *const *paths, unsigned path_count, unsigned *chosen, struct diag *diag);

/** Make the table that was built into that file an index with this name. 0, or a negative errno with the reason in
    diag. */
int heap_index_write(const struct heap_table *table, const char *trace_path, const char *path, struct diag *diag);

#endif
