/* SPDX-License-Identifier: MIT */
/** What is known of an allocation. */
#ifndef XHEAP_TABLE_ALLOCATION_H
#define XHEAP_TABLE_ALLOCATION_H

#include <stdbool.h>
#include <stdint.h>

#define HEAP_NONE UINT32_MAX
#define HEAP_OVERHEAD \
	(UINT32_MAX - 1) /**< the entry of a site that is no place in the code: what pools have not handed out */

/** How an allocation ended. Those up to HEAP_END_CONFLICT were given back; the others are outstanding. */
enum heap_end {
	HEAP_END_FREE,
	HEAP_END_REALLOC,
	HEAP_END_DESTROY,
	HEAP_END_GAP,      /**< in a gap of the recording: its address was allocated again */
	HEAP_END_CONFLICT, /**< its address was allocated again and nothing tells why */
	HEAP_END_EXIT,     /**< alive when its process ended or its image was replaced */
	HEAP_END_OPEN      /**< alive at the end of the trace */
};

enum heap_allocation_flag {
	HEAP_REALLOC = 1,    /**< came from a realloc of an existing block */
	HEAP_MOVED = 2,      /**< and to another address */
	HEAP_TEMPORARY = 4,  /**< freed by the very next event of the thread that made it */
	HEAP_EARLIER = 8,    /**< began before the trace: live from T = 0, in no total */
	HEAP_NESTED = 16,    /**< lies in another block, and so is in no total but its heap's own */
	HEAP_HAS_NESTED = 32 /**< others lie, or lay, in it */
};

struct heap_allocation {
	int64_t birth_ns;
	int64_t end_ns; /**< of open ones: the end of the trace */
	uint64_t size_bytes : 48, end : 8, flags : 8;
	uint32_t site;     /**< where it was allocated, in heap_table.sites */
	uint32_t end_site; /**< where it was freed or reallocated, or HEAP_NONE */
	uint32_t thread;   /**< that allocated it; it tells the process */
	uint32_t heap;     /**< place in the trace's heaps, or TRACE_NONE */
};

/** What few reports ask for. */
struct heap_details {
	uint64_t address;
	uint32_t slack_bytes; /**< usable bytes beyond the size, less than HEAP_SLACK_UNKNOWN; or that */
	uint32_t previous;    /**< the allocation that a realloc made it from, or HEAP_NONE */
	uint32_t end_thread;  /**< that gave it back, or HEAP_NONE */
};

/** The allocator could not be asked for the usable size. */
#define HEAP_SLACK_UNKNOWN UINT32_MAX

/** Usable bytes beyond the size, 0 where they are not known. */
static inline uint32_t heap_slack(const struct heap_details *details)
{
	return details->slack_bytes == HEAP_SLACK_UNKNOWN ? 0 : details->slack_bytes;
}

/** From beginning to end, or the age that it reached. Times of a trace may be anything: what does not fit is the
    most. */
static inline int64_t heap_lifetime_ns(const struct heap_allocation *allocation)
{
	int64_t lifetime_ns;
	return __builtin_sub_overflow(allocation->end_ns, allocation->birth_ns, &lifetime_ns) ? INT64_MAX : lifetime_ns;
}

/** A block is live from its beginning up to, not at, its end; one from before the trace from the first time on. */
static inline bool heap_is_live_at(const struct heap_allocation *allocation, int64_t time_ns)
{
	bool has_begun = allocation->birth_ns <= time_ns || allocation->flags & HEAP_EARLIER;
	return has_begun && (allocation->end_ns > time_ns || allocation->end == HEAP_END_OPEN);
}

/** True when it was given back, false when it stayed alive to the end of its process or of the trace. */
static inline bool heap_end_is_given_back(unsigned end)
{
	return end <= HEAP_END_CONFLICT;
}

#endif
