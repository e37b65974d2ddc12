/* SPDX-License-Identifier: MIT */
/** Elements that are put together in groups by an external sort: a group comes at a time, in the order of keys, with
    its elements in their order. */
#ifndef XHEAP_DX_SPILLED_GROUPS_H
#define XHEAP_DX_SPILLED_GROUPS_H

#include "dx/run/keys.h"
#include "dx/run/sorter.h"

enum { DX_SPILLED_KEYS = 2 };

/** All is zero before dx_spilled_groups_begin(). */
struct dx_spilled_groups {
	struct dx_sorter sorter;
	struct dx_value key, fact; /**< of the group under way; the fact is what its first element was added with */
	bool is_begun;
	/* The next element, in one of two arenas, by turns; and the arena of the key. */
	struct dx_element ahead;
	struct dx_value ahead_keys[DX_SPILLED_KEYS];
	bool has_ahead;
	struct dx_arena arenas[2], key_arena;
	unsigned at;
};

/** Whether groups with this key may be spilled. That with an absent key is the last one in any case, and keys that a
    lambda compares cannot be sorted. */
bool dx_spilled_groups_take(const struct dx_keys *keys, const struct dx_value *key);

/** Begin, in memory of so many bytes. It lives until `arena` is released, and ends with dx_spilled_groups_end(). */
void dx_spilled_groups_begin(struct dx_spilled_groups *groups, struct dx_query *query,
			     const struct dx_iterator *iterator, struct dx_arena *arena, size_t memory_bytes);

/** Add a copy of an element of the group with this key. */
void dx_spilled_groups_add(struct dx_spilled_groups *groups, const struct dx_element *element, struct dx_value key,
			   struct dx_value fact);

/** Sort, when all elements are there. */
void dx_spilled_groups_sort(struct dx_spilled_groups *groups);

/** Go to the next group. False: there is none. */
bool dx_spilled_groups_next(struct dx_spilled_groups *groups);

/** Set the next element of the group, which is there until the next call. False: there is none. */
bool dx_spilled_groups_element(struct dx_spilled_groups *groups, struct dx_element *element);

/** End it; nothing happens if it has not begun. */
void dx_spilled_groups_end(struct dx_spilled_groups *groups);

#endif
