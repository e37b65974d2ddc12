/* SPDX-License-Identifier: MIT */
/**
 * A table that stays: the next question about the trace reads it in place of the trace. It is never needed, and made anew when the trace has
 * changed. What is read is not trusted: a table with rows that cannot be is_damaged, and then none of its answers counts.
 *
 *     head (struct index_head, 4096 bytes kept free), chunks of packed groups (heap/groups.h), groups, sites, processes
 */
#ifndef XHEAP_HEAP_INDEX_H
#define XHEAP_HEAP_INDEX_H

#include "heap/table.h"

enum { HEAP_INDEX_HEAD_BYTES = 4096 };

/** The index of a trace at one of these paths, of which later ones are for when earlier ones cannot be written: 0, or a negative errno,
 *  -ENOENT when there is none that is good and of this trace. */
int heap_index_read(struct heap_table **out, const struct trace *trace, const char *trace_path, const char *const *paths, unsigned path_count);

/** A file for an index in the directory of the first path where one can be made: it has no name yet, so nothing is left behind when we are
 *  interrupted. *chosen is its path's number. A descriptor, or a negative errno with the reason in diag. */
int heap_index_begin(const char *const *paths, unsigned path_count, unsigned *chosen, struct diag *diag);

/** Make the table that was built into that file an index with this name. 0, or a negative errno with the reason in diag. */
int heap_index_write(const struct heap_table *table, const char *trace_path, const char *path, struct diag *diag);

#endif
