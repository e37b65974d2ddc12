/* SPDX-License-Identifier: MIT */
/** Allocations that lived when their group was packed, whole, until all of the group's have ended and their ends are
    packed, too. */
#ifndef XHEAP_MATCH_SURVIVORS_H
#define XHEAP_MATCH_SURVIVORS_H

#include "table/groups.h"

struct survivor {
	struct heap_allocation allocation;
	uint32_t end_thread;
	uint8_t row; /**< of its group */
};

struct survivors;

struct survivors *survivors_new(struct heap_groups *groups);

/** Make room for a table of so many rows. */
void survivors_reserve(struct survivors *survivors, size_t row_count);

/** Add row `id`, a greater one each time. Rows up to it that were not added did not survive. */
void survivors_add(struct survivors *survivors, uint32_t id, const struct heap_allocation *allocation);

/** The row's, or NULL. Valid until the next call for its group. */
struct survivor *survivors_find(const struct survivors *survivors, uint32_t id);

/** Of a survivor's allocation, the survivor. */
static inline struct survivor *survivor_of(struct heap_allocation *allocation)
{
	return (struct survivor *)((char *)allocation - offsetof(struct survivor, allocation));
}

/** The row will be asked for soon: first this, then that. */
void survivors_expect(const struct survivors *survivors, uint32_t id);
void survivors_expect_more(const struct survivors *survivors, uint32_t id);

/** The row that was found has ended. */
void survivors_end(struct survivors *survivors, uint32_t id);

/** All rows before `id` have been added or did not survive. */
void survivors_complete(struct survivors *survivors, uint32_t id);

/** Ends of those groups, too, that have survivors still; open_end_ns: the end of the trace. */
void survivors_finish(struct survivors *survivors, int64_t open_end_ns);
void survivors_free(struct survivors *survivors);

/** Whether each group's are found by their rows, and those that live are counted (base/check.h). */
bool survivors_is_valid(const struct survivors *survivors);

#endif
