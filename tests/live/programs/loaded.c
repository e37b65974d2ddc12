/* SPDX-License-Identifier: MIT */
/* A shared object for loads.py, with or without a heap of its own. */
#include <stdlib.h>

#ifdef LOADED_HEAP
#include "xheap/heap.h"

static char block[64];

/* Report a block and its end. */
__attribute__((noinline)) void loaded_take(unsigned size)
{
	xheap_heap_alloc(block, block, size);
	xheap_heap_free(block, block);
}
#else
__attribute__((noinline)) void loaded_take(unsigned size)
{
	free(malloc(size));
}
#endif
