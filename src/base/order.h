/* SPDX-License-Identifier: MIT */
/** Orders for qsort() and bsearch(). */
#ifndef XHEAP_BASE_ORDER_H
#define XHEAP_BASE_ORDER_H

#include <stdint.h>
#include <string.h>

/** Order two values: -1, 0 or 1. Both are evaluated twice. */
#define COMPARE(one, other) (((one) > (other)) - ((one) < (other)))

/** Define the order of structs by a member, the least first. */
#define COMPARE_BY(name, type, member) \
	static int name(const void *one, const void *other) \
	{ \
		const type *left = one, *right = other; \
		return COMPARE(left->member, right->member); \
	}

/** Define the order of structs by a member and, where it is equal, by a second one. */
#define COMPARE_BY_TWO(name, type, member, second) \
	static int name(const void *one, const void *other) \
	{ \
		const type *left = one, *right = other; \
		return left->member != right->member ? COMPARE(left->member, right->member) \
						     : COMPARE(left->second, right->second); \
	}

static inline int compare_u32(const void *one, const void *other)
{
	const uint32_t *left = one, *right = other;
	return COMPARE(*left, *right);
}

static inline int compare_u64(const void *one, const void *other)
{
	const uint64_t *left = one, *right = other;
	return COMPARE(*left, *right);
}

/** Order two elements of an array of texts. */
static inline int compare_texts(const void *one, const void *other)
{
	const char *const *left = one, *const *right = other;
	return strcmp(*left, *right);
}

#endif
