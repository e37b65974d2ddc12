/* SPDX-License-Identifier: MIT */
/** The heaps of a trace that uses annotated heaps: their blocks' tables, and heaps of two processes that are one. */
#ifndef XHEAP_MATCH_MATCH_HEAPS_H
#define XHEAP_MATCH_MATCH_HEAPS_H

#include <stdint.h>

struct matching;

/** Make room for the annotated heaps that the trace has by now. Nothing is done if there are none. */
void matching_read_heaps(struct matching *matching);

/** Return the heap of a process that has the handle and the name of this one; the first, if there are several;
    TRACE_NONE: none. */
uint32_t matching_heap_like(const struct matching *matching, uint32_t heap, uint32_t process);

/** Free what matching_read_heaps() made. */
void matching_heaps_fini(struct matching *matching);

#endif
