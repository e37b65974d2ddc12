/* SPDX-License-Identifier: MIT */
/* Methods that keep all elements, or all keys: orders and groups. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/priority_queue.h"
#include "dx/run/interpret.h"
#include "dx/run/keys.h"
#include "dx/run/operators.h"
#include "dx/run/spill.h"

enum {
	ORDER_KEYS_MAX = 8,
	RUN_PART = 3,
	BUFFERS_PART = 4,
	HEAD_BYTES = 16 << 10,
	BUFFER_LEAST = 1 << 10,
	BUFFER_MOST = 256 << 10
};

/* ---- orders ---- */

/* The least element of a run that is not shown yet; its keys are among those of the order. */
struct run_head {
	struct run_reader run;
	struct dx_arena arena;
	struct dx_element element;
	bool is_over;
};

struct order;

/* Elements lie in memory, or sorted in runs of a file, which are merged. */
struct order_state {
	struct order *order;
	struct dx_list *elements, *keys; /* `key_count` keys for each element */
	uint32_t *numbers, *scratch;     /* of elements, in order */
	uint32_t count;
	struct dx_ahead ahead; /* of those in memory */
	size_t used_before;    /* of the budget */
	bool is_unspillable;   /* an element refers to what cannot be written */
	struct dx_spill spill;
	struct run_head *heads;
	struct dx_element *head_keys;
	uint32_t *heap; /* numbers of runs, the one with the least head first */
	uint32_t heap_count, head_count;
	bool is_made;
};

