/* SPDX-License-Identifier: MIT */
#include "dx/plans/group_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "dx/plans/group_calls.h"
#include "dx/run/interpret.h"
#include "dx/run/keys.h"
#include "dx/run/operators.h"
#include "dx/run/spilled_groups.h"
#include "dx/run/sums.h"

/* Parts of the memory: for groups that are summed up at a time, and for elements of others, which are sorted. */
enum { GROUPS_PART = 3, SPILLED_PART = 6 };

struct group_sums {
	struct dx_iterator *groups; /* of dx_group_operator, which has not begun */
	const struct dx_closure *lambda;
	struct dx_group_calls calls;
	uint32_t next;
	struct dx_arena arena; /* of the lambda, keys and values */
	struct dx_keys keys;
	struct dx_group_cell *cells; /* one for each call of each group */
	size_t capacity;
	bool is_made;
	/* Groups that came when the memory was full, and what the lambda makes of them, by their first elements. */
	struct dx_spilled_groups spilled;
	struct dx_sorter results;
};

struct group_place {
	struct dx_group group;
	const struct group_sums *sums;
	const struct dx_value *key;
	const struct dx_group_cell *cells;
};

static void sums_end(void *context)
{
	struct group_sums *sums = context;
	sums->arena.budget->used_bytes -= sums->capacity * sizeof(*sums->cells);
	dx_keys_fini(&sums->keys);
	dx_spilled_groups_end(&sums->spilled);
	dx_sorter_end(&sums->results);
	dx_arena_fini(&sums->arena);
	free(sums->cells);
	free(sums);
}

/* Begin to sum up the groups of `groups` for the lambda. NULL: it needs the elements. */
static struct group_sums *sums_new(struct dx_query *query, const struct dx_sequence *groups,
				   const struct dx_value *lambda)
{
	struct group_sums *sums = memory_zeroed(1, sizeof(*sums));
	dx_arena_init(&sums->arena, &query->budget);
	sums->calls = (struct dx_group_calls){.key = groups->arguments[0].closure->node, .arena = &sums->arena};
	sums->lambda = dx_group_calls_take(&sums->calls, lambda->closure);
	if (!sums->lambda) {
		dx_arena_fini(&sums->arena);
		free(sums);
		return NULL;
	}
	dx_keys_init(&sums->keys, query, &sums->arena, groups->argument_count > 1 ? &groups->arguments[1] : NULL);
	dx_on_release(query->arena, sums_end, sums);
	return sums;
}

/* ---- the elements ---- */

static void cells_grow(struct group_sums *sums)
{
	size_t needed = (size_t)sums->keys.count * sums->calls.count;
	struct dx_budget *budget = sums->arena.budget;
	if (needed <= sums->capacity)
		return;
	size_t capacity = memory_capacity(sums->capacity, needed);
	sums->cells = memory_resize(sums->cells, capacity, sizeof(*sums->cells));
	memset(sums->cells + sums->capacity, 0, (capacity - sums->capacity) * sizeof(*sums->cells));
	budget->used_bytes += (capacity - sums->capacity) * sizeof(*sums->cells);
	budget->is_exceeded |= budget->used_bytes > budget->limit_bytes;
	sums->capacity = capacity;
}

/* The same as find_extreme() of the collection's methods. */
static void extreme_add(struct dx_query *query, struct dx_arena *arena, const struct dx_group_call *call,
			struct dx_group_cell *cell, struct dx_value *value)
{
	int order, direction = call->kind == DX_GROUP_MAX ? 1 : -1;
	if (value->kind == DX_ABSENT || cell->value.kind == DX_ERROR)
		return;
	bool is_first = cell->value.kind == DX_ABSENT || value->kind == DX_ERROR;
	if (!is_first && !dx_compare(value, &cell->value, &order))
		*value = dx_error(query, "%s: %s and %s have no order", dx_group_call_name(call->kind),
				  dx_kind_name(cell->value.kind), dx_kind_name(value->kind));
	else if (!is_first && order * direction <= 0)
		return;
	cell->value = dx_value_copy(arena, value);
}

