/* SPDX-License-Identifier: MIT */
/** Which heaps of a trace are glibc's, by their names. */
#ifndef XHEAP_QUERY_GLIBC_HEAPS_H
#define XHEAP_QUERY_GLIBC_HEAPS_H

#include <stdint.h>

struct trace_dictionary;

/** How glibc keeps the blocks of a heap. NONE: the heap is another allocator's. */
enum glibc_heap { GLIBC_HEAP_NONE, GLIBC_HEAP_MAIN, GLIBC_HEAP_ARENA, GLIBC_HEAP_MAPPED };

/** Return an enum glibc_heap for each heap of the trace, which the caller frees. */
uint8_t *glibc_heaps_find(const struct trace_dictionary *dictionary);

#endif
