/* SPDX-License-Identifier: MIT */
/* Methods of collections that take one element after the other and keep none. */
#include <math.h>

#include "dx/methods.h"

struct passed_state {
	uint64_t passed;
	bool is_over;
};

/* ---- collections ---- */

/* An element for which the condition fails with an error stands in its place as that error. */
static bool where_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	for (;;) {
		struct dx_mark mark = dx_mark(query->arena);
		if (!dx_next(query, iterator->source, element))
			return false;
		if (element->value.kind == DX_ERROR)
			return true;
		struct dx_value passes = dx_call(query, &iterator->sequence->arguments[0], &element->value);
		if (passes.kind == DX_ERROR)
			element->value = passes;
		if (passes.kind == DX_ERROR || dx_is_true(&passes))
			return true;
		dx_release(query->arena, mark);
	}
}

static bool select_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	if (!dx_next(query, iterator->source, element))
		return false;
	if (element->value.kind != DX_ERROR)
		element->value = dx_call(query, &iterator->sequence->arguments[0], &element->value);
	return true;
}

struct flatten_state {
	struct dx_arena arena; /* of the inner iterator and what it goes through */
	struct dx_iterator *inner;
	uint64_t passed;
	bool has_arena;
};

static bool flatten_enter(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct flatten_state *state = iterator->state;
	struct dx_arena *outer = query->arena;
	struct dx_value sequence;
	if (state->has_arena)
		dx_arena_fini(&state->arena);
	dx_arena_init(&state->arena, &query->budget);
	state->has_arena = true;
	state->inner = NULL;
	query->arena = &state->arena;
	bool has_next = dx_next(query, iterator->source, element);
	if (has_next && iterator->sequence->argument_count && element->value.kind != DX_ERROR)
		element->value = dx_call(query, &iterator->sequence->arguments[0], &element->value);
	if (has_next && dx_elements(query, &element->value, &sequence))
		state->inner = dx_open(query, sequence.sequence);
	query->arena = outer;
	return has_next;
}

static bool flatten_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct flatten_state *state = iterator->state;
	for (;;) {
		if (state->inner && dx_next(query, state->inner, element))
			break;
		if (query->is_stopped || !flatten_enter(query, iterator, element))
			return false;
		/* An element without elements stands for itself. */
		if (!state->inner)
			break;
	}
	element->index = dx_number(state->passed++);
	return true;
}

static void flatten_close(void *context)
{
	struct flatten_state *state = context;
	if (state->has_arena)
		dx_arena_fini(&state->arena);
}

static uint64_t count_of(const struct dx_value *value)
{
	if (value->kind == DX_REAL)
		return value->real > 0 ? (uint64_t)value->real : 0;
	return value->is_signed && (int64_t)value->number < 0 ? 0 : value->number;
}

static bool skip_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct passed_state *state = iterator->state;
	for (; state->passed < count_of(&iterator->sequence->arguments[0]); state->passed++) {
		struct dx_mark mark = dx_mark(query->arena);
		if (!dx_next(query, iterator->source, element))
			return false;
		dx_release(query->arena, mark);
	}
	return dx_next(query, iterator->source, element);
}

static bool skip_while_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct passed_state *state = iterator->state;
	while (!state->is_over) {
		struct dx_mark mark = dx_mark(query->arena);
		if (!dx_next(query, iterator->source, element))
			return false;
		struct dx_value skips = dx_call(query, &iterator->sequence->arguments[0], &element->value);
		if (!dx_is_true(&skips)) {
			state->is_over = true;
			return true;
		}
		dx_release(query->arena, mark);
	}
	return dx_next(query, iterator->source, element);
}

static bool take_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct passed_state *state = iterator->state;
	return state->passed++ < count_of(&iterator->sequence->arguments[0]) &&
	       dx_next(query, iterator->source, element);
}