/* Values lie in the arena. */
static void cell_add(struct dx_query *query, struct dx_arena *arena, const struct dx_group_call *call,
		     struct dx_group_cell *cell, const struct dx_value *element)
{
	const struct dx_value lambda = {.kind = DX_LAMBDA, .closure = &call->closure};
	bool has_lambda = call->closure.node != NULL;
	if ((call->kind == DX_GROUP_FIRST || call->kind == DX_GROUP_ANY) && cell->sum.count)
		return;
	struct dx_value value = *element;
	if (has_lambda && value.kind != DX_ERROR)
		value = dx_call(query, &lambda, element);
	bool passes = !has_lambda || dx_is_true(&value);
	bool is_condition = call->kind == DX_GROUP_COUNT || call->kind == DX_GROUP_ANY || call->kind == DX_GROUP_FIRST;
	if (is_condition && cell->sum.error.kind == DX_ERROR)
		return;
	bool has_failed = value.is_undecided || (has_lambda && value.kind == DX_ERROR && !value.is_gap);
	value.is_undecided = false;
	if (is_condition && has_failed) {
		cell->sum.error = dx_value_copy(arena, &value);
		return;
	}
	switch (call->kind) {
	case DX_GROUP_KEY:
		break;
	case DX_GROUP_COUNT:
	case DX_GROUP_ANY:
		cell->sum.count += passes && !value.is_gap;
		break;
	case DX_GROUP_FIRST:
		cell->sum.count += passes;
		if (passes)
			cell->value = dx_value_copy(arena, element);
		break;
	case DX_GROUP_SUM:
	case DX_GROUP_AVERAGE:
		if (cell->sum.error.kind != DX_ERROR && !dx_sum_add(query, &cell->sum, &value))
			cell->sum.error = dx_value_copy(arena, &cell->sum.error);
		break;
	default:
		extreme_add(query, arena, call, cell, &value);
	}
}

/* ---- all of them ---- */

static bool has_room(struct dx_query *query, const struct group_sums *sums)
{
	size_t needed = ((size_t)sums->keys.count + 1) * sums->calls.count;
	size_t cells = needed > sums->capacity ? memory_capacity(sums->capacity, needed) : sums->capacity;
	return sums->arena.chunk_bytes + dx_keys_bytes_with(&sums->keys) + cells * sizeof(*sums->cells) <=
	       query->budget.limit_bytes / GROUPS_PART;
}

/* Whether a group that is new is to go to the file, as all that come behind the first such one. */
static bool is_spilled(struct dx_query *query, struct group_sums *sums, const struct dx_value *key)
{
	if (!dx_spilled_groups_take(&sums->keys, key))
		return false;
	if (!sums->spilled.is_begun && has_room(query, sums))
		return false;
	if (!sums->spilled.is_begun)
		dx_spilled_groups_begin(&sums->spilled, query, sums->groups, &sums->arena,
					query->budget.limit_bytes / SPILLED_PART);
	return true;
}

static void cells_add(struct dx_query *query, struct group_sums *sums, struct dx_arena *arena,
		      struct dx_group_cell *cells, const struct dx_value *element)
{
	for (uint32_t i = 0; i < sums->calls.count; i++)
		cell_add(query, arena, &sums->calls.items[i], &cells[i], element);
}

static void sums_make(struct dx_query *query, struct group_sums *sums)
{
	const struct dx_value *key_of = &sums->groups->sequence->arguments[0];
	struct dx_element element;
	uint64_t number = 0;
	sums->is_made = true;
	dx_each_kept (query, sums->groups->source, &element, sums->groups) {
		struct dx_value key =
			element.value.kind == DX_ERROR ? element.value : dx_call(query, key_of, &element.value);
		uint32_t group = dx_keys_find(&sums->keys, &key);
		number++;
		if (group == sums->keys.count && is_spilled(query, sums, &key)) {
			dx_spilled_groups_add(&sums->spilled, &element, key, dx_number(number));
			continue;
		}
		if (group == sums->keys.count)
			dx_keys_add(&sums->keys, &key);
		cells_grow(sums);
		cells_add(query, sums, &sums->arena, &sums->cells[(size_t)group * sums->calls.count], &element.value);
	}
}

static struct dx_value group_answer(struct dx_query *query, const struct dx_group *group, uint32_t call)
{
	const struct group_place *at = (const struct group_place *)group;
	const struct group_sums *sums = at->sums;
	const struct dx_group_call *of = &sums->calls.items[call];
	if (of->kind == DX_GROUP_KEY)
		return dx_group_key_part(&sums->calls, at->key, of->part);
	return dx_group_call_answer(query, of, &at->cells[call]);
}

