/* SPDX-License-Identifier: MIT */
/* Methods that compare elements with each other, or collections. */
#include "dx/run/interpret.h"
#include "dx/run/keys.h"
#include "dx/run/operators.h"

struct set_state {
	struct dx_keys seen, others; /* others: of the argument, complete before the first element */
	struct dx_iterator *second;
	uint64_t passed;
	bool is_begun;
};

static const struct dx_value *comparator_of(const struct dx_sequence *sequence, unsigned number)
{
	return sequence->argument_count > number ? &sequence->arguments[number] : NULL;
}

static void keys_collect(struct dx_query *query, struct dx_iterator *iterator, struct dx_keys *keys,
			 const struct dx_sequence *sequence)
{
	struct dx_element element;
	struct dx_mark mark = dx_mark(query->arena);
	struct dx_iterator *other = dx_open(query, sequence);
	dx_each_kept (query, other, &element, iterator)
		dx_keys_add(keys, &element.value);
	dx_release(query->arena, mark);
}

/* Distinct has its comparator as its first argument, the others behind the collection. */
static struct set_state *set_begin(struct dx_query *query, struct dx_iterator *iterator, bool has_others)
{
	struct set_state *state = iterator->state;
	const struct dx_sequence *sequence = iterator->sequence;
	if (state->is_begun)
		return state;
	state->is_begun = true;
	const struct dx_value *compare = comparator_of(sequence, has_others ? 1 : 0);
	dx_keys_init(&state->seen, query, iterator->home, compare);
	dx_keys_init(&state->others, query, iterator->home, compare);
	return state;
}

static void set_close(void *context)
{
	struct set_state *state = context;
	if (!state->is_begun)
		return;
	dx_keys_fini(&state->seen);
	dx_keys_fini(&state->others);
}

/* The next element that is not among those seen; it is from then on. */
static bool next_unseen(struct dx_query *query, struct dx_iterator *from, struct set_state *state,
			struct dx_element *element)
{
	dx_each (query, from, element) {
		uint32_t count = state->seen.count;
		if (element->value.kind == DX_ABSENT)
			continue;
		dx_keys_add(&state->seen, &element->value);
		if (state->seen.count > count)
			return true;
	}
	return false;
}

static bool distinct_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	return next_unseen(query, iterator->source, set_begin(query, iterator, false), element);
}

static bool union_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct set_state *state = set_begin(query, iterator, true);
	if (!state->second && !next_unseen(query, iterator->source, state, element)) {
		struct dx_arena *arena = query->arena;
		query->arena = iterator->home;
		state->second = dx_open(query, iterator->sequence->arguments[0].sequence);
		query->arena = arena;
	}
	if (state->second && !next_unseen(query, state->second, state, element))
		return false;
	element->index = dx_number(state->passed++);
	return true;
}

static bool next_among(struct dx_query *query, struct dx_iterator *iterator, bool are_wanted,
		       struct dx_element *element)
{
	struct set_state *state = iterator->state;
	if (!state->is_begun) {
		set_begin(query, iterator, true);
		keys_collect(query, iterator, &state->others, iterator->sequence->arguments[0].sequence);
	}
	for (;;) {
		struct dx_mark mark = dx_mark(query->arena);
		if (!next_unseen(query, iterator->source, state, element))
			return false;
		if (dx_keys_has(&state->others, &element->value) == are_wanted)
			return true;
		dx_release(query->arena, mark);
	}
}

static bool intersect_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	return next_among(query, iterator, true, element);
}

static bool except_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	return next_among(query, iterator, false, element);
}

/* Join(other, x => key, y => key, (x, y) => value [, (a, b) => order]): the other collection is kept. */
enum { JOIN_OTHER, JOIN_KEY, JOIN_OTHER_KEY, JOIN_RESULT, JOIN_COMPARE };

struct join_state {
	struct dx_list *others, *keys;
	struct dx_arena arena; /* of the present element */
	struct dx_value present, key;
	uint32_t next;
	uint64_t passed;
	bool is_begun, has_present;
};

static void join_begin(struct dx_query *query, struct dx_iterator *iterator)
{
	struct join_state *state = iterator->state;
	const struct dx_sequence *sequence = iterator->sequence;
	struct dx_element element;
	state->is_begun = true;
	dx_arena_init(&state->arena, &query->budget);
	state->others = dx_list_new(query, iterator->home);
	state->keys = dx_list_new(query, iterator->home);
	struct dx_mark mark = dx_mark(query->arena);
	struct dx_iterator *other = dx_open(query, sequence->arguments[JOIN_OTHER].sequence);
	dx_each_kept (query, other, &element, iterator) {
		const struct dx_element key = {dx_call(query, &sequence->arguments[JOIN_OTHER_KEY], &element.value),
					       dx_bool(false)};
		dx_list_add(state->others, &element);
		dx_list_add(state->keys, &key);
	}
	dx_release(query->arena, mark);
}