static bool take_while_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct passed_state *state = iterator->state;
	if (state->is_over || !dx_next(query, iterator->source, element))
		return false;
	struct dx_value takes = dx_call(query, &iterator->sequence->arguments[0], &element->value);
	state->is_over = !dx_is_true(&takes);
	return !state->is_over;
}

static bool non_error_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	for (;;) {
		struct dx_mark mark = dx_mark(query->arena);
		if (!dx_next(query, iterator->source, element))
			return false;
		if (element->value.kind != DX_ERROR)
			return true;
		dx_release(query->arena, mark);
	}
}

struct concat_state {
	struct dx_iterator *second;
	uint64_t passed;
};

static bool concat_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct concat_state *state = iterator->state;
	if (!state->second && !dx_next(query, iterator->source, element)) {
		struct dx_arena *arena = query->arena;
		query->arena = iterator->home;
		state->second = dx_open(query, iterator->sequence->arguments[0].sequence);
		query->arena = arena;
	}
	if (state->second && !dx_next(query, state->second, element))
		return false;
	element->index = dx_number(state->passed++);
	return true;
}

#define OPERATOR(id, text, state) \
	static const struct dx_operator id##_operator = { \
		.name = (text), .state_bytes = sizeof(struct state), .next = id##_next}
OPERATOR(where, "Where", passed_state);
OPERATOR(select, "Select", passed_state);
OPERATOR(skip, "Skip", passed_state);
OPERATOR(skip_while, "SkipWhile", passed_state);
OPERATOR(take, "Take", passed_state);
OPERATOR(take_while, "TakeWhile", passed_state);
OPERATOR(non_error, "AllNonError", passed_state);
OPERATOR(concat, "Concat", concat_state);
static const struct dx_operator flatten_operator = {
	.name = "Flatten", .state_bytes = sizeof(struct flatten_state), .next = flatten_next, .close = flatten_close};

/* ---- values ---- */

/* A loop over the elements of a call. `value` is the element, or what the call's lambda makes of it. */
struct element_pass {
	struct dx_query *query;
	struct dx_iterator *iterator;
	const struct dx_value *lambda; /* NULL: none */
	struct dx_element element;
	struct dx_value value;
	struct dx_mark mark;
};

static void walk_begin(struct element_pass *walk, struct dx_query *query, const struct dx_method_call *call)
{
	*walk = (struct element_pass){.query = query,
				      .iterator = dx_open(query, call->receiver.sequence),
				      .lambda = call->count ? &call->arguments[call->count - 1] : NULL};
	walk->mark = dx_mark(query->arena);
}

static bool walk_next(struct element_pass *walk)
{
	walk->mark = dx_mark(walk->query->arena);
	if (!dx_next(walk->query, walk->iterator, &walk->element))
		return false;
	walk->value = walk->element.value;
	if (walk->lambda && walk->value.kind != DX_ERROR)
		walk->value = dx_call(walk->query, walk->lambda, &walk->element.value);
	return true;
}

static void walk_forget(struct element_pass *walk)
{
	dx_release(walk->query->arena, walk->mark);
}

/* Whether the element passes the condition of First, Count and their like. */
static bool walk_passes(const struct element_pass *walk)
{
	return !walk->lambda || dx_is_true(&walk->value);
}

static void call_count(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct element_pass walk;
	uint64_t count = 0;
	const struct dx_element *elements;
	uint32_t kept;
	if (!call->count && dx_sequence_is_list(call->receiver.sequence, &elements, &kept)) {
		*result = dx_number(kept);
		return;
	}
	for (walk_begin(&walk, query, call); walk_next(&walk); walk_forget(&walk))
		count += walk_passes(&walk);
	*result = dx_number(count);
}

/* Add numbers; members that objects lack count as nothing. An error is the result. */
struct sum {
	__int128 number;
	double real;
	uint64_t count;
	bool is_real, is_too_large;
	struct dx_value error;
};

