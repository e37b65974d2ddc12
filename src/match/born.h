/* SPDX-License-Identifier: MIT */
/** The fields of an allocation, from the event that begins or ends it. */
#ifndef XHEAP_MATCH_BORN_H
#define XHEAP_MATCH_BORN_H

#include "base/events.h"
#include "match/point_stream.h"
#include "table/table.h"
#include "trace/reader.h"

struct trace_block;

#define BORN_SIZE_MAX ((UINT64_C(1) << 48) - 1)

/** Return the site of a row's event; entry HEAP_NONE for an earlier block. */
static inline struct heap_site born_site(const struct trace_block *block, uint32_t row)
{
	if (block->kind[row] == EVENT_EARLIER)
		return (struct heap_site){0, HEAP_NONE};
	return (struct heap_site){block->flags[row] & EVENT_NO_STACK ? 0 : block->stack[row], block->entry[row]};
}

/** Return whether the event is a realloc of an existing block. */
static inline bool born_is_realloc(const struct trace_block *block, uint32_t row)
{
	return block->kind[row] == EVENT_REALLOC && block->previous[row];
}

/** Return how the event ends a block. */
static inline enum heap_end born_end(const struct trace_block *block, uint32_t row)
{
	return block->kind[row] == EVENT_REALLOC ? HEAP_END_REALLOC : HEAP_END_FREE;
}

/** Return whether an end has its block's usable bytes, as all ends do while earlier blocks are being found; other ends
    may have them, too. */
static inline bool born_is_measured(const struct trace_block *block, uint32_t row)
{
	return (block->kind[row] == EVENT_FREE && block->usable[row]) || block->argument2[row];
}

/** Return the size of the event's block, cut to the field of an allocation. */
static inline uint64_t born_size(const struct trace_block *block, uint32_t row)
{
	return block->size[row] < BORN_SIZE_MAX ? block->size[row] : BORN_SIZE_MAX;
}

/** Set an open allocation, without its site. The fields are set one by one: a copy of the whole would wait for its
    parts. */
static inline void born_allocation(struct heap_allocation *allocation, const struct trace_block *block,
				   const struct point_place *at)
{
	uint32_t row = at->row;
	uint8_t kind = block->kind[row], flags = 0;
	if (born_is_realloc(block, row))
		flags = block->previous[row] != block->address[row] ? HEAP_REALLOC | HEAP_MOVED : HEAP_REALLOC;
	allocation->birth_ns = kind == EVENT_EARLIER ? 0 : at->time_ns;
	allocation->end_ns = INT64_MAX;
	allocation->size_bytes = born_size(block, row);
	allocation->end = HEAP_END_OPEN;
	allocation->flags = kind == EVENT_EARLIER ? HEAP_EARLIER : flags;
	allocation->end_site = HEAP_NONE;
	allocation->thread = block->thread;
	allocation->heap = block->heap[row];
}

/** Set an allocation's details, without `previous`. birth_point: ordinal of the point that begins it. */
static inline void born_details(struct heap_details *details, const struct trace_block *block, uint32_t row,
				uint32_t birth_point)
{
	uint64_t size_bytes = block->size[row], usable_bytes = block->usable[row];
	uint64_t slack = usable_bytes > size_bytes ? usable_bytes - size_bytes : 0;
	details->address = block->address[row];
	details->slack_bytes = !usable_bytes                ? HEAP_SLACK_UNKNOWN
			       : slack < HEAP_SLACK_UNKNOWN ? (uint32_t)slack
							    : HEAP_SLACK_UNKNOWN - 1;
	details->previous = details->end_thread = details->end_point = HEAP_NONE;
	details->birth_point = block->kind[row] == EVENT_EARLIER ? HEAP_NONE : birth_point;
}

#endif
