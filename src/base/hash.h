/* SPDX-License-Identifier: MIT */
/** Hashes of numbers. The recorder uses hash_bits(), too. */
#ifndef XHEAP_BASE_HASH_H
#define XHEAP_BASE_HASH_H

#include <stdint.h>

/** 2^64 over the golden ratio: products with it spread values that differ in few bits (Knuth, The Art of Computer
    Programming, volume 3, section 6.4). */
#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15)

/** Return `bits` bits that depend on all of `value`. Chosen values can make them collide; hash_pair() resists that. */
static inline uint32_t hash_bits(uint64_t value, unsigned bits)
{
	return (uint32_t)(value * HASH_FACTOR >> (64 - bits));
}

/** Return a hash of two numbers that differs from run to run, so that nobody outside can choose colliding values. */
uint64_t hash_pair(uint64_t a, uint64_t b);

#endif
