/* SPDX-License-Identifier: MIT */
/** Memory of the analysing side. These functions never return NULL: without memory the work is given up, up to the
    enclosing memory_try(), else the program ends. The recorder does not use them. The logger does if it could otherwise
    only continue with less than it has recorded. */
#ifndef XHEAP_BASE_MEMORY_H
#define XHEAP_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/** As realloc() of count * size bytes, with a check for overflow. */
void *memory_resize(void *old, size_t count, size_t size);

/** As memory_resize(NULL, ...), zeroed. */
void *memory_zeroed(size_t count, size_t size);

/** As memory_zeroed(), for a table with scattered accesses that fills up: large ones get large pages if the system has
    them. */
void *memory_table(size_t count, size_t size);

/** From now on all arrays of several MiB get large pages if the system has them: they are filled with a fraction of the
    page faults, and may have to be made room for. For questions, which nobody's program waits for. */
void memory_be_generous(void);

/** Do so for memory that others have allocated; NULL is allowed. */
void memory_prefer_large_pages(void *memory, size_t bytes);

/** Return a capacity for at least `needed` elements: doubling, from 16. */
size_t memory_capacity(size_t capacity, size_t needed);

/** Give up the work of this thread for lack of memory. */
_Noreturn void memory_exhausted(size_t size_bytes);

/** Run work(context). Return false if it was given up for lack of memory; what it had allocated until then stays
    allocated. */
bool memory_try(void (*work)(void *context), void *context);

/** A resource, such as threads, that must be ended if the thread that began it gives up its work. */
struct memory_guard {
	void (*end)(void *context);
	void *context;
	struct memory_guard *outer;
};

/** Have end(context) called if this thread's innermost memory_try() is given up, until memory_unguard() or the end of
    the outermost memory_try(); end() may call memory_unguard() itself. */
void memory_guard(struct memory_guard *guard, void (*end)(void *context), void *context);
/** Remove the guard. No effect if it is not set. */
void memory_unguard(struct memory_guard *guard);

/** Set the function that ends the program for lack of memory outside of memory_try(). It does not return. Called once,
    by main(). */
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
