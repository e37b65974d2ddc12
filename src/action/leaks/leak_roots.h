/* SPDX-License-Identifier: MIT */
/** The roots of a process in its core. */
#ifndef XHEAP_ACTION_LEAK_ROOTS_H
#define XHEAP_ACTION_LEAK_ROOTS_H

#include <stdint.h>

#include "corefile/corefile.h"
#include "query/extents.h"
#include "reach/reach.h"

/** Addresses [low, high). */
struct leak_span {
	uint64_t low, high;
};

/** Memory of allocators, which is no root. Zero it to begin. */
struct leak_heaps {
	struct heap_extents pages; /**< of blocks, and of glibc's arenas, as set 0 */
	struct leak_span *spans;   /**< the same in order, and glibc's own data */
	size_t span_count, span_capacity;
	uint64_t break_low; /**< the first block in the heap behind the program break; UINT64_MAX: none */
};

/** Free it. */
void leak_heaps_fini(struct leak_heaps *heaps);

/** Take all roots of the core: registers of all threads, their stacks, writable memory that is no heap. */
void leak_roots_take(struct reach *reach, const struct corefile *core, struct leak_heaps *heaps);

#endif
