/* SPDX-License-Identifier: MIT */
/* Methods that keep all elements, or all keys: orders and groups. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "dx/group_sums.h"
#include "dx/keys.h"
#include "dx/methods.h"
#include "dx/query_plan.h"

enum { ORDER_KEYS_MAX = 8 };

/* ---- orders ---- */

struct order_state {
	struct dx_list *elements, *keys; /* `key_count` keys for each element */
	uint32_t *numbers;               /* of elements, in order */
	uint32_t count, next;
	bool is_made;
};

static bool is_then(const struct dx_operator *operator)
{
	return operator== & dx_then_operator || operator== & dx_then_descending_operator;
}

static bool is_descending(const struct dx_operator *operator)
{
	return operator== & dx_order_descending_operator || operator== & dx_then_descending_operator;
}

/* The steps of an order: OrderBy, then each ThenBy. */
struct order {
	struct dx_query *query;
	const struct dx_sequence *steps[ORDER_KEYS_MAX];
	uint32_t count;
	const struct dx_element *keys;
};

static bool is_order(const struct dx_operator *operator)
{
	return is_then(operator) || operator== & dx_order_operator || operator== & dx_order_descending_operator;
}

/* Return what the order is of; NULL after an error. */
static const struct dx_sequence *order_steps(struct dx_query *query, const struct dx_sequence *sequence,
					     struct order *order)
{
	const struct dx_sequence *at = sequence;
	*order = (struct order){.query = query};
	while (is_then(at->operator) && is_order(at->source->operator) && order->count < ORDER_KEYS_MAX - 1) {
		order->steps[order->count++] = at;
		at = at->source;
	}
	if (is_then(at->operator)) {
		dx_stop(query, at->column, "ThenBy stands behind OrderBy, and at most seven times");
		return NULL;
	}
	order->steps[order->count++] = at;
	for (uint32_t i = 0; i < order->count / 2; i++) {
		const struct dx_sequence *swapped = order->steps[i];
		order->steps[i] = order->steps[order->count - 1 - i];
		order->steps[order->count - 1 - i] = swapped;
	}
	return at->source;
}

static int keys_order(const struct order *order, uint32_t one, uint32_t other)
{
	for (uint32_t i = 0; i < order->count; i++) {
		const struct dx_sequence *step = order->steps[i];
		const struct dx_value *a = &order->keys[(size_t)one * order->count + i].value,
				      *b = &order->keys[(size_t)other * order->count + i].value;
		int result = dx_key_order(order->query, step->argument_count > 1 ? &step->arguments[1] : NULL, a, b);
		if (result)
			return is_descending(step->operator) ? -result : result;
	}
	return 0;
}

/* Sort by merging from the bottom up, stably. */
static uint32_t *numbers_sort(const struct order *order, uint32_t *numbers, uint32_t *scratch, uint32_t count)
{
	for (uint64_t width = 1; width < count; width *= 2) {
		for (uint64_t start = 0; start < count; start += 2 * width) {
			uint64_t middle = start + width < count ? start + width : count;
			uint64_t end = start + 2 * width < count ? start + 2 * width : count;
			for (uint64_t left = start, right = middle, to = start; to < end; to++) {
				bool is_left = right >= end ||
					       (left < middle && keys_order(order, numbers[left], numbers[right]) <= 0);
				scratch[to] = numbers[is_left ? left++ : right++];
			}
			if (!dx_step(order->query, "OrderBy", order->steps[0]->column))
				return numbers;
		}
		uint32_t *swapped = numbers;
		numbers = scratch;
		scratch = swapped;
	}
	return numbers;
}

static void order_collect(struct dx_query *query, struct dx_iterator *iterator, const struct order *order,
			  struct dx_iterator *source)
{
	struct order_state *state = iterator->state;
	struct dx_element element;
	for (;;) {
		struct dx_mark mark = dx_mark(query->arena);
		if (!dx_next(query, source, &element))
			break;
		dx_list_add(state->elements, &element);
		for (uint32_t i = 0; i < order->count; i++) {
			const struct dx_element key = {dx_call(query, &order->steps[i]->arguments[0], &element.value),
						       dx_bool(false)};
			dx_list_add(state->keys, &key);
		}
		dx_release(query->arena, mark);
		dx_step_kept(query, iterator);
	}
}

static void order_make(struct dx_query *query, struct dx_iterator *iterator)
{
	struct order_state *state = iterator->state;
	struct dx_arena *arena = query->arena;
	struct order order;
	const struct dx_sequence *of = order_steps(query, iterator->sequence, &order);
	state->is_made = true;
	if (!of)
		return;
	query->arena = iterator->home;
	state->elements = dx_list_new(query, iterator->home);
	state->keys = dx_list_new(query, iterator->home);
	struct dx_iterator *source = dx_open(query, of);
	query->arena = arena;
	order_collect(query, iterator, &order, source);
	state->count = dx_list_count(state->elements);
	order.keys = dx_list_elements(state->keys);
	if (query->is_stopped || !state->count)
		return;
	if (!dx_has_room(iterator->home, 2 * sizeof(uint32_t) * (size_t)state->count)) {
		dx_step(query, "OrderBy", iterator->sequence->column);
		return;
	}
	uint32_t *numbers = dx_new(iterator->home, uint32_t, state->count);
	uint32_t *scratch = dx_new(iterator->home, uint32_t, state->count);
	for (uint32_t i = 0; i < state->count; i++)
		numbers[i] = i;
	state->numbers = numbers_sort(&order, numbers, scratch, state->count);
}

