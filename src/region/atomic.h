/* SPDX-License-Identifier: MIT */
/** Accesses to a word of the region that another process may write at the same time. Freestanding. */
#ifndef XHEAP_REGION_ATOMIC_H
#define XHEAP_REGION_ATOMIC_H

#include <stdint.h>

/** Read or write a word at once and whole, without ordering other accesses. */
#define LOAD(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

/** The same for words that others depend on: a reader that gets a STORE_RELEASE's value by LOAD_ACQUIRE sees everything
    that was written before it. */
#define LOAD_ACQUIRE(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define STORE_RELEASE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

/** Add to a counter that others add to as well. */
#define COUNT(p, v) ((void)__atomic_fetch_add((p), (v), __ATOMIC_RELAXED))

/** Set *p to `to` if it is `from`. Return whether it was. */
static inline int swap_if(uint32_t *p, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(p, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/** Set *p to `to` if it is *expected. Return whether it was; if not, set *expected to the value of *p. */
static inline int swap_if_expected(uint32_t *p, uint32_t *expected, uint32_t to)
{
	return __atomic_compare_exchange_n(p, expected, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

#endif
