/* SPDX-License-Identifier: MIT */
/** How both sides access a word of the region that somebody else may write at the same time. Freestanding. */
#ifndef XHEAP_REGION_ATOMIC_H
#define XHEAP_REGION_ATOMIC_H

#include <stdint.h>

/** Read or write a word once, whole, without an order. */
#define LOAD(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

/** The same where other words depend on this one: a STORE_RELEASE publishes what was written before it to whoever reads
    by LOAD_ACQUIRE. */
#define LOAD_ACQUIRE(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define STORE_RELEASE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

/** Add to a counter that others add to. */
#define COUNT(p, v) ((void)__atomic_fetch_add((p), (v), __ATOMIC_RELAXED))

/** Set *p to `to` if it is `from`; true when it was. */
static inline int swap_if(uint32_t *p, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(p, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/** Set *p to `to` if it is *expected; true when it was, else *expected becomes what *p is. */
static inline int swap_if_expected(uint32_t *p, uint32_t *expected, uint32_t to)
{
	return __atomic_compare_exchange_n(p, expected, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

#endif
