/* SPDX-License-Identifier: MIT */
#include "dx/core/sequence.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "dx/core/query.h"

struct dx_sequence *dx_sequence_new(struct dx_query *query, const struct dx_operator *operation,
				    const struct dx_sequence *source, int column)
{
	struct dx_sequence *sequence = dx_new(query->arena, struct dx_sequence, 1);
	assert(operation && operation->next);
	sequence->operation = operation;
	sequence->source = source;
	sequence->column = column;
	return sequence;
}

static void iterator_close(void *context)
{
	struct dx_iterator *iterator = context;
	if (iterator->sequence->operation->close)
		iterator->sequence->operation->close(iterator->state);
	dx_arena_fini(iterator->home);
	free(iterator);
}

/* The iterator, its state and its home are not in the arena, whose end may be released while they grow. */
struct dx_iterator *dx_open(struct dx_query *query, const struct dx_sequence *sequence)
{
	struct dx_iterator *source = NULL;
	CHECK_VALID(dx_sequence_is_valid(sequence));
	const struct dx_sequence *planned = query->planner ? query->planner->sequence(query, sequence) : NULL;
	if (planned)
		sequence = planned;
	bool has_source = sequence->source && !sequence->operation->opens_source;
	if (has_source && dx_enter(query))
		source = dx_open(query, sequence->source);
	if (has_source)
		dx_leave(query);
	struct dx_iterator *iterator = memory_zeroed(1, sizeof(*iterator) + sizeof(*iterator->home));
	iterator->home = (struct dx_arena *)(iterator + 1);
	dx_arena_init(iterator->home, &query->budget);
	iterator->sequence = sequence;
	iterator->source = source;
	iterator->state = dx_alloc(iterator->home, sequence->operation->state_bytes);
	dx_on_release(query->arena, iterator_close, iterator);
	if (sequence->operation->open && !query->is_stopped)
		sequence->operation->open(query, iterator);
	return iterator;
}

bool dx_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	if (!dx_step(query, iterator->sequence->operation->name, iterator->sequence->column))
		return false;
	*element = (struct dx_element){.value = {.kind = DX_ABSENT}};
	if (iterator->sequence->source && !iterator->source && !iterator->sequence->operation->opens_source)
		return false;
	bool has_next = dx_enter(query) && iterator->sequence->operation->next(query, iterator, element);
	dx_leave(query);
	assert(!has_next || (dx_value_is_valid(&element->value) && dx_value_is_valid(&element->index)));
	return has_next && !query->is_stopped;
}

bool dx_step_kept(struct dx_query *query, const struct dx_iterator *iterator)
{
	assert(iterator && iterator->sequence);
	return dx_step(query, iterator->sequence->operation->name, iterator->sequence->column);
}

/* ---- lists ---- */

struct dx_list {
	struct dx_arena arena;
	uint32_t references, count;
	size_t capacity;
	struct dx_element *elements;
};

static void list_release(void *context)
{
	struct dx_list *list = context;
	assert(list->references > 0);
	if (--list->references)
		return;
	list->arena.budget->used_bytes -= list->capacity * sizeof(*list->elements);
	dx_arena_fini(&list->arena);
	free(list->elements);
	free(list);
}

static void list_hold(struct dx_list *list, struct dx_arena *arena)
{
	list->references++;
	dx_on_release(arena, list_release, list);
}

struct dx_list *dx_list_new(struct dx_query *query, struct dx_arena *arena)
{
	struct dx_list *list = memory_zeroed(1, sizeof(*list));
	dx_arena_init(&list->arena, &query->budget);
	list_hold(list, arena);
	return list;
}

void dx_list_add(struct dx_list *list, const struct dx_element *element)
{
	struct dx_budget *budget = list->arena.budget;
	if (list->count == list->capacity) {
		budget->used_bytes -= list->capacity * sizeof(*list->elements);
		memory_grow(list->elements, list->count, list->capacity);
		budget->used_bytes += list->capacity * sizeof(*list->elements);
		budget->is_exceeded |= budget->used_bytes > budget->limit_bytes;
	}
	list->elements[list->count++] = (struct dx_element){dx_value_copy(&list->arena, &element->value),
							    dx_value_copy(&list->arena, &element->index)};
}

void dx_list_clear(struct dx_list *list)
{
	dx_arena_fini(&list->arena);
	list->arena.budget->used_bytes -= list->capacity * sizeof(*list->elements);
	free(list->elements);
	list->elements = NULL;
	list->count = 0;
	list->capacity = 0;
}

size_t dx_list_growth(const struct dx_list *list)
{
	bool is_full = list->count == list->capacity;
	return is_full ? (memory_capacity(list->capacity, list->count + (size_t)1) - list->capacity) *
				 sizeof(*list->elements)
		       : 0;
}

uint32_t dx_list_count(const struct dx_list *list)
{
	return list->count;
}

struct dx_element *dx_list_elements(const struct dx_list *list)
{
	return list->elements;
}

/* The elements [arguments[0], arguments[1]) of the list that `data` of arguments[2] is; of a group, its key, too. */
enum { LIST_FIRST, LIST_END, LIST_ITSELF, LIST_ARGUMENTS, LIST_KEY = LIST_ARGUMENTS, GROUP_ARGUMENTS };

struct list_state {
	uint64_t passed;
};

static bool list_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	(void)query;
	struct list_state *state = iterator->state;
	const struct dx_value *arguments = iterator->sequence->arguments;
	const struct dx_list *list = arguments[LIST_ITSELF].data;
	uint64_t at = arguments[LIST_FIRST].number + state->passed;
	if (at >= arguments[LIST_END].number)
		return false;
	*element = list->elements[at];
	state->passed++;
	return true;
}

