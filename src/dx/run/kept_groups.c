/* SPDX-License-Identifier: MIT */
/*
 * GroupBy() as it is written: all elements are kept. They lie in memory, sorted by the numbers of their groups. Beyond
 * parts of the memory there are two sorts in files:
 *
 *     elements of groups whose keys are in memory   by these numbers
 *     other elements                                by their keys; then they go behind the others, by the first element
 *                                                   of their group
 */
#include <stdlib.h>

#include "base/memory.h"
#include "dx/run/group_file.h"
#include "dx/run/interpret.h"
#include "dx/run/keys.h"
#include "dx/run/operators.h"
#include "dx/run/spilled_groups.h"

/* Parts of the memory: for keys, for elements, for those that are sorted at a time, and for a group that is shown. */
enum { KEYS_PART = 4, ELEMENTS_PART = 3, SORTED_PART = 8, GROUP_PART = 8 };

/* Places of groups in files: those in memory have their numbers, others come behind them. */
#define PLACE_SPILLED ((uint64_t)UINT32_MAX + 1)
#define PLACE_ABSENT UINT64_MAX

struct group_state {
	struct dx_keys keys;
	struct dx_list *elements; /* sorted by group, when all are there */
	uint32_t *groups;         /* by element, up to then */
	size_t group_capacity;
	uint32_t *ends; /* by group: where its elements end */
	uint32_t next;
	bool is_made;
	struct dx_spilled_groups placed, by_key;
};

/* ---- in memory ---- */

/* Put the elements of one group together, in their order. */
static void elements_sort(struct dx_iterator *iterator, struct group_state *state)
{
	uint32_t count = dx_list_count(state->elements), group_count = state->keys.count;
	struct dx_element *elements = dx_list_elements(state->elements);
	struct dx_element *sorted = memory_resize(NULL, (size_t)count + 1, sizeof(*sorted));
	uint32_t *next = dx_new(iterator->home, uint32_t, (size_t)group_count + 1);
	state->ends = dx_new(iterator->home, uint32_t, (size_t)group_count + 1);
	for (uint32_t i = 0; i < count; i++)
		state->ends[state->groups[i]]++;
	for (uint32_t i = 1; i < group_count; i++) {
		next[i] = state->ends[i - 1];
		state->ends[i] += state->ends[i - 1];
	}
	for (uint32_t i = 0; i < count; i++)
		sorted[next[state->groups[i]]++] = elements[i];
	for (uint32_t i = 0; i < count; i++)
		elements[i] = sorted[i];
	free(sorted);
}

static struct dx_value memory_group(struct dx_query *query, struct group_state *state, struct dx_value *key)
{
	uint32_t group = dx_keys_place(&state->keys, state->next++);
	uint32_t first = group ? state->ends[group - 1] : 0, end = state->ends[group];
	*key = state->keys.keys[group];
	return dx_group_value(query, state->elements, first, end - first, key);
}

/* ---- in files ---- */

static void sort_begin(struct dx_query *query, struct dx_iterator *iterator, struct dx_spilled_groups *groups)
{
	if (!groups->is_begun)
		dx_spilled_groups_begin(groups, query, iterator, iterator->home,
					query->budget.limit_bytes / SORTED_PART);
}

static void element_place(struct group_state *state, uint32_t group, const struct dx_element *element)
{
	bool is_absent = state->keys.keys[group].kind == DX_ABSENT;
	dx_spilled_groups_add(&state->placed, element, dx_number(is_absent ? PLACE_ABSENT : group), dx_bool(false));
}

/* Sort all elements in files from now on. */
static void elements_place(struct dx_query *query, struct dx_iterator *iterator, struct group_state *state)
{
	sort_begin(query, iterator, &state->placed);
	for (uint32_t i = 0; i < dx_list_count(state->elements) && dx_step_kept(query, iterator); i++)
		element_place(state, state->groups[i], &dx_list_elements(state->elements)[i]);
	dx_list_clear(state->elements);
}

static void element_take(struct dx_query *query, struct dx_iterator *iterator, uint32_t group,
			 const struct dx_element *element)
{
	struct group_state *state = iterator->state;
	uint32_t count = dx_list_count(state->elements);
	if (!state->placed.is_begun && dx_list_bytes_with(state->elements) > query->budget.limit_bytes / ELEMENTS_PART)
		elements_place(query, iterator, state);
	if (state->placed.is_begun) {
		element_place(state, group, element);
		return;
	}
	memory_grow(state->groups, count, state->group_capacity);
	state->groups[count] = group;
	dx_list_add(state->elements, element);
}

