/* SPDX-License-Identifier: MIT */
/** Priority queues: arrays with their first item in order at the front, and the others partly ordered behind it. */
#ifndef XHEAP_BASE_PRIORITY_QUEUE_H
#define XHEAP_BASE_PRIORITY_QUEUE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/**
 * Define the functions of a binary heap of `type`. `is_before` is a condition on the items that `one` and `other` point
 * to, and on `context`; it holds if *one comes before *other. The array and its count are the caller's.
 *
 *     name_make   put `count` items, in any order, into the order of a queue
 *     name_sink   after item `at` was replaced by one that comes later
 *     name_push   add an item behind `count` others; the array has room for it
 *     name_pop    remove the first item; `count` are left
 */
#define PRIORITY_QUEUE(name, type, context_type, is_before) \
	static inline bool name##_has_before(context_type context, type const *one, type const *other) \
	{ \
		(void)context; \
		return is_before; \
	} \
	static inline void name##_sink(context_type context, type *items, size_t count, size_t at) \
	{ \
		assert(at < count); \
		type sunk = items[at]; \
		for (size_t child; (child = 2 * at + 1) < count; at = child) { \
			if (child + 1 < count && name##_has_before(context, &items[child + 1], &items[child])) \
				child++; \
			if (!name##_has_before(context, &items[child], &sunk)) \
				break; \
			items[at] = items[child]; \
		} \
		items[at] = sunk; \
	} \
	__attribute__((unused)) static inline void name##_make(context_type context, type *items, size_t count) \
	{ \
		for (size_t at = count / 2; at-- > 0;) \
			name##_sink(context, items, count, at); \
	} \
	__attribute__((unused)) static inline void name##_push(context_type context, type *items, size_t count, \
							       type item) \
	{ \
		size_t at = count; \
		for (size_t up; at && name##_has_before(context, &item, &items[up = (at - 1) / 2]); at = up) \
			items[at] = items[up]; \
		items[at] = item; \
	} \
	__attribute__((unused)) static inline void name##_pop(context_type context, type *items, size_t count) \
	{ \
		items[0] = items[count]; \
		if (count) \
			name##_sink(context, items, count, 0); \
	}

#endif
