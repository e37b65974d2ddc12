/* SPDX-License-Identifier: MIT */
/**
 * Accesses to a word of the region that another process may write at the same time. Freestanding.
 *
 *     words                                            access
 *     those that publish others: states, `committed`,  STORE_RELEASE or a compare-and-swap; LOAD_ACQUIRE
 *       sequence numbers, counts of rows, the word
 *       of a row that is written last
 *     counters, and the fields of a slot or a head     LOAD, STORE, BUMP, COUNT
 *     rows below a count, messages                     plain, after the word that publishes them; a word that changes
 *                                                      later (unload_ticks) by LOAD and STORE
 *     bytes of records                                 written by STORE; copied by memcpy() up to `committed`
 *     the logger's notes (taken, trace_thread)         plain: only the logger uses them
 *
 * Records may be copied plainly. The owner of a buffer stores `committed` with release and never changes a byte below
 * it. The owner writes to the buffer again only after it has taken it anew. For that it swaps the state FREE, which the
 * logger stored with release after its copy. So two threads that keep to this never access a byte at the same time.
 * Other processes may break the rule. The logger decodes a copy of its own and checks it, whatever they write.
 */
#ifndef XHEAP_REGION_ATOMIC_H
#define XHEAP_REGION_ATOMIC_H

#include <stdint.h>

/** Read or write a word at once and whole, without ordering other accesses. */
#define LOAD(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

/**
 * The same accesses on the path of each heap call. gcc makes a separate instruction of an atomic load; a plain load
 * becomes an operand of the instruction that uses the word. A plain load of an aligned word that is used once is one
 * load of the whole word, too; ThreadSanitizer sees the atomic one.
 */
#if defined(__SANITIZE_THREAD__)
#define LOAD_FOLDED(p) LOAD(p)
#else
#define LOAD_FOLDED(p) (*(p))
#endif

/** The same for words that others depend on: a reader that gets a STORE_RELEASE's value by LOAD_ACQUIRE sees everything
    that was written before it. */
#define LOAD_ACQUIRE(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define STORE_RELEASE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

/** Add to a counter that others read, and only the caller changes. */
#define BUMP(p, v) STORE((p), LOAD(p) + (v))

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
