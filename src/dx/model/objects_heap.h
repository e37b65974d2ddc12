/* SPDX-License-Identifier: MIT */
/** Heap objects: one for each heap call of the trace. */
#ifndef XHEAP_DX_OBJECTS_HEAP_H
#define XHEAP_DX_OBJECTS_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "columns/column.h"

struct dx_event;
struct dx_query;

/** What a member of calls has of its column. */
struct dx_call_column {
	enum column_id column;
	unsigned kinds;          /**< a bit for each enum event_kind that has it */
	unsigned without;        /**< enum event_flag: calls with any of them lack it */
	uint64_t none;           /**< this value is none; 0: all are values */
	bool is_zero_for_absent; /**< calls of these kinds without a value have 0 */
};

/** Return what calls have of the column; NULL: all that the column has. */
const struct dx_call_column *dx_call_column_find(enum column_id column);

/** Return the flags word of an event, and whether it has one. */
bool dx_event_flags(struct dx_query *query, const struct dx_event *event, uint64_t *flags);

#endif
