/* SPDX-License-Identifier: MIT */
/** An allocation: a block with its history. */
#ifndef XHEAP_TABLE_ALLOCATION_H
#define XHEAP_TABLE_ALLOCATION_H

#include <stdbool.h>
#include <stdint.h>

#define HEAP_NONE UINT32_MAX
#define HEAP_OVERHEAD \
	(UINT32_MAX - 1) /**< the entry of a site that is no place in the code: what pools have not handed out */

/** How an allocation ended. The ends up to HEAP_END_CONFLICT are frees; allocations with the others are outstanding. */
#define HEAP_ENDS(X) \
	X(FREE, "free") \
	X(REALLOC, "realloc") \
	X(DESTROY, "destroy") \
	X(GAP, "gap")           /* in a gap of the recording: its address was allocated again */ \
	X(CONFLICT, "conflict") /* its address was allocated again, and no event says why */ \
	X(EXIT, "exit")         /* alive when its process ended or its image was replaced */ \
	X(OPEN, "open")         /* alive at the end of the trace */
#define X(id, word) HEAP_END_##id,
enum heap_end { HEAP_ENDS(X) HEAP_END_COUNT };
#undef X
extern const char *const heap_end_words[HEAP_END_COUNT];

/** Properties of an allocation. */
enum heap_allocation_flag {
	HEAP_REALLOC = 1,    /**< came from a realloc of an existing block */
	HEAP_MOVED = 2,      /**< the realloc moved it to another address */
	HEAP_TEMPORARY = 4,  /**< freed by the next event of the thread that allocated it */
	HEAP_EARLIER = 8,    /**< began before the trace: live from T = 0, in no total */
	HEAP_NESTED = 16,    /**< lies in another block, so it is in no total but its heap's own */
	HEAP_HAS_NESTED = 32 /**< others lie, or lay, in it */
};

/** A row of the table, unpacked. */
struct heap_allocation {
	int64_t birth_ns;
	int64_t end_ns; /**< of open ones: the end of the trace */
	uint64_t size_bytes : 48, end : 8, flags : 8;
	uint32_t site;     /**< where it was allocated, in heap_table.sites */
	uint32_t end_site; /**< where it was freed or reallocated, or HEAP_NONE */
	uint32_t thread;   /**< that allocated it; its process is the allocation's */
	uint32_t heap;     /**< index in the trace's heaps, or TRACE_NONE */
};

/** The fields that few reports use. */
struct heap_details {
	uint64_t address;
	uint32_t slack_bytes; /**< usable bytes beyond the size, less than HEAP_SLACK_UNKNOWN; or HEAP_SLACK_UNKNOWN */
	uint32_t previous;    /**< the allocation that the realloc took, or HEAP_NONE */
	uint32_t end_thread;  /**< that freed it, or HEAP_NONE */
	/** ordinals of the points that began and ended it, at birth_ns and at end_ns; of a conflict: of the point that
	    began the other block. HEAP_NONE: no event did, or its time is not that of the row */
	uint32_t birth_point, end_point;
};

/** The usable size is unknown. */
#define HEAP_SLACK_UNKNOWN UINT32_MAX

/** Return the usable bytes beyond the size, 0 if they are unknown. */
static inline uint32_t heap_slack(const struct heap_details *details)
{
	return details->slack_bytes == HEAP_SLACK_UNKNOWN ? 0 : details->slack_bytes;
}

/** Return the time from beginning to end, or the age reached, in ns. Times of a trace may be anything: an overflow
    gives INT64_MAX. */
static inline int64_t heap_lifetime_ns(const struct heap_allocation *allocation)
{
	int64_t lifetime_ns;
	return __builtin_sub_overflow(allocation->end_ns, allocation->birth_ns, &lifetime_ns) ? INT64_MAX : lifetime_ns;
}

/** Return whether the allocation is live at a time: from its beginning up to, not at, its end. An allocation from
    before the trace is live from the first time on. */
static inline bool heap_is_live_at(const struct heap_allocation *allocation, int64_t time_ns)
{
	bool has_begun = allocation->birth_ns <= time_ns || allocation->flags & HEAP_EARLIER;
	return has_begun && (allocation->end_ns > time_ns || allocation->end == HEAP_END_OPEN);
}

/** Return whether the end is a free; false: it was live to the end of its process or of the trace. */
static inline bool heap_end_is_given_back(unsigned end)
{
	return end <= HEAP_END_CONFLICT;
}

#endif
