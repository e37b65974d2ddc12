/* SPDX-License-Identifier: MIT */
/**
 * What an index knows beside its allocations, so that fewer of them are read: checkpoints of what is live, and the
 * sizes of each group.
 *
 * A checkpoint lies between two groups. It has copies of all allocations of the groups before it that live longer than
 * its time. So the heap at a later moment, and all that a later window wants, is among these and the groups behind the
 * checkpoint:
 *
 *     groups       | 0 1 2 3 | 4 5 6 7 | 8 9 ...            at T: the copies of checkpoint 1, and groups 4, 5, 6
 *     checkpoints            1         2                          up to the first that begins behind T
 *                                   T
 *
 * A checkpoint is made when enough has begun and ended since the last one, by what is live: so copies are at most two
 * thirds of all allocations, and the heap at any moment costs about what is live then, and as much again at most.
 */
#ifndef XHEAP_TABLE_CHECKPOINTS_H
#define XHEAP_TABLE_CHECKPOINTS_H

#include "table/groups.h"

struct heap_table;

struct heap_checkpoint {
	int64_t time_ns;
	uint32_t next_group;           /**< the first group behind it */
	uint32_t first_copies, copies; /**< groups of copies */
	uint32_t reserved;
};
_Static_assert(sizeof(struct heap_checkpoint) == 24, "the index has them as they are");

/** The least and the greatest size of a group's allocations. */
struct heap_sizes {
	uint64_t least, greatest;
};

/** All of an index. Zero it to begin. */
struct heap_checkpoints {
	struct heap_checkpoint *items;
	uint32_t count;
	size_t capacity;
	/** the copies, in groups that have rows only; their number is in open_count. The file is that of the table's
	    groups */
	struct heap_groups copies;
	struct heap_sizes *sizes; /**< by group of the table; NULL: not known */
};

/** Make the checkpoints of a complete table: write the copies to its file behind its groups. Without memory of the disk
    there are none. Return false if the table is damaged. */
bool heap_checkpoints_make(struct heap_checkpoints *checkpoints, const struct heap_table *table, uint64_t *end);

/** Return the last checkpoint before a time; NULL: there is none. */
const struct heap_checkpoint *heap_checkpoints_find(const struct heap_checkpoints *checkpoints, int64_t time_ns);

/** Return whether checkpoints from a file are possible for so many groups. */
bool heap_checkpoints_are_good(const struct heap_checkpoints *checkpoints, uint32_t group_count);

void heap_checkpoints_fini(struct heap_checkpoints *checkpoints);

#endif
