/* SPDX-License-Identifier: MIT */
/** Growth of arrays in code that continues without memory. Analysis, which may end then, uses memory_grow() of
    base/memory.h. Both double the capacity, from GROW_FIRST elements on. */
#ifndef XHEAP_BASE_GROW_H
#define XHEAP_BASE_GROW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GROW_FIRST = 16 };

/** Return the capacity after `capacity`: the double, GROW_FIRST at first. */
static inline size_t grow_capacity(size_t capacity)
{
	return capacity ? capacity * 2 : GROW_FIRST;
}

/** Make room for one more element of the array `items`, which holds `count` of `capacity`. False without memory; then
    nothing has changed. */
#define grow_by_one(items, count, capacity) \
	({ \
		bool has_room_ = (count) < (capacity); \
		if (!has_room_) { \
			size_t larger_ = grow_capacity(capacity); \
			void *grown_ = reallocarray((items), larger_, sizeof(*(items))); \
			has_room_ = grown_ != NULL; \
			if (has_room_) { \
				(items) = grown_; \
				(capacity) = (__typeof__(capacity))larger_; \
			} \
		} \
		has_room_; \
	})

/** Make room for element `index` of the array `items`, which has `capacity`. New elements are zeroed. False without
    memory; then all is as it was. */
#define grow_to(items, index, capacity) \
	({ \
		size_t had_ = (capacity), larger_ = had_; \
		while (larger_ <= (index)) \
			larger_ = grow_capacity(larger_); \
		void *grown_ = larger_ > had_ ? reallocarray((items), larger_, sizeof(*(items))) : (items); \
		if (grown_ && larger_ > had_) { \
			(items) = grown_; \
			memset((items) + had_, 0, (larger_ - had_) * sizeof(*(items))); \
			(capacity) = (__typeof__(capacity))larger_; \
		} \
		grown_ != NULL; \
	})

#endif
