/* SPDX-License-Identifier: MIT */
/** The splits of sites: the part that an allocation is of, and the parts' labels. */
#ifndef XHEAP_QUERY_BY_H
#define XHEAP_QUERY_BY_H

#include <stdbool.h>
#include <stdint.h>

#include "query/window.h"

/** Return whether all blocks of a sum are in one part of the split. */
bool heap_window_is_one_part(const struct heap_window *window, const struct trace_sum *sum);

/** Return the part of the window's split that the allocation is in. */
uint32_t heap_by_of(const struct heap_window *window, const struct heap_table *table,
		    const struct heap_allocation *allocation);

/** Return the label of a cell's `by`: "pid 17 (python3)", "32 B to 63 B"; "" for HEAP_BY_NONE. No two of a trace have
 *  the same text: an id follows labels that are alike, "pid 17 (python3) #3". The caller frees it. */
char *heap_by_text(const struct heap_window *window, const struct heap_table *table, uint32_t by);

/** Return the process of a cell's `by`: an id of the trace, or HEAP_NONE. */
uint32_t heap_by_process(const struct heap_window *window, const struct heap_table *table, uint32_t by);

/** Return the thread of a cell's `by`: an id of the trace, or HEAP_NONE. */
uint32_t heap_by_thread(const struct heap_window *window, const struct heap_table *table, uint32_t by);

/** Fill in label_ends: find labels that are alike. */
void heap_by_find_shared(struct heap_window *window, const struct heap_table *table);

/** Return the word of a split ("process"); "" for HEAP_BY_NONE. */
const char *heap_by_name(enum heap_by by);

/** Return the split with this word, in any case; HEAP_BY_NONE: there is none. */
enum heap_by heap_by_find(const char *name);

#endif
