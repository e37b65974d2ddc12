/* SPDX-License-Identifier: MIT */
/* Orders; groups are in kept_groups.c. */
#include <stdlib.h>

#include "base/memory.h"
#include "dx/run/interpret.h"
#include "dx/run/keys.h"
#include "dx/run/operators.h"
#include "dx/run/sorter.h"

enum { ORDER_KEYS_MAX = 8, ORDER_PART = 3 /* of the memory, for elements that are sorted at a time */ };

/* ---- orders ---- */

/* The steps of an order: OrderBy, then each ThenBy. */
struct order {
	struct dx_query *query;
	const struct dx_sequence *steps[ORDER_KEYS_MAX];
	uint32_t count;
};

struct order_state {
	struct order order;
	struct dx_sorter sorter;
	struct dx_ahead ahead; /* of elements in memory */
	bool is_made;
};

/* Return what the order is of; NULL after an error. */
static const struct dx_sequence *order_steps(struct dx_query *query, const struct dx_sequence *sequence,
					     struct order *order)
{
	const struct dx_sequence *at = sequence;
	*order = (struct order){.query = query};
	while (dx_operator_is_then(at->operation) && dx_operator_is_order(at->source->operation) &&
	       order->count < ORDER_KEYS_MAX - 1) {
		order->steps[order->count++] = at;
		at = at->source;
	}
	if (dx_operator_is_then(at->operation)) {
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

static int keys_order(const void *context, const struct dx_element *one, const struct dx_element *other)
{
	const struct order *order = context;
	for (uint32_t i = 0; i < order->count; i++) {
		const struct dx_sequence *step = order->steps[i];
		const struct dx_value *a = &one[i].value, *b = &other[i].value;
		const struct dx_value *comparator = step->argument_count > 1 ? &step->arguments[1] : NULL;
		/* Errors come first, so that Take() shows them, and absent keys last, whichever way the others go. */
		if (a->kind != b->kind && (a->kind == DX_ERROR || b->kind == DX_ERROR))
			return a->kind == DX_ERROR ? -1 : 1;
		if (a->kind != b->kind && (a->kind == DX_ABSENT || b->kind == DX_ABSENT))
			return a->kind == DX_ABSENT ? 1 : -1;
		int result = dx_key_order(order->query, comparator, a, b);
		if (result)
			return dx_operator_is_descending(step->operation) ? -result : result;
	}
	return 0;
}

static void order_make(struct dx_query *query, struct dx_iterator *iterator)
{
	struct order_state *state = iterator->state;
	const struct order *order = &state->order;
	struct dx_arena *arena = query->arena;
	struct dx_value keys[ORDER_KEYS_MAX];
	struct dx_element element;
	const struct dx_sequence *of = order_steps(query, iterator->sequence, &state->order);
	state->is_made = true;
	if (!of)
		return;
	state->sorter = (struct dx_sorter){.compare = keys_order,
					   .context = order,
					   .key_count = order->count,
					   .memory_bytes = query->budget.limit_bytes / ORDER_PART};
	dx_sorter_begin(&state->sorter, query, iterator, iterator->home);
	query->arena = iterator->home;
	struct dx_iterator *source = dx_open(query, of);
	query->arena = arena;
	dx_each_kept (query, source, &element, iterator) {
		for (uint32_t i = 0; i < order->count; i++)
			keys[i] = dx_call(query, &order->steps[i]->arguments[0], &element.value);
		dx_sorter_add(&state->sorter, &element, keys);
	}
	dx_sorter_sort(&state->sorter);
}

static bool ahead_get(struct dx_query *query, const struct dx_ahead *ahead, uint32_t i, struct dx_value *value)
{
	const struct order_state *state = ahead->context;
	(void)query;
	*value = dx_sorter_at(&state->sorter, i)->value;
	return true;
}

static bool order_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct order_state *state = iterator->state;
	if (!state->is_made) {
		order_make(query, iterator);
		state->ahead = (struct dx_ahead){.get = ahead_get, .context = state, .count = state->sorter.count};
	}
	if (query->is_stopped || !dx_sorter_next(&state->sorter, element, NULL))
		return false;
	if (!state->sorter.heads)
		dx_ahead_pass(query, &state->ahead);
	return true;
}

static void order_close(void *context)
{
	struct order_state *state = context;
	dx_ahead_end(&state->ahead);
	dx_sorter_end(&state->sorter);
}

#define ORDER(id, text) \
	const struct dx_operator id = {.name = (text), \
				       .state_bytes = sizeof(struct order_state), \
				       .opens_source = true, \
				       .next = order_next, \
				       .close = order_close}
ORDER(dx_order_operator, "OrderBy");
ORDER(dx_order_descending_operator, "OrderByDescending");
ORDER(dx_then_operator, "ThenBy");
ORDER(dx_then_descending_operator, "ThenByDescending");

const struct dx_method dx_methods_of_order[] = {
	DX_LAZY("OrderBy", "o?g", DX_RESULT_SAME, &dx_order_operator, "x => key [, (a, b) => order]",
		"the elements in the order of their keys; equal keys keep their order"),
	DX_LAZY("OrderByDescending", "o?g", DX_RESULT_SAME, &dx_order_descending_operator,
		"x => key [, (a, b) => order]", "the same, the greatest key first"),
	DX_LAZY("ThenBy", "o?g", DX_RESULT_SAME, &dx_then_operator, "x => key [, (a, b) => order]",
		"behind OrderBy: the order of elements whose keys are equal (not in the documents)"),
	DX_LAZY("ThenByDescending", "o?g", DX_RESULT_SAME, &dx_then_descending_operator, "x => key [, (a, b) => order]",
		"the same, the greatest key first (not in the documents)"),
	DX_LAZY("GroupBy", "f?g", DX_RESULT_GROUPS, &dx_group_operator, "x => key [, (a, b) => order]",
		"collections of elements with equal keys; a group's index is its key, and so is its member Key; an "
		"absent key comes "
		"last"),
	{0},
};