static void sum_add(struct dx_query *query, struct sum *sum, const struct dx_value *value)
{
	if (value->kind == DX_ABSENT)
		return;
	sum->count++;
	if (value->kind == DX_REAL) {
		sum->real += value->real;
		sum->is_real = true;
	} else if (value->kind == DX_NUMBER || value->kind == DX_BOOL) {
		sum->number += value->kind == DX_BOOL ? (__int128)value->truth
			       : value->is_signed     ? (__int128)(int64_t)value->number
						      : (__int128)value->number;
	} else if (value->kind == DX_ERROR) {
		sum->error = *value;
	} else {
		sum->error = dx_error(query, "a sum is of numbers, not of %s", dx_kind_name(value->kind));
	}
}

static bool sum_all(struct dx_query *query, struct dx_method_call *call, struct sum *sum)
{
	struct element_pass walk;
	*sum = (struct sum){.number = 0};
	for (walk_begin(&walk, query, call); walk_next(&walk); walk_forget(&walk)) {
		sum_add(query, sum, &walk.value);
		if (sum->error.kind == DX_ERROR)
			return false;
	}
	return true;
}

static void call_sum(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct sum sum;
	if (!sum_all(query, call, &sum))
		*result = sum.error;
	else if (sum.is_real)
		*result = dx_real(sum.real + (double)sum.number);
	else if (sum.number > (__int128)UINT64_MAX || sum.number < (__int128)INT64_MIN)
		*result = dx_error(query, "the sum has more than 64 bits");
	else
		*result = sum.number < 0 ? dx_signed((int64_t)sum.number) : dx_number((uint64_t)sum.number);
}

static void call_average(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct sum sum;
	if (!sum_all(query, call, &sum))
		*result = sum.error;
	else if (!sum.count)
		*result = dx_error(query, "Average: there are no elements");
	else
		*result = dx_real((sum.real + (double)sum.number) / (double)sum.count);
}

static void call_all(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct element_pass walk;
	bool is_true = true;
	for (walk_begin(&walk, query, call); is_true && walk_next(&walk); walk_forget(&walk))
		is_true = walk_passes(&walk);
	*result = dx_bool(is_true);
}

static void call_any(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct element_pass walk;
	bool is_true = false;
	for (walk_begin(&walk, query, call); !is_true && walk_next(&walk); walk_forget(&walk))
		is_true = walk_passes(&walk);
	*result = dx_bool(is_true);
}

static void find_first(struct dx_query *query, struct dx_method_call *call, bool skips_errors, struct dx_value *result)
{
	struct element_pass walk;
	*result = dx_error(query, "%s: there is no such element", call->method->name);
	for (walk_begin(&walk, query, call); walk_next(&walk); walk_forget(&walk)) {
		if ((skips_errors && walk.value.kind == DX_ERROR) || !walk_passes(&walk))
			continue;
		*result = walk.element.value;
		return;
	}
}

/* The last one so far lies in an arena of its own, since the loop releases what it goes through. */
static void find_last(struct dx_query *query, struct dx_method_call *call, bool skips_errors, struct dx_value *result)
{
	struct dx_arena kept[2];
	struct dx_value last = {.kind = DX_ABSENT};
	struct element_pass walk;
	bool has_any = false;
	unsigned at = 0;
	dx_arena_init(&kept[0], &query->budget);
	dx_arena_init(&kept[1], &query->budget);
	for (walk_begin(&walk, query, call); walk_next(&walk); walk_forget(&walk)) {
		if ((skips_errors && walk.value.kind == DX_ERROR) || !walk_passes(&walk))
			continue;
		at ^= 1;
		dx_release(&kept[at], (struct dx_mark){NULL, NULL, NULL});
		last = dx_value_copy(&kept[at], &walk.element.value);
		has_any = true;
	}
	*result = has_any ? dx_value_copy(query->arena, &last)
			  : dx_error(query, "%s: there is no such element", call->method->name);
	dx_arena_fini(&kept[0]);
	dx_arena_fini(&kept[1]);
}

