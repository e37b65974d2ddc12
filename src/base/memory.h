/* SPDX-License-Identifier: MIT */
/**
 * Memory of the analysing side. Who has none left can do nothing useful, so these never return NULL: the work is given
 * up, up to the memory_try() around it, or the program's own end. The recorder does not use them; the logger does where
 * it could only go on with less than it recorded, and ends.
 */
#ifndef XHEAP_BASE_MEMORY_H
#define XHEAP_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/** realloc() of count * size bytes, checked. */
void *memory_resize(void *old, size_t count, size_t size);

/** As memory_resize(NULL, ...), zeroed. */
void *memory_zeroed(size_t count, size_t size);

/** As memory_zeroed(), for a table that is looked at here and there, and filled: in large pages where it is large and
    there are such. */
void *memory_table(size_t count, size_t size);

/** A capacity for at least `needed` elements: doubling, from 16. */
size_t memory_capacity(size_t capacity, size_t needed);

/** Give up what this thread does: there is no memory. */
_Noreturn void memory_exhausted(size_t size_bytes);

/** Run work(context). False when it was given up in its middle for want of memory; what it had taken until then stays
    taken. */
bool memory_try(void (*work)(void *context), void *context);

/** What has to be ended, by the thread that began it, when that gives up what it tries: threads that work on it. */
struct memory_guard {
	void (*end)(void *context);
	void *context;
	struct memory_guard *outer;
};

/** Have end(context) called if this thread's innermost memory_try() is given up; until memory_unguard(), which may come
    from end(). */
void memory_guard(struct memory_guard *guard, void (*end)(void *context), void *context);
void memory_unguard(struct memory_guard *guard);

/** What ends the program when there is no memory and no memory_try() around; it does not return. Set once, by
    main(). */
void memory_set_end(void (*end)(size_t size_bytes));

/** Make room for one more element of the array `items` that holds `count` of `capacity`. */
#define memory_grow(items, count, capacity) \
	do { \
		if ((count) >= (capacity)) { \
			(capacity) = memory_capacity((capacity), (size_t)(count) + 1); \
			(items) = memory_resize((items), (capacity), sizeof(*(items))); \
		} \
	} while (0)

#endif
