/* SPDX-License-Identifier: MIT */
/** The search in an order. */
#ifndef XHEAP_BASE_BISECT_H
#define XHEAP_BASE_BISECT_H

#include <stddef.h>

/**
 * Set `place` to the number of items, of `count`, that lie before what is searched for. `is_before` is a condition on
 * the index `item`; it holds for the first items and for none behind them. It is evaluated about log2(count) times.
 */
#define BISECT(place, count, item, is_before) \
	do { \
		size_t low_ = 0, high_ = (count); \
		while (low_ < high_) { \
			const size_t item = low_ + (high_ - low_) / 2; \
			if (is_before) \
				low_ = item + 1; \
			else \
				high_ = item; \
		} \
		(place) = low_; \
	} while (0)

#endif