/* Return what the lambda makes of a group. */
static struct dx_value group_result(struct dx_query *query, const struct group_sums *sums, const struct dx_value *key,
				    const struct dx_group_cell *cells)
{
	struct group_place *at = dx_new(query->arena, struct group_place, 1);
	*at = (struct group_place){{&sums->calls, group_answer}, sums, key, cells};
	const struct dx_value group = dx_object(&dx_group_class, at),
			      lambda = {.kind = DX_LAMBDA, .closure = sums->lambda};
	struct dx_value result = dx_call(query, &lambda, &group);
	result.is_gap = false;
	return result;
}

/* ---- groups in the file ---- */

static void spilled_sum(struct dx_query *query, struct group_sums *sums, struct dx_arena *values)
{
	struct dx_group_cell *cells = dx_new(&sums->arena, struct dx_group_cell, (size_t)sums->calls.count + 1);
	struct dx_spilled_groups *spilled = &sums->spilled;
	struct dx_element element;
	while (dx_spilled_groups_next(spilled)) {
		struct dx_mark mark = dx_mark(query->arena), values_mark = dx_mark(values);
		memset(cells, 0, sums->calls.count * sizeof(*cells));
		while (dx_spilled_groups_element(spilled, &element)) {
			cells_add(query, sums, values, cells, &element.value);
			dx_release(query->arena, mark);
		}
		element = (struct dx_element){group_result(query, sums, &spilled->key, cells), spilled->key};
		dx_sorter_add(&sums->results, &element, &spilled->fact);
		dx_release(query->arena, mark);
		dx_release(values, values_mark);
	}
}

static int first_order(const void *context, const struct dx_element *one, const struct dx_element *other)
{
	(void)context;
	return dx_order(&one->value, &other->value);
}

static void results_make(struct dx_query *query, struct group_sums *sums)
{
	struct dx_arena values;
	sums->results = (struct dx_sorter){
		.compare = first_order, .key_count = 1, .memory_bytes = query->budget.limit_bytes / SPILLED_PART};
	dx_sorter_begin(&sums->results, query, sums->groups, &sums->arena);
	dx_arena_init(&values, &query->budget);
	dx_spilled_groups_sort(&sums->spilled);
	spilled_sum(query, sums, &values);
	dx_spilled_groups_end(&sums->spilled);
	dx_sorter_sort(&sums->results);
	dx_arena_fini(&values);
}

static bool result_next(struct dx_query *query, struct group_sums *sums, struct dx_element *element)
{
	if (sums->spilled.is_begun)
		results_make(query, sums);
	return sums->results.query && dx_sorter_next(&sums->results, element, NULL);
}

/* ---- the sequence ---- */

static struct group_sums *sums_of(const struct dx_iterator *iterator)
{
	return (struct group_sums *)iterator->sequence->arguments[0].data;
}

static void sums_open(struct dx_query *query, struct dx_iterator *iterator)
{
	(void)query;
	sums_of(iterator)->groups = iterator->source;
}

static bool sums_next(struct dx_query *query, struct dx_iterator *iterator, struct dx_element *element)
{
	struct group_sums *sums = sums_of(iterator);
	if (!sums->is_made)
		sums_make(query, sums);
	uint32_t last = sums->keys.count - (sums->keys.absent < sums->keys.count);
	if (!query->is_stopped && sums->next == last && result_next(query, sums, element))
		return true;
	if (query->is_stopped || sums->next == sums->keys.count)
		return false;
	uint32_t number = dx_keys_place(&sums->keys, sums->next++);
	element->index = sums->keys.keys[number];
	element->value = group_result(query, sums, &element->index, &sums->cells[(size_t)number * sums->calls.count]);
	return true;
}

static const struct dx_operator sums_operator = {.name = "Select", .open = sums_open, .next = sums_next};

const struct dx_sequence *dx_group_sums_sequence(struct dx_query *query, const struct dx_sequence *sequence)
{
	if (query->is_stopped || sequence->operation != &dx_select_operator ||
	    sequence->source->operation != &dx_group_operator)
		return NULL;
	struct group_sums *sums = sums_new(query, sequence->source, &sequence->arguments[0]);
	if (!sums)
		return NULL;
	struct dx_sequence *made = dx_sequence_new(query, &sums_operator, sequence->source, sequence->column);
	made->argument_count = 1;
	made->arguments[0] = (struct dx_value){.kind = DX_ABSENT, .data = sums};
	return made;
}