static const struct dx_operator list_operator = {
	.name = "list", .state_bytes = sizeof(struct list_state), .next = list_next};

struct dx_value dx_list_value(struct dx_query *query, struct dx_list *list, uint32_t first, uint32_t count)
{
	struct dx_sequence *sequence = dx_sequence_new(query, &list_operator, NULL, 0);
	CHECK_VALID(dx_list_is_valid(list));
	assert((uint64_t)first + count <= list->count);
	list_hold(list, query->arena);
	sequence->argument_count = LIST_ARGUMENTS;
	sequence->arguments[LIST_FIRST] = dx_number(first);
	sequence->arguments[LIST_END] = dx_number((uint64_t)first + count);
	sequence->arguments[LIST_ITSELF] = (struct dx_value){.kind = DX_ABSENT, .data = list};
	return dx_sequence_value(sequence);
}

struct dx_value dx_group_value(struct dx_query *query, struct dx_list *list, uint32_t first, uint32_t count,
			       const struct dx_value *key)
{
	struct dx_value value = dx_list_value(query, list, first, count);
	struct dx_sequence *sequence = (struct dx_sequence *)value.sequence;
	sequence->argument_count = GROUP_ARGUMENTS;
	sequence->arguments[LIST_KEY] = *key;
	return value;
}

const struct dx_value *dx_sequence_key(const struct dx_sequence *sequence)
{
	bool is_group = sequence->operation == &list_operator && sequence->argument_count == GROUP_ARGUMENTS;
	return is_group ? &sequence->arguments[LIST_KEY] : NULL;
}

bool dx_sequence_is_list(const struct dx_sequence *sequence, const struct dx_element **elements, uint32_t *count)
{
	if (sequence->operation != &list_operator)
		return false;
	const struct dx_list *list = sequence->arguments[LIST_ITSELF].data;
	*elements = list->elements + sequence->arguments[LIST_FIRST].number;
	*count = (uint32_t)(sequence->arguments[LIST_END].number - sequence->arguments[LIST_FIRST].number);
	return true;
}

bool dx_list_is_valid(const struct dx_list *list)
{
	bool is_valid = list->references && list->count <= list->capacity && dx_arena_is_valid(&list->arena);
	for (uint32_t i = 0; is_valid && i < list->count; i++)
		is_valid = dx_value_is_valid(&list->elements[i].value) && dx_value_is_valid(&list->elements[i].index);
	return is_valid;
}

static bool list_part_is_valid(const struct dx_sequence *sequence)
{
	const struct dx_list *list = sequence->arguments[LIST_ITSELF].data;
	uint64_t first = sequence->arguments[LIST_FIRST].number, end = sequence->arguments[LIST_END].number;
	return sequence->argument_count >= LIST_ARGUMENTS && sequence->argument_count <= GROUP_ARGUMENTS && list &&
	       first <= end && end <= list->count;
}

bool dx_sequence_is_valid(const struct dx_sequence *sequence)
{
	bool is_valid = true;
	for (; is_valid && sequence; sequence = sequence->source) {
		is_valid = sequence->operation && sequence->operation->name && sequence->operation->next &&
			   sequence->argument_count <= DX_ARGUMENTS_MAX &&
			   (sequence->operation != &list_operator || list_part_is_valid(sequence));
		for (unsigned i = 0; is_valid && i < sequence->argument_count; i++)
			is_valid = dx_value_is_valid(&sequence->arguments[i]);
	}
	return is_valid;
}

/* The part of the list that the sequence has, in memory that lasts as long as the arena. */
static void list_copy(struct dx_arena *arena, struct dx_sequence *copy)
{
	const struct dx_list *list = copy->arguments[LIST_ITSELF].data;
	uint64_t first = copy->arguments[LIST_FIRST].number, end = copy->arguments[LIST_END].number;
	struct dx_list *made = memory_zeroed(1, sizeof(*made));
	dx_arena_init(&made->arena, arena->budget);
	made->arena.is_lasting = true;
	list_hold(made, arena);
	for (uint64_t at = first; at < end && !arena->budget->is_exceeded; at++)
		dx_list_add(made, &list->elements[at]);
	copy->arguments[LIST_FIRST] = dx_number(0);
	copy->arguments[LIST_END] = dx_number(made->count);
	copy->arguments[LIST_ITSELF].data = made;
}

const struct dx_sequence *dx_sequence_copy(struct dx_arena *arena, const struct dx_sequence *sequence)
{
	if (!sequence)
		return NULL;
	struct dx_sequence *copy = dx_new(arena, struct dx_sequence, 1);
	*copy = *sequence;
	if (arena->is_lasting)
		copy->column = -1; /* of another text than the query that uses it */
	arena->budget->copy_depth++;
	copy->source = dx_sequence_copy(arena, sequence->source);
	arena->budget->copy_depth--;
	if (dx_sequence_key(sequence))
		copy->arguments[LIST_KEY] = dx_value_copy(arena, dx_sequence_key(sequence));
	if (sequence->operation == &list_operator && arena->is_lasting) {
		list_copy(arena, copy);
		return copy;
	}
	if (sequence->operation == &list_operator) {
		list_hold((struct dx_list *)sequence->arguments[LIST_ITSELF].data, arena);
		return copy;
	}
	for (unsigned i = 0; i < sequence->argument_count; i++)
		copy->arguments[i] = dx_value_copy(arena, &sequence->arguments[i]);
	return copy;
}