static bool join_advance(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct join_state *state = iterator->state;
	struct dx_arena *arena = query->arena;
	dx_release(&state->arena, (struct dx_mark){NULL, NULL, NULL});
	query->arena = &state->arena;
	state->has_present = dx_next(query, iterator->source, element);
	state->present = element->value;
	if (state->has_present)
		state->key = dx_call(query, &iterator->sequence->arguments[JOIN_KEY], &element->value);
	query->arena = arena;
	state->next = 0;
	return state->has_present;
}

static bool join_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct join_state *state = iterator->state;
	const struct dx_sequence *sequence = iterator->sequence;
	const struct dx_value *compare = comparator_of(sequence, JOIN_COMPARE);
	if (!state->is_begun)
		join_begin(query, iterator);
	for (;;) {
		while (state->has_present && state->next < dx_list_count(state->keys) &&
		       dx_step(query, "Join", sequence->column)) {
			uint32_t at = state->next++;
			if (dx_key_order(query, compare, &state->key, &dx_list_elements(state->keys)[at].value))
				continue;
			element->index = dx_number(state->passed++);
			element->value = dx_call_two(query, &sequence->arguments[JOIN_RESULT], &state->present,
						     &dx_list_elements(state->others)[at].value);
			return true;
		}
		if (query->is_stopped || !join_advance(query, iterator, element))
			return false;
	}
}

static void join_close(void *context)
{
	struct join_state *state = context;
	if (state->is_begun)
		dx_arena_fini(&state->arena);
}

#define OPERATOR(id, text, state, close_function) \
	static const struct dx_operator id##_operator = { \
		.name = (text), .state_bytes = sizeof(struct state), .next = id##_next, .close = close_function}
OPERATOR(distinct, "Distinct", set_state, set_close);
OPERATOR(union, "Union", set_state, set_close);
OPERATOR(intersect, "Intersect", set_state, set_close);
OPERATOR(except, "Except", set_state, set_close);
OPERATOR(join, "Join", join_state, join_close);

/* ---- values ---- */

static void call_contains(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	const struct dx_value *compare = call->count > 1 ? &call->arguments[1] : NULL;
	struct dx_iterator *iterator = dx_open(query, call->receiver.sequence);
	struct dx_element element;
	*result = dx_bool(false);
	dx_each (query, iterator, &element)
		if (!dx_key_order(query, compare, &element.value, &call->arguments[0])) {
			*result = dx_bool(true);
			break;
		}
}

static void call_sequence_equal(struct dx_query *query, struct dx_method_call *call, struct dx_value *result)
{
	const struct dx_value *compare = call->count > 1 ? &call->arguments[1] : NULL;
	struct dx_iterator *one = dx_open(query, call->receiver.sequence);
	struct dx_iterator *other = dx_open(query, call->arguments[0].sequence);
	struct dx_element a, b;
	bool are_equal = true, has_next = true;
	while (are_equal && has_next) {
		struct dx_mark mark = dx_mark(query->arena);
		has_next = dx_next(query, one, &a);
		are_equal = has_next == dx_next(query, other, &b) &&
			    (!has_next || !dx_key_order(query, compare, &a.value, &b.value));
		dx_release(query->arena, mark);
	}
	*result = dx_bool(are_equal);
}

const struct dx_method dx_methods_of_sets[] = {
	DX_LAZY("Distinct", "?g", DX_RESULT_SAME, &distinct_operator, "[(a, b) => order]",
		"the elements without those that are equal to an earlier one, or absent"),
	DX_LAZY("Union", "s?g", DX_RESULT_SAME, &union_operator, "collection [, (a, b) => order]",
		"the distinct elements of both collections"),
	DX_LAZY("Intersect", "s?g", DX_RESULT_SAME, &intersect_operator, "collection [, (a, b) => order]",
		"the distinct elements that are in both collections"),
	DX_LAZY("Except", "s?g", DX_RESULT_SAME, &except_operator, "collection [, (a, b) => order]",
		"the distinct elements that are not in the other collection"),
	DX_LAZY("Join", "sfkg?g", DX_RESULT_LAMBDA, &join_operator,
		"collection, x => key, y => key, (x, y) => value [, (a, b) => order]",
		"what the lambda makes of each pair with equal keys; the other collection is kept in memory"),
	DX_EAGER("Contains", "v?g", DX_RESULT_KIND, DX_BOOL, call_contains, "value [, (a, b) => order]",
		 "whether an element is equal to the value"),
	DX_EAGER("SequenceEqual", "s?g", DX_RESULT_KIND, DX_BOOL, call_sequence_equal, "collection [, (a, b) => order]",
		 "whether both collections have equal elements in the same order"),
	{0},
};
