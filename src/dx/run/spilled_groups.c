/* SPDX-License-Identifier: MIT */
#include "dx/run/spilled_groups.h"

#include <assert.h>

enum { KEY_GROUP, KEY_FACT };

static int keys_order(const void *context, const struct dx_element *one, const struct dx_element *other)
{
	(void)context;
	return dx_order(&one[KEY_GROUP].value, &other[KEY_GROUP].value);
}

bool dx_spilled_groups_take(const struct dx_keys *keys, const struct dx_value *key)
{
	return key->kind != DX_ABSENT && !keys->compare && dx_spill_takes(key);
}

void dx_spilled_groups_begin(struct dx_spilled_groups *groups, struct dx_query *query,
			     const struct dx_iterator *iterator, struct dx_arena *arena, size_t memory_bytes)
{
	groups->is_begun = true;
	groups->sorter =
		(struct dx_sorter){.compare = keys_order, .key_count = DX_SPILLED_KEYS, .memory_bytes = memory_bytes};
	dx_sorter_begin(&groups->sorter, query, iterator, arena);
	dx_arena_init(&groups->arenas[0], &query->budget);
	dx_arena_init(&groups->arenas[1], &query->budget);
	dx_arena_init(&groups->key_arena, &query->budget);
}

void dx_spilled_groups_add(struct dx_spilled_groups *groups, const struct dx_element *element, struct dx_value key,
			   struct dx_value fact)
{
	const struct dx_value keys[DX_SPILLED_KEYS] = {[KEY_GROUP] = key, [KEY_FACT] = fact};
	assert(groups->is_begun);
	dx_sorter_add(&groups->sorter, element, keys);
}

static void ahead_read(struct dx_spilled_groups *groups)
{
	struct dx_query *query = groups->sorter.query;
	struct dx_arena *arena = query->arena;
	groups->at ^= 1;
	dx_arena_clear(&groups->arenas[groups->at]);
	query->arena = &groups->arenas[groups->at];
	groups->has_ahead = dx_sorter_next(&groups->sorter, &groups->ahead, groups->ahead_keys);
	query->arena = arena;
}

void dx_spilled_groups_sort(struct dx_spilled_groups *groups)
{
	dx_sorter_sort(&groups->sorter);
	ahead_read(groups);
}

bool dx_spilled_groups_next(struct dx_spilled_groups *groups)
{
	if (!groups->has_ahead)
		return false;
	dx_arena_clear(&groups->key_arena);
	groups->key = dx_value_copy(&groups->key_arena, &groups->ahead_keys[KEY_GROUP]);
	groups->fact = dx_value_copy(&groups->key_arena, &groups->ahead_keys[KEY_FACT]);
	return true;
}

bool dx_spilled_groups_element(struct dx_spilled_groups *groups, struct dx_element *element)
{
	if (!groups->has_ahead || dx_order(&groups->key, &groups->ahead_keys[KEY_GROUP]) != 0)
		return false;
	*element = groups->ahead;
	ahead_read(groups);
	return dx_step_kept(groups->sorter.query, groups->sorter.iterator);
}

void dx_spilled_groups_end(struct dx_spilled_groups *groups)
{
	if (!groups->is_begun)
		return;
	dx_sorter_end(&groups->sorter);
	dx_arena_fini(&groups->arenas[0]);
	dx_arena_fini(&groups->arenas[1]);
	dx_arena_fini(&groups->key_arena);
	groups->is_begun = groups->has_ahead = false;
}
