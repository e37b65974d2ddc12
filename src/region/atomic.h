/* SPDX-License-Identifier: MIT */
/**
 * How both sides access a word of the region that somebody else may write at the same time. Freestanding.
 *
 *     words                                          access
 *     those that publish others: states, `committed`,  STORE_RELEASE or a compare-and-swap; LOAD_ACQUIRE
 *       sequence numbers, counts of rows, the word
 *       of a row that is written last
 *     counters and what a slot or a head says         LOAD, STORE, BUMP, COUNT
 *     rows behind a count, messages                   plain, after the word that publishes them; a word that changes
 *                                                     later (unload_ticks) by LOAD and STORE
 *     bytes of records                                written by STORE; copied by memcpy() up to `committed`
 *     the logger's notes (taken, trace_thread)        plain: only the logger has them
 *
 * Records may be copied plainly. The owner of a buffer stores `committed` with release and never changes a byte below it.
 * The owner writes to the buffer again only after it has taken it anew. For that it swaps the state FREE, which the
 * logger stored with release after its copy. So two threads that keep to this never access a byte at the same time.
 * Other processes may break the rule. The logger decodes a copy of its own and checks it, whatever they write.
 */
#ifndef XHEAP_REGION_ATOMIC_H
#define XHEAP_REGION_ATOMIC_H

#include <stdint.h>

/** Read or write a word once, whole, without an order. */
#define LOAD(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

/**
 * The same on the way that each heap call takes. gcc makes an instruction of its own of an atomic load, where a plain one
 * becomes an operand of what uses it. A plain load of an aligned word that is used once is one load of the whole word,
 * too; ThreadSanitizer is shown the atomic one.
 */
#if defined(__SANITIZE_THREAD__)
#define LOAD_FOLDED(p) LOAD(p)
#else
#define LOAD_FOLDED(p) (*(p))
#endif

/** The same where other words depend on this one: a STORE_RELEASE publishes what was written before it to whoever reads
    by LOAD_ACQUIRE. */
#define LOAD_ACQUIRE(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define STORE_RELEASE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

/** Add to a counter that others read, and only the caller changes. */
#define BUMP(p, v) STORE((p), LOAD(p) + (v))

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