/* The steps of an order: OrderBy, then each ThenBy. */
struct order {
	struct dx_query *query;
	const struct dx_sequence *steps[ORDER_KEYS_MAX];
	uint32_t count;
	const struct dx_element *keys;
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

static int keys_order(const struct order *order, uint32_t one, uint32_t other)
{
	for (uint32_t i = 0; i < order->count; i++) {
		const struct dx_sequence *step = order->steps[i];
		const struct dx_value *a = &order->keys[(size_t)one * order->count + i].value,
				      *b = &order->keys[(size_t)other * order->count + i].value;
		bool has_comparator = step->argument_count > 1;
		/* Absent keys come last, whichever way the others go. */
		if (!has_comparator && (a->kind == DX_ABSENT) != (b->kind == DX_ABSENT))
			return a->kind == DX_ABSENT ? 1 : -1;
		int result = dx_key_order(order->query, has_comparator ? &step->arguments[1] : NULL, a, b);
		if (result)
			return dx_operator_is_descending(step->operation) ? -result : result;
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

/* Sort what is in memory. False: the query is to end. */
static bool run_sort(struct dx_query *query, struct order_state *state)
{
	size_t count = state->count = dx_list_count(state->elements);
	state->numbers = memory_resize(state->numbers, count + 1, sizeof(*state->numbers));
	state->scratch = memory_resize(state->scratch, count + 1, sizeof(*state->scratch));
	for (uint32_t i = 0; i < count; i++)
		state->numbers[i] = i;
	state->order->keys = dx_list_elements(state->keys);
	uint32_t *sorted = numbers_sort(state->order, state->numbers, state->scratch, (uint32_t)count);
	if (sorted == state->scratch) {
		state->scratch = state->numbers;
		state->numbers = sorted;
	}
	return !query->is_stopped;
}

static void spill_failed(struct dx_query *query, const struct dx_iterator *iterator, const struct dx_spill *spill)
{
	dx_stop(query, iterator->sequence->column, "%s: the temporary file for sorting: %s",
		iterator->sequence->operation->name, strerror(spill->file.error));
}

/* Write what is in memory to the file, sorted. */
static void run_spill(struct dx_query *query, const struct dx_iterator *iterator)
{
	struct order_state *state = iterator->state;
	assert(dx_list_count(state->keys) == dx_list_count(state->elements) * state->order->count);
	if (!run_sort(query, state))
		return;
	for (uint32_t i = 0; i < state->count && dx_step_kept(query, iterator); i++) {
		uint32_t number = state->numbers[i];
		const struct dx_element *element = &dx_list_elements(state->elements)[number];
		for (uint32_t k = 0; k < state->order->count; k++)
			dx_spill_write(&state->spill, &state->order->keys[number * state->order->count + k].value);
		dx_spill_write(&state->spill, &element->index);
		dx_spill_write(&state->spill, &element->value);
	}
	dx_list_clear(state->elements);
	dx_list_clear(state->keys);
	if (!dx_spill_end_run(&state->spill))
		spill_failed(query, iterator, &state->spill);
}

/* Before one more element would take more than a part of the memory. */
static bool is_time_to_spill(const struct dx_query *query, const struct order_state *state)
{
	size_t used = query->budget.used_bytes > state->used_before ? query->budget.used_bytes - state->used_before : 0;
	used += dx_list_growth(state->elements) + dx_list_growth(state->keys);
	return used > query->budget.limit_bytes / RUN_PART && dx_list_count(state->elements) &&
	       !state->is_unspillable && !query->is_stopped;
}

static void order_collect(struct dx_query *query, const struct dx_iterator *iterator, struct dx_iterator *source)
{
	struct order_state *state = iterator->state;
	const struct order *order = state->order;
	struct dx_element element;
	dx_each_kept (query, source, &element, iterator) {
		if (is_time_to_spill(query, state))
			run_spill(query, iterator);
		dx_list_add(state->elements, &element);
		state->is_unspillable |= !dx_spill_takes(&element.value) || !dx_spill_takes(&element.index);
		for (uint32_t i = 0; i < order->count; i++) {
			const struct dx_element key = {dx_call(query, &order->steps[i]->arguments[0], &element.value),
						       dx_bool(false)};
			dx_list_add(state->keys, &key);
			state->is_unspillable |= !dx_spill_takes(&key.value);
		}
	}
}

/* ---- merging ---- */

/* Equal elements keep their order: an earlier run has the earlier ones. */
static bool is_before(const struct order_state *state, uint32_t one, uint32_t other)
{
	int order = keys_order(state->order, one, other);
	return order ? order < 0 : one < other;
}

PRIORITY_QUEUE(run_queue, uint32_t, const struct order_state *, is_before(context, *one, *other))

/* Read the next element of a run, with its keys. */
static void head_read(struct order_state *state, uint32_t run)
{
	assert(run < state->spill.run_count);
	struct run_head *head = &state->heads[run];
	dx_arena_fini(&head->arena);
	for (uint32_t k = 0; k < state->order->count && !head->is_over; k++)
		head->is_over = !dx_spill_read(&head->run, &head->arena,
					       &state->head_keys[run * state->order->count + k].value);
	head->is_over = head->is_over || !dx_spill_read(&head->run, &head->arena, &head->element.index) ||
			!dx_spill_read(&head->run, &head->arena, &head->element.value);
}

static void merge_begin(struct dx_query *query, const struct dx_iterator *iterator)
{
	assert(((const struct order_state *)iterator->state)->spill.run_count > 0);
	struct order_state *state = iterator->state;
	uint32_t count = state->spill.run_count;
	size_t buffer = query->budget.limit_bytes / BUFFERS_PART / count;
	/* An arena for each head, and its buffer. */
	buffer = buffer > HEAD_BYTES ? buffer - HEAD_BYTES : 0;
	if (buffer < BUFFER_LEAST) {
		dx_stop(query, iterator->sequence->column, "%s: sorting needs more memory than the %zu MiB of -memory",
			iterator->sequence->operation->name, query->budget.limit_bytes >> 20);
		return;
	}
	state->heads = memory_zeroed(count, sizeof(*state->heads));
	state->head_keys = memory_zeroed((size_t)count * state->order->count, sizeof(*state->head_keys));
	state->heap = memory_zeroed(count, sizeof(*state->heap));
	state->order->keys = state->head_keys;
	for (uint32_t i = 0; i < count; i++) {
		dx_arena_init(&state->heads[i].arena, &query->budget);
		run_open(&state->heads[i].run, &state->spill.file, state->spill.runs[i],
			 buffer < BUFFER_MOST ? buffer : BUFFER_MOST);
		state->head_count = i + 1;
		head_read(state, i);
		if (!state->heads[i].is_over)
			state->heap[state->heap_count++] = i;
	}
	run_queue_make(state, state->heap, state->heap_count);
}

static bool merge_next(struct dx_query *query, const struct dx_iterator *iterator, struct dx_element *element)
{
	struct order_state *state = iterator->state;
	if (!state->heap_count || query->is_stopped)
		return false;
	uint32_t run = state->heap[0];
	element->value = dx_value_copy(query->arena, &state->heads[run].element.value);
	element->index = dx_value_copy(query->arena, &state->heads[run].element.index);
	head_read(state, run);
	if (state->heads[run].is_over)
		run_queue_pop(state, state->heap, --state->heap_count);
	else
		run_queue_sink(state, state->heap, state->heap_count, 0);
	if (state->spill.file.error)
		spill_failed(query, iterator, &state->spill);
	return !query->is_stopped;
}

/* ---- all of it ---- */

static void order_make(struct dx_query *query, struct dx_iterator *iterator)
{
	struct order_state *state = iterator->state;
	struct dx_arena *arena = query->arena;
	state->order = dx_new(iterator->home, struct order, 1);
	const struct dx_sequence *of = order_steps(query, iterator->sequence, state->order);
	state->is_made = true;
	state->spill = (struct dx_spill){.file = {RUN_FILE_NONE}};
	if (!of)
		return;
	query->arena = iterator->home;
	state->used_before = query->budget.used_bytes;
	state->elements = dx_list_new(query, iterator->home);
	state->keys = dx_list_new(query, iterator->home);
	struct dx_iterator *source = dx_open(query, of);
	query->arena = arena;
	order_collect(query, iterator, source);
	if (query->is_stopped)
		return;
	if (state->spill.run_count)
		run_spill(query, iterator);
	else
		run_sort(query, state);
	if (state->spill.run_count && !query->is_stopped)
		merge_begin(query, iterator);
}

static bool ahead_get(struct dx_query *query, const struct dx_ahead *ahead, uint32_t i, struct dx_value *value)
{
	const struct order_state *state = ahead->context;
	(void)query;
	*value = dx_list_elements(state->elements)[state->numbers[i]].value;
	return true;
}

static bool order_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct order_state *state = iterator->state;
	if (!state->is_made) {
		order_make(query, iterator);
		state->ahead = (struct dx_ahead){.get = ahead_get, .context = state, .count = state->count};
	}
	if (state->heads)
		return merge_next(query, iterator, element);
	if (query->is_stopped || state->ahead.next == state->count)
		return false;
	*element = dx_list_elements(state->elements)[state->numbers[state->ahead.next]];
	dx_ahead_pass(query, &state->ahead);
	return true;
}

static void order_close(void *context)
{
	struct order_state *state = context;
	dx_ahead_end(&state->ahead);
	for (uint32_t i = 0; i < state->head_count; i++) {
		run_close(&state->heads[i].run);
		dx_arena_fini(&state->heads[i].arena);
	}
	free(state->heads);
	free(state->head_keys);
	free(state->heap);
	free(state->numbers);
	free(state->scratch);
	if (state->is_made)
		dx_spill_fini(&state->spill);
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
	dx_each_kept (query, iterator->source, &element, iterator) {
		struct dx_value key = element.value.kind == DX_ERROR
					      ? element.value
					      : dx_call(query, &sequence->arguments[0], &element.value);
		uint32_t count = dx_list_count(state->elements);
		memory_grow(groups, count, capacity);
		groups[count] = dx_keys_add(&state->keys, &key);
		dx_list_add(state->elements, &element);
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
	uint32_t group = dx_keys_place(&state->keys, state->next++);
	uint32_t first = group ? state->ends[group - 1] : 0, end = state->ends[group];
	element->index = state->keys.keys[group];
	element->value = dx_group_value(query, state->elements, first, end - first, &element->index);
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
