/* SPDX-License-Identifier: MIT */
/** The members that a batch and its rows have in common, each with its column (columns/column.h). The structs in
    include/xheap/xheap.h keep their layout: a further member goes to their ends. */
#ifndef XHEAP_API_ROW_MEMBERS_H
#define XHEAP_API_ROW_MEMBERS_H

#include <stdbool.h>

#include "columns/column.h"
#include "xheap/xheap.h"

/** Of xheap_allocation and xheap_allocation_batch: X(member, column). */
#define ALLOCATION_MEMBERS(X) \
	X(number, COLUMN_ID) \
	X(end, COLUMN_END_KIND) \
	X(flags, COLUMN_FLAGS) \
	X(birth_ns, COLUMN_BIRTH) \
	X(end_ns, COLUMN_END) \
	X(address, COLUMN_ADDRESS) \
	X(size, COLUMN_SIZE) \
	X(usable_size, COLUMN_USABLE) \
	X(stack, COLUMN_STACK) \
	X(function, COLUMN_FUNCTION) \
	X(end_stack, COLUMN_FREE_STACK) \
	X(end_function, COLUMN_FREE_FUNCTION) \
	X(thread, COLUMN_THREAD) \
	X(end_thread, COLUMN_FREE_THREAD) \
	X(heap, COLUMN_HEAP_ID) \
	X(previous, COLUMN_PREVIOUS) \
	X(weight_count, COLUMN_WEIGHT_COUNT) \
	X(weight_bytes, COLUMN_WEIGHT_BYTES)

/** Of xheap_event and xheap_event_batch: X(member, member of an event block, column). */
#define EVENT_MEMBERS(X) \
	X(time_ns, time_ns, COLUMN_TIME) \
	X(duration_ns, duration_ns, COLUMN_DURATION) \
	X(kind, kind, COLUMN_ACTION) \
	X(flags, flags, COLUMN_FLAGS) \
	X(function, entry, COLUMN_FUNCTION) \
	X(heap, heap, COLUMN_HEAP_ID) \
	X(stack, stack, COLUMN_STACK) \
	X(result, result, COLUMN_RESULT) \
	X(address, address, COLUMN_ADDRESS) \
	X(previous_address, previous, COLUMN_PREVIOUS_ADDRESS) \
	X(size, size, COLUMN_SIZE) \
	X(usable_size, usable, COLUMN_USABLE) \
	X(argument, argument, COLUMN_ARGUMENT)

/** Set *to to allocation `id` of the table. Return false: there is none, or it cannot be read. */
bool api_allocation_read(xheap_allocation *to, const struct heap_table *table, uint32_t id);

#endif
