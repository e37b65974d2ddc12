/* SPDX-License-Identifier: MIT */
/** The requests by which programs report their own heaps to Valgrind, declared once for the search for places, the list
    of functions, and the recorder. */
#ifndef XHEAP_BASE_REQUESTS_H
#define XHEAP_BASE_REQUESTS_H

#include "base/events.h"

/*
 * X(number, name of the request's macro, function of xheap/heap.h with the same meaning, numbers of four arguments).
 * The arguments are the heap, the block, the block before, the size; 0: the request has no such argument. All requests
 * without a heap belong to one heap.
 */
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

/** The range of the numbers; some of them concern no heap. */
enum {
	REQUEST_FIRST = 0x1301,
	REQUEST_LAST = 0x130b,
	REQUEST_SPAN = REQUEST_LAST - REQUEST_FIRST + 1,
	REQUEST_MOVE_POOL = 0x1308
};

/** The meaning of a request's arguments: their numbers, as in HEAP_REQUESTS. */
struct heap_request {
	unsigned char function, heap, block, previous, size;
};

#endif
