/* SPDX-License-Identifier: MIT */
/**
 * Memory of the analysing side. A command that has none left can do nothing useful, so these end the program with a
 * message and status 2 instead of returning NULL. The recorder and the logger do not use them.
 */
#ifndef XHEAP_BASE_MEMORY_H
#define XHEAP_BASE_MEMORY_H

#include <stddef.h>

/** realloc() of count * size bytes, checked. */
void *memory_resize(void *old, size_t count, size_t size);

/** As memory_resize(NULL, ...), zeroed. */
void *memory_zeroed(size_t count, size_t size);

/** A capacity for at least `needed` elements: doubling, from 16. */
size_t memory_capacity(size_t capacity, size_t needed);

/** Say that there is no memory and end the program with status 2. */
_Noreturn void memory_exhausted(size_t size_bytes);

/** Make room for one more element of the array `items` that holds `count` of `capacity`. */
#define memory_grow(items, count, capacity)                                                   \
	do {                                                                                  \
		if ((count) >= (capacity)) {                                                  \
			(capacity) = memory_capacity((capacity), (size_t)(count) + 1);        \
			(items) = memory_resize((items), (capacity), sizeof(*(items)));       \
		}                                                                             \
	} while (0)

#endif