static void call_first(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	find_first(query, call, false, result);
}
static void call_last(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	find_last(query, call, false, result);
}
static void call_first_non_error(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	find_first(query, call, true, result);
}
static void call_last_non_error(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	find_last(query, call, true, result);
}

static void call_single(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct element_pass walk;
	bool has_one = false;
	*result = dx_error(query, "Single: there is no such element");
	for (walk_begin(&walk, query, call); walk_next(&walk);) {
		if (!walk_passes(&walk)) {
			walk_forget(&walk);
			continue;
		}
		*result = has_one ? dx_error(query, "Single: there are several such elements") : walk.element.value;
		if (has_one)
			return;
		has_one = true;
	}
}

/* The least or greatest value; those that objects lack do not count. */
static void find_extreme(struct dx_query *query, struct dx_method_call *call, int direction, struct dx_value *result)
{
	struct dx_arena kept[2];
	struct dx_value best = {.kind = DX_ABSENT};
	struct element_pass walk;
	unsigned at = 0;
	int order;
	dx_arena_init(&kept[0], &query->budget);
	dx_arena_init(&kept[1], &query->budget);
	for (walk_begin(&walk, query, call); walk_next(&walk) && best.kind != DX_ERROR; walk_forget(&walk)) {
		if (walk.value.kind == DX_ABSENT)
			continue;
		if (best.kind != DX_ABSENT && walk.value.kind != DX_ERROR && !dx_compare(&walk.value, &best, &order))
			walk.value = dx_error(query, "%s: %s and %s have no order", call->method->name,
					      dx_kind_name(best.kind), dx_kind_name(walk.value.kind));
		else if (best.kind != DX_ABSENT && walk.value.kind != DX_ERROR && order * direction <= 0)
			continue;
		at ^= 1;
		dx_release(&kept[at], (struct dx_mark){NULL, NULL, NULL});
		best = dx_value_copy(&kept[at], &walk.value);
	}
	*result = best.kind == DX_ABSENT ? dx_error(query, "%s: there are no elements", call->method->name)
					 : dx_value_copy(query->arena, &best);
	dx_arena_fini(&kept[0]);
	dx_arena_fini(&kept[1]);
}

static void call_min(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	find_extreme(query, call, -1, result);
}
static void call_max(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	find_extreme(query, call, 1, result);
}

/* Aggregate(start, (sum, x) => ...) or Aggregate((sum, x) => ...). */
static void call_aggregate(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct dx_arena kept[2];
	struct dx_value sum = {.kind = DX_ABSENT};
	const struct dx_value *lambda = &call->arguments[call->count - 1];
	bool has_sum = call->count == 2;
	struct dx_element element;
	unsigned at = 0;
	if (lambda->kind != DX_LAMBDA || lambda->closure->node->count != 2) {
		*result = dx_error(query, "Aggregate: the last argument must be a lambda, (sum, x) => ...");
		return;
	}
	dx_arena_init(&kept[0], &query->budget);
	dx_arena_init(&kept[1], &query->budget);
	if (has_sum)
		sum = dx_value_copy(&kept[0], &call->arguments[0]);
	struct dx_iterator *iterator = dx_open(query, call->receiver.sequence);
	for (;;) {
		struct dx_mark mark = dx_mark(query->arena);
		if (!dx_next(query, iterator, &element))
			break;
		struct dx_value next = has_sum ? dx_call_two(query, lambda, &sum, &element.value) : element.value;
		at ^= 1;
		dx_release(&kept[at], (struct dx_mark){NULL, NULL, NULL});
		sum = dx_value_copy(&kept[at], &next);
		has_sum = true;
		dx_release(query->arena, mark);
	}
	*result = has_sum ? dx_value_copy(query->arena, &sum) : dx_error(query, "Aggregate: there are no elements");
	dx_arena_fini(&kept[0]);
	dx_arena_fini(&kept[1]);
}

