/* SPDX-License-Identifier: MIT */
/** Times of a question that lie outside of a trace: its answer is empty, which a report has to say. */
#ifndef XHEAP_QUERY_OUTSIDE_H
#define XHEAP_QUERY_OUTSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "query/filter.h"

enum { HEAP_OUTSIDE_MAX = 3 };

/** A time outside of the trace: all of it. */
struct heap_outside {
	const char *what; /**< "range", "window" or "moment"; static */
	bool is_after;    /**< it lies behind the trace's end; else before its start */
	char text[96];    /**< a sentence about it, without a full stop */
};

/** Find those of the range, of the filter's window and of its moment that lie outside of a trace of this duration.
    Return how many. */
unsigned heap_outside_find(const struct heap_filter *filter, struct heap_range range, int64_t duration_ns,
			   struct heap_outside found[HEAP_OUTSIDE_MAX]);

#endif
