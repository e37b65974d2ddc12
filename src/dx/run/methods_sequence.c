/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "base/text.h"
#include "dx/language/specifier.h"
#include "dx/run/interpret.h"
#include "dx/run/operators.h"
#include "dx/run/sums.h"

struct passed_state {
	uint64_t passed;
	bool is_over;
};

/* ---- collections ---- */

/* An element for which the condition fails with an error stands in its place as that error. */
static bool where_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	dx_each (query, iterator->source, element) {
		if (element->value.kind == DX_ERROR)
			return true;
		struct dx_value passes = dx_call(query, &iterator->sequence->arguments[0], &element->value);
		if (passes.kind == DX_ERROR)
			element->value = passes;
		if (passes.kind == DX_ERROR || dx_is_true(&passes))
			return true;
	}
	return false;
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

static bool skip_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct passed_state *state = iterator->state;
	for (; state->passed < dx_count_of(&iterator->sequence->arguments[0]); state->passed++) {
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
	return state->passed++ < dx_count_of(&iterator->sequence->arguments[0]) &&
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
	dx_each (query, iterator->source, element)
		if (element->value.kind != DX_ERROR)
			return true;
	return false;
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
const struct dx_operator dx_where_operator = {
	.name = "Where", .state_bytes = sizeof(struct passed_state), .next = where_next};
const struct dx_operator dx_select_operator = {.name = "Select", .next = select_next};
const struct dx_operator dx_skip_operator = {
	.name = "Skip", .state_bytes = sizeof(struct passed_state), .next = skip_next};
OPERATOR(skip_while, "SkipWhile", passed_state);
const struct dx_operator dx_take_operator = {
	.name = "Take", .state_bytes = sizeof(struct passed_state), .next = take_next};
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

static void pass_begin(struct element_pass *pass, struct dx_query *query, const struct dx_method_call *call)
{
	*pass = (struct element_pass){.query = query,
				      .iterator = dx_open(query, call->receiver.sequence),
				      .lambda = call->count ? &call->arguments[call->count - 1] : NULL};
	pass->mark = dx_mark(query->arena);
}

static bool pass_next(struct element_pass *pass)
{
	pass->mark = dx_mark(pass->query->arena);
	if (!dx_next(pass->query, pass->iterator, &pass->element))
		return false;
	pass->value = pass->element.value;
	if (pass->lambda && pass->value.kind != DX_ERROR)
		pass->value = dx_call(pass->query, pass->lambda, &pass->element.value);
	return true;
}

static void pass_forget(struct element_pass *pass)
{
	dx_release(pass->query->arena, pass->mark);
}

/* Whether the element passes the condition of First, Count and their like. */
static bool pass_passes(const struct element_pass *pass)
{
	return !pass->lambda || dx_is_true(&pass->value);
}

/* Whether the condition itself is an error: then nobody knows whether the element passes. */
static bool pass_failed(const struct element_pass *pass)
{
	return pass->lambda && pass->value.kind == DX_ERROR && pass->element.value.kind != DX_ERROR;
}

static void call_count(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct element_pass pass;
	uint64_t count = 0;
	const struct dx_element *elements;
	uint32_t kept;
	if (!call->count && dx_sequence_is_list(call->receiver.sequence, &elements, &kept)) {
		*result = dx_number(kept);
		return;
	}
	if (query->planner && query->planner->count && query->planner->count(query, call, result))
		return;
	for (pass_begin(&pass, query, call); pass_next(&pass); pass_forget(&pass)) {
		if (pass_failed(&pass)) {
			*result = pass.value;
			return;
		}
		count += pass_passes(&pass);
	}
	*result = dx_number(count);
}

static void sum_all(struct dx_query *query, struct dx_method_call *call, bool is_average, struct dx_sum *sum)
{
	struct element_pass pass;
	*sum = (struct dx_sum){.number = 0};
	if (query->planner && query->planner->sum && query->planner->sum(query, call, is_average, sum))
		return;
	for (pass_begin(&pass, query, call); pass_next(&pass); pass_forget(&pass))
		if (!dx_sum_add(query, sum, &pass.value))
			return;
}

static void call_sum(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct dx_sum sum;
	sum_all(query, call, false, &sum);
	*result = dx_sum_result(query, &sum);
}

static void call_average(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct dx_sum sum;
	sum_all(query, call, true, &sum);
	if (sum.absent_count)
		dx_note(query, "Average: of %s values; %s are absent", text_count(sum.count).data,
			text_count(sum.absent_count).data);
	*result = dx_sum_average(query, &sum);
}

static void call_all(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct element_pass pass;
	bool is_true = true;
	for (pass_begin(&pass, query, call); is_true && pass_next(&pass); pass_forget(&pass)) {
		if (pass.value.kind == DX_ERROR) {
			*result = pass.value;
			return;
		}
		is_true = pass_passes(&pass);
	}
	*result = dx_bool(is_true);
}

/* With a condition: whether all that are no errors pass. Without one: these elements. */
static void call_all_non_error(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct element_pass pass;
	bool is_true = true;
	if (!call->count) {
		*result = dx_sequence_value(
			dx_sequence_new(query, &non_error_operator, call->receiver.sequence, call->column));
		return;
	}
	for (pass_begin(&pass, query, call); is_true && pass_next(&pass); pass_forget(&pass))
		is_true = pass.value.kind == DX_ERROR || pass_passes(&pass);
	*result = dx_bool(is_true);
}

static void call_any(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct element_pass pass;
	bool is_true = false;
	for (pass_begin(&pass, query, call); !is_true && pass_next(&pass); pass_forget(&pass)) {
		if (pass_failed(&pass)) {
			*result = pass.value;
			return;
		}
		is_true = pass_passes(&pass);
	}
	*result = dx_bool(is_true);
}

/* A value that lasts while what it was made of is given back. kept_begin() begins, kept_end() ends it. */
struct kept_value {
	struct dx_arena arenas[2]; /* the value may be made of the one before */
	unsigned at;
	struct dx_value value;
};

static void kept_begin(struct kept_value *kept, struct dx_query *query)
{
	*kept = (struct kept_value){.at = 0};
	dx_arena_init(&kept->arenas[0], &query->budget);
	dx_arena_init(&kept->arenas[1], &query->budget);
}

static void kept_set(struct kept_value *kept, const struct dx_value *value)
{
	kept->at ^= 1;
	dx_release(&kept->arenas[kept->at], (struct dx_mark){NULL, NULL, NULL});
	kept->value = dx_value_copy(&kept->arenas[kept->at], value);
}

/* Set the result to it; if there is none, to the error of a method. */
static void kept_end(struct kept_value *kept, struct dx_query *query, const struct dx_method_call *call, bool has_any,
		     const char *error, struct dx_value *result)
{
	*result = has_any ? dx_value_copy(query->arena, &kept->value)
			  : dx_error(query, "%s: %s", call->method->name, error);
	dx_arena_fini(&kept->arenas[0]);
	dx_arena_fini(&kept->arenas[1]);
}

/* The first element that passes, or the last one. */
static void find(struct dx_query *query, struct dx_method_call *call, bool is_first, bool skips_errors,
		 struct dx_value *result)
{
	struct kept_value found;
	struct element_pass pass;
	bool has_any = false;
	kept_begin(&found, query);
	for (pass_begin(&pass, query, call); pass_next(&pass); pass_forget(&pass)) {
		bool has_failed = !skips_errors && pass_failed(&pass);
		if (!has_failed && ((skips_errors && pass.value.kind == DX_ERROR) || !pass_passes(&pass)))
			continue;
		kept_set(&found, has_failed ? &pass.value : &pass.element.value);
		has_any = true;
		if (has_failed || is_first)
			break;
	}
	kept_end(&found, query, call, has_any, "there is no such element", result);
}

static void call_first(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	find(query, call, true, false, result);
}
static void call_last(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	find(query, call, false, false, result);
}
static void call_first_non_error(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	find(query, call, true, true, result);
}
static void call_last_non_error(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	find(query, call, false, true, result);
}

static void call_single(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct element_pass pass;
	bool has_one = false;
	*result = dx_error(query, "Single: there is no such element");
	for (pass_begin(&pass, query, call); pass_next(&pass);) {
		if (pass_failed(&pass)) {
			*result = pass.value;
			return;
		}
		if (!pass_passes(&pass)) {
			pass_forget(&pass);
			continue;
		}
		*result = has_one ? dx_error(query, "Single: there are several such elements") : pass.element.value;
		if (has_one)
			return;
		has_one = true;
	}
}

/* The least or greatest value; those that objects lack do not count. */
static void find_extreme(struct dx_query *query, struct dx_method_call *call, int direction, struct dx_value *result)
{
	struct kept_value kept;
	const struct dx_value *best = &kept.value;
	struct element_pass pass;
	int order;
	if (query->planner && query->planner->extreme && query->planner->extreme(query, call, direction > 0, result))
		return;
	kept_begin(&kept, query);
	for (pass_begin(&pass, query, call); pass_next(&pass) && best->kind != DX_ERROR; pass_forget(&pass)) {
		if (pass.value.kind == DX_ABSENT)
			continue;
		if (best->kind != DX_ABSENT && pass.value.kind != DX_ERROR && !dx_compare(&pass.value, best, &order))
			pass.value = dx_error(query, "%s: %s and %s have no order", call->method->name,
					      dx_kind_name(best->kind), dx_kind_name(pass.value.kind));
		else if (best->kind != DX_ABSENT && pass.value.kind != DX_ERROR && order * direction <= 0)
			continue;
		kept_set(&kept, &pass.value);
	}
	kept_end(&kept, query, call, best->kind != DX_ABSENT, "there are no elements", result);
}

static void call_min(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	find_extreme(query, call, -1, result);
}
static void call_max(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	find_extreme(query, call, 1, result);
}

/* Say which element the value, or a member of it, became absent with. */
static void note_absent(struct dx_query *query, const struct dx_value *value, const struct dx_value *index)
{
	const struct dx_record *record =
		value->kind == DX_OBJECT && value->class == &dx_record_class ? value->data : NULL;
	const char *at = dx_show(query, index, 0);
	if (value->kind == DX_ABSENT)
		dx_note(query, "Aggregate: absent from element [%s] on", at);
	for (uint32_t i = 0; record && i < record->count; i++)
		if (record->values[i].kind == DX_ABSENT)
			dx_note(query, "Aggregate: %s is absent from element [%s] on", record->names[i], at);
}

/* Aggregate(start, (sum, x) => ...) or Aggregate((sum, x) => ...). */
static void call_aggregate(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	struct kept_value sum;
	const struct dx_value *lambda = &call->arguments[call->count - 1];
	bool has_sum = call->count == 2;
	struct dx_element element;
	if (lambda->kind != DX_LAMBDA || lambda->closure->node->count != 2) {
		*result = dx_error(query, "Aggregate: the last argument must be a lambda, (sum, x) => ...");
		return;
	}
	kept_begin(&sum, query);
	if (has_sum)
		kept_set(&sum, &call->arguments[0]);
	struct dx_iterator *iterator = dx_open(query, call->receiver.sequence);
	dx_each (query, iterator, &element) {
		struct dx_value next = has_sum ? dx_call_two(query, lambda, &sum.value, &element.value) : element.value;
		kept_set(&sum, &next);
		note_absent(query, &next, &element.index);
		has_sum = true;
		if (!dx_step(query, call->method->name, call->column))
			break;
	}
	kept_end(&sum, query, call, has_sum, "there are no elements", result);
}

const struct dx_method dx_methods_of_sequences[] = {
	DX_LAZY("Where", "c", DX_RESULT_SAME, &dx_where_operator, "x => condition",
		"the elements for which it is true"),
	DX_LAZY("Select", "f", DX_RESULT_LAMBDA, &dx_select_operator, "x => value",
		"what the lambda makes of each element"),
	DX_LAZY("Flatten", "?f", DX_RESULT_FLAT, &flatten_operator, "[x => collection]",
		"the elements of all elements, one collection behind the other"),
	DX_LAZY("Skip", "n", DX_RESULT_SAME, &dx_skip_operator, "count", "the elements behind the first ones"),
	DX_LAZY("SkipWhile", "c", DX_RESULT_SAME, &skip_while_operator, "x => condition",
		"the elements from the first one on for which it is false"),
	DX_LAZY("Take", "n", DX_RESULT_SAME, &dx_take_operator, "count", "the first elements"),
	DX_LAZY("TakeWhile", "c", DX_RESULT_SAME, &take_while_operator, "x => condition",
		"the elements up to the first one for which it is false"),
	DX_LAZY("Concat", "s", DX_RESULT_SAME, &concat_operator, "collection", "these elements, then those"),
	DX_EAGER("Count", "?c", DX_RESULT_KIND, DX_NUMBER, call_count, "[x => condition]", "the number of elements"),
	DX_EAGER("Sum", "?m", DX_RESULT_KIND, DX_ANY, call_sum, "[x => number]",
		 "the sum; what an object lacks adds nothing"),
	DX_EAGER("Average", "?m", DX_RESULT_KIND, DX_REAL, call_average, "[x => number]",
		 "the mean (not in the documents)"),
	DX_EAGER("Aggregate", "v?v", DX_RESULT_KIND, DX_ANY, call_aggregate, "[start,] (sum, x) => value",
		 "the last value of a running computation (not in the documents)"),
	DX_EAGER("All", "c", DX_RESULT_KIND, DX_BOOL, call_all, "x => condition",
		 "whether it is true for all elements"),
	DX_EAGER("AllNonError", "?c", DX_RESULT_PASSES, DX_ANY, call_all_non_error, "[x => condition]",
		 "whether it is true for all elements but errors; without a condition: these elements"),
	DX_EAGER("Any", "?c", DX_RESULT_KIND, DX_BOOL, call_any, "[x => condition]",
		 "whether there is such an element"),
	DX_EAGER("First", "?c", DX_RESULT_ELEMENT, DX_ANY, call_first, "[x => condition]", "the first such element"),
	DX_EAGER("Last", "?c", DX_RESULT_ELEMENT, DX_ANY, call_last, "[x => condition]", "the last such element"),
	DX_EAGER("FirstNonError", "?c", DX_RESULT_ELEMENT, DX_ANY, call_first_non_error, "[x => condition]",
		 "the first such element that is no error"),
	DX_EAGER("LastNonError", "?c", DX_RESULT_ELEMENT, DX_ANY, call_last_non_error, "[x => condition]",
		 "the last such element that is no error"),
	DX_EAGER("Single", "?c", DX_RESULT_ELEMENT, DX_ANY, call_single, "[x => condition]",
		 "the only such element; an error if there is another number of them"),
	DX_EAGER("Min", "?o", DX_RESULT_OF_LAMBDA, DX_ANY, call_min, "[x => value]", "the least value"),
	DX_EAGER("Max", "?o", DX_RESULT_OF_LAMBDA, DX_ANY, call_max, "[x => value]", "the greatest value"),
	{0},
};
