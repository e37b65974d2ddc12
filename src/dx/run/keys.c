/* SPDX-License-Identifier: MIT */
#include "dx/run/keys.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "dx/run/interpret.h"

enum { SLOTS_MIN = 64 };

int dx_key_order(struct dx_query *query, const struct dx_value *compare, const struct dx_value *one,
		 const struct dx_value *other)
{
	if (!compare)
		return dx_order(one, other);
	assert(compare->kind == DX_LAMBDA);
	struct dx_mark mark = dx_mark(query->arena);
	struct dx_value result = dx_call_two(query, compare, one, other);
	int order = 0;
	if (result.kind == DX_NUMBER && result.number)
		order = result.is_signed && (int64_t)result.number < 0 ? -1 : 1;
	else if (result.kind == DX_BOOL)
		order = result.truth ? -1 : 1;
	else if (result.kind == DX_ERROR)
		dx_stop(query, compare->closure->node->column, "the comparator failed: %s", result.text);
	else if (result.kind != DX_NUMBER)
		dx_stop(query, compare->closure->node->column, "the comparator must return -1, 0 or 1, not %s",
			dx_kind_name(result.kind));
	dx_release(query->arena, mark);
	return order;
}

void dx_keys_init(struct dx_keys *keys, struct dx_query *query, struct dx_arena *arena, const struct dx_value *compare)
{
	*keys = (struct dx_keys){.query = query, .arena = arena, .compare = compare, .absent = UINT32_MAX};
}

/* The slot of the key, or the free one where it belongs. */
static uint32_t *slot_of(const struct dx_keys *keys, const struct dx_value *key)
{
	uint32_t mask = keys->slot_count - 1;
	assert(keys->count < keys->slot_count);
	for (uint32_t at = (uint32_t)dx_hash(key) & mask;; at = (at + 1) & mask)
		if (!keys->slots[at] || !dx_order(&keys->keys[keys->slots[at] - 1], key))
			return &keys->slots[at];
}

static void slots_grow(struct dx_keys *keys)
{
	struct dx_budget *budget = keys->arena->budget;
	budget->used_bytes -= keys->slot_count * sizeof(*keys->slots);
	free(keys->slots);
	keys->slot_count = keys->slot_count ? keys->slot_count * 2 : SLOTS_MIN;
	keys->slots = memory_zeroed(keys->slot_count, sizeof(*keys->slots));
	budget->used_bytes += keys->slot_count * sizeof(*keys->slots);
	budget->is_exceeded |= budget->used_bytes > budget->limit_bytes;
	for (uint32_t i = 0; i < keys->count; i++)
		*slot_of(keys, &keys->keys[i]) = i + 1;
}

/* With a lambda there is no hash: all keys are compared. */
static uint32_t find_by_lambda(const struct dx_keys *keys, const struct dx_value *key)
{
	for (uint32_t i = 0; i < keys->count && !keys->query->is_stopped; i++)
		if (!dx_key_order(keys->query, keys->compare, &keys->keys[i], key))
			return i;
	return keys->count;
}

static void key_append(struct dx_keys *keys, const struct dx_value *key)
{
	struct dx_budget *budget = keys->arena->budget;
	budget->used_bytes -= keys->capacity * sizeof(*keys->keys);
	memory_grow(keys->keys, keys->count, keys->capacity);
	budget->used_bytes += keys->capacity * sizeof(*keys->keys);
	budget->is_exceeded |= budget->used_bytes > budget->limit_bytes;
	if (key->kind == DX_ABSENT)
		keys->absent = keys->count;
	keys->keys[keys->count++] = dx_value_copy(keys->arena, key);
}

uint32_t dx_keys_add(struct dx_keys *keys, const struct dx_value *key)
{
	if (keys->compare) {
		uint32_t found = find_by_lambda(keys, key);
		if (found == keys->count)
			key_append(keys, key);
		return found;
	}
	if (keys->count * 2 >= keys->slot_count)
		slots_grow(keys);
	uint32_t *slot = slot_of(keys, key);
	if (!*slot) {
		key_append(keys, key);
		*slot = keys->count;
	}
	return *slot - 1;
}

bool dx_keys_has(const struct dx_keys *keys, const struct dx_value *key)
{
	if (keys->compare)
		return find_by_lambda(keys, key) < keys->count;
	return keys->slot_count && *slot_of(keys, key);
}

bool dx_keys_are_valid(const struct dx_keys *keys)
{
	uint32_t used = 0;
	if (keys->count > keys->capacity || (keys->compare && keys->slots))
		return false;
	for (uint32_t i = 0; i < keys->slot_count; i++) {
		used += keys->slots[i] != 0;
		if (keys->slots[i] > keys->count)
			return false;
	}
	for (uint32_t i = 0; i < keys->count && keys->slots; i++)
		if (*slot_of(keys, &keys->keys[i]) != i + 1)
			return false;
	return !keys->slots || used == keys->count;
}

void dx_keys_fini(struct dx_keys *keys)
{
	CHECK_VALID(dx_keys_are_valid(keys));
	if (keys->slots)
		keys->arena->budget->used_bytes -= keys->slot_count * sizeof(*keys->slots);
	if (keys->keys)
		keys->arena->budget->used_bytes -= keys->capacity * sizeof(*keys->keys);
	free(keys->slots);
	free(keys->keys);
	keys->slots = NULL;
	keys->keys = NULL;
}
