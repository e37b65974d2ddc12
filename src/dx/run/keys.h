/* SPDX-License-Identifier: MIT */
/** A set of distinct keys, numbered in the order in which they came. */
#ifndef XHEAP_DX_KEYS_H
#define XHEAP_DX_KEYS_H

#include "dx/core/query.h"

struct dx_keys {
	struct dx_query *query;
	struct dx_arena *arena;
	const struct dx_value *compare; /**< a lambda that orders two keys; NULL: by their values */
	struct dx_value *keys;
	uint32_t count, absent; /**< absent: the number of the key that is; UINT32_MAX: none is */
	size_t capacity;
	uint32_t *slots; /**< by hash: a key's number plus one; 0: free. NULL with a lambda */
	uint32_t slot_count;
};

/** Begin an empty set; keys are copied to `arena`. */
void dx_keys_init(struct dx_keys *keys, struct dx_query *query, struct dx_arena *arena, const struct dx_value *compare);

/** Return the number of the key that is shown at a place: their order, but that an absent key comes last. */
static inline uint32_t dx_keys_place(const struct dx_keys *keys, uint32_t place)
{
	return place < keys->absent || keys->absent >= keys->count ? place
	       : place + 1 < keys->count                           ? place + 1
								   : keys->absent;
}

/** Return the number of the key, which is added if it is new. */
uint32_t dx_keys_add(struct dx_keys *keys, const struct dx_value *key);

/** Return whether the key is in the set. */
bool dx_keys_has(const struct dx_keys *keys, const struct dx_value *key);

/** Return whether each key is found, and no other (base/check.h). */
bool dx_keys_are_valid(const struct dx_keys *keys);

/** Free what lies outside of the arena. */
void dx_keys_fini(struct dx_keys *keys);

/** Order two keys, by the lambda unless that is NULL. */
int dx_key_order(struct dx_query *query, const struct dx_value *compare, const struct dx_value *one,
		 const struct dx_value *other);

#endif