static bool is_spilled(struct dx_query *query, struct dx_iterator *iterator, const struct dx_value *key)
{
	struct group_state *state = iterator->state;
	size_t keys_bytes = iterator->home->chunk_bytes + dx_keys_bytes_with(&state->keys);
	if (!dx_spilled_groups_take(&state->keys, key))
		return false;
	if (keys_bytes > query->budget.limit_bytes / KEYS_PART)
		sort_begin(query, iterator, &state->by_key);
	return state->by_key.is_begun;
}

/* Put the groups whose keys were not in memory behind the others. */
static void spilled_place(struct dx_query *query, struct dx_iterator *iterator, struct group_state *state)
{
	struct dx_spilled_groups *from = &state->by_key;
	struct dx_element element;
	if (!state->placed.is_begun)
		elements_place(query, iterator, state);
	dx_spilled_groups_sort(from);
	while (dx_spilled_groups_next(from))
		while (dx_spilled_groups_element(from, &element))
			dx_spilled_groups_add(&state->placed, &element, dx_number(from->fact.number), from->key);
	dx_spilled_groups_end(from);
}

static struct dx_value placed_key(struct dx_query *query, const struct group_state *state)
{
	uint64_t place = state->placed.key.number;
	return place == PLACE_ABSENT   ? (struct dx_value){.kind = DX_ABSENT}
	       : place < PLACE_SPILLED ? state->keys.keys[place]
				       : dx_value_copy(query->arena, &state->placed.fact);
}

/* Return the next group: a list, or a file if it is too long. */
static struct dx_value placed_group(struct dx_query *query, struct dx_iterator *iterator, struct dx_value *key)
{
	struct group_state *state = iterator->state;
	struct dx_list *list = dx_list_new(query, query->arena);
	struct dx_group_file *file = NULL;
	struct dx_element element;
	bool can_write = !state->placed.sorter.is_unspillable;
	*key = placed_key(query, state);
	while (dx_spilled_groups_element(&state->placed, &element)) {
		if (!file && can_write && dx_list_bytes_with(list) > query->budget.limit_bytes / GROUP_PART) {
			file = dx_group_file_new(query->arena);
			for (uint32_t i = 0; i < dx_list_count(list); i++)
				dx_group_file_add(file, &dx_list_elements(list)[i]);
			dx_list_clear(list);
		}
		if (file)
			dx_group_file_add(file, &element);
		else
			dx_list_add(list, &element);
	}
	return file ? dx_group_file_value(query, file, key, iterator->sequence->column)
		    : dx_group_value(query, list, 0, dx_list_count(list), key);
}

/* ---- all of them ---- */

static void group_make(struct dx_query *query, struct dx_iterator *iterator)
{
	struct group_state *state = iterator->state;
	const struct dx_sequence *sequence = iterator->sequence;
	struct dx_element element;
	uint64_t number = PLACE_SPILLED;
	dx_keys_init(&state->keys, query, iterator->home,
		     sequence->argument_count > 1 ? &sequence->arguments[1] : NULL);
	state->elements = dx_list_new(query, iterator->home);
	state->is_made = true;
	dx_each_kept (query, iterator->source, &element, iterator) {
		struct dx_value key = element.value.kind == DX_ERROR
					      ? element.value
					      : dx_call(query, &sequence->arguments[0], &element.value);
		uint32_t group = dx_keys_find(&state->keys, &key);
		number++;
		if (group == state->keys.count && is_spilled(query, iterator, &key)) {
			dx_spilled_groups_add(&state->by_key, &element, key, dx_number(number));
			continue;
		}
		if (group == state->keys.count)
			dx_keys_add(&state->keys, &key);
		element_take(query, iterator, group, &element);
	}
	if (state->by_key.is_begun && !query->is_stopped)
		spilled_place(query, iterator, state);
	if (state->placed.is_begun && !query->is_stopped)
		dx_spilled_groups_sort(&state->placed);
	else if (!query->is_stopped)
		elements_sort(iterator, state);
	free(state->groups);
	state->groups = NULL;
}

static bool group_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct group_state *state = iterator->state;
	if (!state->is_made)
		group_make(query, iterator);
	bool has_next =
		state->placed.is_begun ? dx_spilled_groups_next(&state->placed) : state->next < state->keys.count;
	if (query->is_stopped || !has_next)
		return false;
	element->value = state->placed.is_begun ? placed_group(query, iterator, &element->index)
						: memory_group(query, state, &element->index);
	return true;
}

static void group_close(void *context)
{
	struct group_state *state = context;
	if (state->is_made)
		dx_keys_fini(&state->keys);
	dx_spilled_groups_end(&state->placed);
	dx_spilled_groups_end(&state->by_key);
	free(state->groups);
}

const struct dx_operator dx_group_operator = {
	.name = "GroupBy", .state_bytes = sizeof(struct group_state), .next = group_next, .close = group_close};
