/* SPDX-License-Identifier: MIT */
/** What programs tell Valgrind of their own heaps, declared once: who finds the places, who tells of the functions, and
    the recorder go by it. */
#ifndef XHEAP_BASE_REQUESTS_H
#define XHEAP_BASE_REQUESTS_H

#include "base/events.h"

/*
 * X(number, what the macro's request is called, the function of xheap/heap.h that tells the same, and which of the
 * request's arguments are the heap, the block, the block before, the size; 0: none of them). A request without a heap
 * is of the one heap of all such.
 */
/* clang-format off */
#define HEAP_REQUESTS(X) \
	X(0x1301, "VALGRIND_MALLOCLIKE_BLOCK", HEAP_ALLOC, 0, 1, 0, 2) \
	X(0x1302, "VALGRIND_FREELIKE_BLOCK", HEAP_FREE, 0, 1, 0, 0) \
	X(0x1303, "VALGRIND_CREATE_MEMPOOL", HEAP_CREATE, 1, 1, 0, 0) \
	X(0x1304, "VALGRIND_DESTROY_MEMPOOL", HEAP_DESTROY, 1, 1, 0, 0) \
	X(0x1305, "VALGRIND_MEMPOOL_ALLOC", HEAP_ALLOC, 1, 2, 0, 3) \
	X(0x1306, "VALGRIND_MEMPOOL_FREE", HEAP_FREE, 1, 2, 0, 0) \
	X(0x1307, "VALGRIND_MEMPOOL_TRIM", HEAP_RESET, 1, 1, 0, 3) \
	X(0x1309, "VALGRIND_MEMPOOL_CHANGE", HEAP_REALLOC, 1, 3, 2, 4) \
	X(0x130b, "VALGRIND_RESIZEINPLACE_BLOCK", HEAP_REALLOC, 0, 1, 1, 3)
/* clang-format on */

/** The numbers lie here; some are no heap's matter. */
enum {
	REQUEST_FIRST = 0x1301,
	REQUEST_LAST = 0x130b,
	REQUEST_SPAN = REQUEST_LAST - REQUEST_FIRST + 1,
	REQUEST_MOVE_POOL = 0x1308
};

/** How a request is to be read. */
struct heap_request {
	unsigned char function, heap, block, previous, size;
};

#endif