static bool order_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct order_state *state = iterator->state;
	if (!state->is_made)
		order_make(query, iterator);
	if (query->is_stopped || state->next == state->count)
		return false;
	*element = dx_list_elements(state->elements)[state->numbers[state->next++]];
	return true;
}

#define ORDER(id, text) \
	const struct dx_operator id = { \
		.name = (text), .state_bytes = sizeof(struct order_state), .opens_source = true, .next = order_next}
ORDER(dx_order_operator, "OrderBy");
ORDER(dx_order_descending_operator, "OrderByDescending");
ORDER(dx_then_operator, "ThenBy");
ORDER(dx_then_descending_operator, "ThenByDescending");

/* ---- groups ---- */

struct group_state {
	struct dx_keys keys;
	struct dx_list *elements; /* sorted by group */
	uint32_t *ends;           /* by group: where its elements end */
	uint32_t next;
	bool is_made;
};

/* Put the elements of one group together, in their order. */
static void elements_sort(struct dx_iterator *iterator, struct group_state *state, const uint32_t *groups)
{
	uint32_t count = dx_list_count(state->elements), group_count = state->keys.count;
	struct dx_element *elements = dx_list_elements(state->elements);
	struct dx_element *sorted = memory_resize(NULL, (size_t)count + 1, sizeof(*sorted));
	uint32_t *next = dx_new(iterator->home, uint32_t, (size_t)group_count + 1);
	state->ends = dx_new(iterator->home, uint32_t, (size_t)group_count + 1);
	for (uint32_t i = 0; i < count; i++)
		state->ends[groups[i]]++;
	for (uint32_t i = 1; i < group_count; i++) {
		next[i] = state->ends[i - 1];
		state->ends[i] += state->ends[i - 1];
	}
	for (uint32_t i = 0; i < count; i++)
		sorted[next[groups[i]]++] = elements[i];
	for (uint32_t i = 0; i < count; i++)
		elements[i] = sorted[i];
	free(sorted);
}

static void group_make(struct dx_query *query, struct dx_iterator *iterator)
{
	struct group_state *state = iterator->state;
	const struct dx_sequence *sequence = iterator->sequence;
	struct dx_element element;
	uint32_t *groups = NULL;
	size_t capacity = 0;
	dx_keys_init(&state->keys, query, iterator->home,
		     sequence->argument_count > 1 ? &sequence->arguments[1] : NULL);
	state->elements = dx_list_new(query, iterator->home);
	state->is_made = true;
	for (;;) {
		struct dx_mark mark = dx_mark(query->arena);
		if (!dx_next(query, iterator->source, &element))
			break;
		struct dx_value key = element.value.kind == DX_ERROR
					      ? element.value
					      : dx_call(query, &sequence->arguments[0], &element.value);
		uint32_t count = dx_list_count(state->elements);
		memory_grow(groups, count, capacity);
		groups[count] = dx_keys_add(&state->keys, &key);
		dx_list_add(state->elements, &element);
		dx_release(query->arena, mark);
		dx_step_kept(query, iterator);
	}
	if (!query->is_stopped)
		elements_sort(iterator, state, groups);
	free(groups);
}

static bool group_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct group_state *state = iterator->state;
	if (!state->is_made)
		group_make(query, iterator);
	if (query->is_stopped || state->next == state->keys.count)
		return false;
	uint32_t first = state->next ? state->ends[state->next - 1] : 0, end = state->ends[state->next];
	element->index = state->keys.keys[state->next++];
	element->value = dx_list_value(query, state->elements, first, end - first);
	return true;
}

static void group_close(void *context)
{
	struct group_state *state = context;
	if (state->is_made)
		dx_keys_fini(&state->keys);
}

const struct dx_operator dx_group_operator = {
	.name = "GroupBy", .state_bytes = sizeof(struct group_state), .next = group_next, .close = group_close};

#define LAZY(name, arguments, result, operator, shown, help) \
	{ \
		name, DX_OF_SEQUENCE, NULL, arguments, result, DX_SEQUENCE, NULL, operator, NULL, shown, help \
	}

const struct dx_method dx_methods_of_order[] = {
	LAZY("OrderBy", "f?g", DX_RESULT_SAME, &dx_order_operator, "x => key [, (a, b) => order]",
	     "the elements in the order of their keys; equal keys keep their order"),
	LAZY("OrderByDescending", "f?g", DX_RESULT_SAME, &dx_order_descending_operator, "x => key [, (a, b) => order]",
	     "the same, the greatest key first"),
	LAZY("ThenBy", "f?g", DX_RESULT_SAME, &dx_then_operator, "x => key [, (a, b) => order]",
	     "behind OrderBy: the order of elements whose keys are equal (not in the documents)"),
	LAZY("ThenByDescending", "f?g", DX_RESULT_SAME, &dx_then_descending_operator, "x => key [, (a, b) => order]",
	     "the same, the greatest key first (not in the documents)"),
	LAZY("GroupBy", "f?g", DX_RESULT_GROUPS, &dx_group_operator, "x => key [, (a, b) => order]",
	     "collections of elements with equal keys; a group's index is its key"),
	{NULL},
};
