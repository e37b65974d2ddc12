/* SPDX-License-Identifier: MIT */
/** Classes of lifetimes: eight for each doubling, so what is known by its class is known to a sixteenth. */
#ifndef XHEAP_QUERY_LIFETIME_H
#define XHEAP_QUERY_LIFETIME_H

#include <stdint.h>

enum {
	LIFETIME_PART_BITS = 3,
	LIFETIME_PARTS = 1 << LIFETIME_PART_BITS,
	LIFETIME_CLASSES = (64 - LIFETIME_PART_BITS + 1) * LIFETIME_PARTS
};

/** Return the class of a lifetime in ns. */
static inline uint32_t lifetime_class(uint64_t lifetime_ns)
{
	if (lifetime_ns < LIFETIME_PARTS)
		return (uint32_t)lifetime_ns;
	unsigned shift = 63 - LIFETIME_PART_BITS - (unsigned)__builtin_clzll(lifetime_ns);
	return (shift + 1) * LIFETIME_PARTS + (uint32_t)(lifetime_ns >> shift & (LIFETIME_PARTS - 1));
}

/** Return the middle of a class, in ns. */
static inline uint64_t lifetime_middle(uint32_t class)
{
	if (class < LIFETIME_PARTS)
		return class;
	unsigned shift = class / LIFETIME_PARTS - 1;
	uint64_t first = (uint64_t)(LIFETIME_PARTS + class % LIFETIME_PARTS) << shift;
	return first + ((UINT64_C(1) << shift) - 1) / 2;
}

#endif
