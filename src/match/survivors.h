/* SPDX-License-Identifier: MIT */
/** Survivors: allocations that were live when their group was packed. Each is kept whole until all of its group have
    ended; then their ends are packed. */
#ifndef XHEAP_MATCH_SURVIVORS_H
#define XHEAP_MATCH_SURVIVORS_H

#include "table/groups.h"

/** A survivor. */
struct survivor {
	struct heap_allocation allocation;
	uint32_t end_thread, end_point;
};

struct survivors;

/** Make an empty set for these groups; NULL: the ends of their rows are not kept. */
struct survivors *survivors_new(struct heap_groups *groups);

/** Make room for a table of this many rows. */
void survivors_reserve(struct survivors *survivors, size_t row_count);

/** Add row `id`; ids ascend. Rows below it that were not added did not survive. end_point: of a live row, as in
    matching_end_point(), or HEAP_NONE. */
void survivors_add(struct survivors *survivors, uint32_t id, const struct heap_allocation *allocation,
		   uint32_t end_point);

/** Return the row's survivor, or NULL. Valid until the next call for its group. */
struct survivor *survivors_find(const struct survivors *survivors, uint32_t id);

/** Return the survivor around an allocation that is part of one. */
static inline struct survivor *survivor_of(struct heap_allocation *allocation)
{
	return (struct survivor *)((char *)allocation - offsetof(struct survivor, allocation));
}

/** Prefetch what survivors_find() of the row reads first. */
void survivors_expect(const struct survivors *survivors, uint32_t id);
/** Prefetch the row's survivor; to be called some time after survivors_expect(). */
void survivors_expect_more(const struct survivors *survivors, uint32_t id);

/** Note that the row has ended. */
void survivors_end(struct survivors *survivors, uint32_t id);

/** Note that all rows below `id` were added or did not survive. */
void survivors_complete(struct survivors *survivors, uint32_t id);

/** Pack the ends of groups that still have survivors. open_end_ns: the end of the trace. */
void survivors_finish(struct survivors *survivors, int64_t open_end_ns);
/** Free the set. */
void survivors_free(struct survivors *survivors);

/** Whether each group's are found by their rows, and those that live are counted (base/check.h). */
bool survivors_is_valid(const struct survivors *survivors);

#endif