#define LAZY(word, arguments, result, operator, shown, help) \
	{ \
		word, DX_OF_SEQUENCE, NULL, arguments, result, DX_SEQUENCE, NULL, operator, NULL, shown, help \
	}
#define EAGER(name, arguments, result, kind, call, shown, help) \
	{ \
		name, DX_OF_SEQUENCE, NULL, arguments, result, kind, NULL, NULL, call, shown, help \
	}

const struct dx_method dx_methods_of_sequences[] = {
	LAZY("Where", "f", DX_RESULT_SAME, &where_operator, "x => condition", "the elements for which it is true"),
	LAZY("Select", "f", DX_RESULT_LAMBDA, &select_operator, "x => value", "what the lambda makes of each element"),
	LAZY("Flatten", "?f", DX_RESULT_FLAT, &flatten_operator, "[x => collection]",
	     "the elements of all elements, one collection behind the other"),
	LAZY("Skip", "n", DX_RESULT_SAME, &skip_operator, "count", "the elements behind the first ones"),
	LAZY("SkipWhile", "f", DX_RESULT_SAME, &skip_while_operator, "x => condition",
	     "the elements from the first one on for which it is false"),
	LAZY("Take", "n", DX_RESULT_SAME, &take_operator, "count", "the first elements"),
	LAZY("TakeWhile", "f", DX_RESULT_SAME, &take_while_operator, "x => condition",
	     "the elements up to the first one for which it is false"),
	LAZY("AllNonError", "", DX_RESULT_SAME, &non_error_operator, "", "the elements that are no errors"),
	LAZY("Concat", "s", DX_RESULT_SAME, &concat_operator, "collection", "these elements, then those"),
	EAGER("Count", "?f", DX_RESULT_KIND, DX_NUMBER, call_count, "[x => condition]", "the number of elements"),
	EAGER("Sum", "?f", DX_RESULT_KIND, DX_ANY, call_sum, "[x => number]",
	      "the sum; what an object lacks adds nothing"),
	EAGER("Average", "?f", DX_RESULT_KIND, DX_REAL, call_average, "[x => number]",
	      "the mean (not in the documents)"),
	EAGER("Aggregate", "v?v", DX_RESULT_KIND, DX_ANY, call_aggregate, "[start,] (sum, x) => value",
	      "the last value of a running computation (not in the documents)"),
	EAGER("All", "f", DX_RESULT_KIND, DX_BOOL, call_all, "x => condition", "whether it is true for all elements"),
	EAGER("Any", "?f", DX_RESULT_KIND, DX_BOOL, call_any, "[x => condition]", "whether there is such an element"),
	EAGER("First", "?f", DX_RESULT_ELEMENT, DX_ANY, call_first, "[x => condition]", "the first such element"),
	EAGER("Last", "?f", DX_RESULT_ELEMENT, DX_ANY, call_last, "[x => condition]", "the last such element"),
	EAGER("FirstNonError", "?f", DX_RESULT_ELEMENT, DX_ANY, call_first_non_error, "[x => condition]",
	      "the first such element that is no error"),
	EAGER("LastNonError", "?f", DX_RESULT_ELEMENT, DX_ANY, call_last_non_error, "[x => condition]",
	      "the last such element that is no error"),
	EAGER("Single", "?f", DX_RESULT_ELEMENT, DX_ANY, call_single, "[x => condition]",
	      "the only such element; an error if there is another number of them"),
	EAGER("Min", "?f", DX_RESULT_OF_LAMBDA, DX_ANY, call_min, "[x => value]", "the least value"),
	EAGER("Max", "?f", DX_RESULT_OF_LAMBDA, DX_ANY, call_max, "[x => value]", "the greatest value"),
	{NULL},
};
