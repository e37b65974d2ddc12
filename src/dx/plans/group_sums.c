/* SPDX-License-Identifier: MIT */
#include "dx/plans/group_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "dx/plans/group_calls.h"
#include "dx/run/interpret.h"
#include "dx/run/keys.h"
#include "dx/run/operators.h"
#include "dx/run/sums.h"

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
};

struct group_place {
	struct dx_group group;
	const struct group_sums *sums;
	uint32_t number;
};

static void sums_end(void *context)
{
	struct group_sums *sums = context;
	sums->arena.budget->used_bytes -= sums->capacity * sizeof(*sums->cells);
	dx_keys_fini(&sums->keys);
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
static void extreme_add(struct dx_query *query, struct group_sums *sums, const struct dx_group_call *call,
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
	cell->value = dx_value_copy(&sums->arena, value);
}

static void cell_add(struct dx_query *query, struct group_sums *sums, const struct dx_group_call *call,
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
	if (is_condition && value.kind == DX_ERROR && element->kind != DX_ERROR) {
		cell->sum.error = dx_value_copy(&sums->arena, &value);
		return;
	}
	switch (call->kind) {
	case DX_GROUP_KEY:
		break;
	case DX_GROUP_COUNT:
	case DX_GROUP_ANY:
		cell->sum.count += passes;
		break;
	case DX_GROUP_FIRST:
		cell->sum.count += passes;
		if (passes)
			cell->value = dx_value_copy(&sums->arena, element);
		break;
	case DX_GROUP_SUM:
	case DX_GROUP_AVERAGE:
		if (cell->sum.error.kind != DX_ERROR && !dx_sum_add(query, &cell->sum, &value))
			cell->sum.error = dx_value_copy(&sums->arena, &cell->sum.error);
		break;
	default:
		extreme_add(query, sums, call, cell, &value);
	}
}

/* ---- all of them ---- */

static void sums_make(struct dx_query *query, struct group_sums *sums)
{
	const struct dx_value *key_of = &sums->groups->sequence->arguments[0];
	struct dx_element element;
	sums->is_made = true;
	dx_each_kept (query, sums->groups->source, &element, sums->groups) {
		struct dx_value key =
			element.value.kind == DX_ERROR ? element.value : dx_call(query, key_of, &element.value);
		uint32_t group = dx_keys_add(&sums->keys, &key);
		cells_grow(sums);
		for (uint32_t i = 0; i < sums->calls.count; i++)
			cell_add(query, sums, &sums->calls.items[i],
				 &sums->cells[(size_t)group * sums->calls.count + i], &element.value);
	}
}

static struct dx_value group_answer(struct dx_query *query, const struct dx_group *group, uint32_t call)
{
	const struct group_place *at = (const struct group_place *)group;
	const struct group_sums *sums = at->sums;
	const struct dx_group_call *of = &sums->calls.items[call];
	const struct dx_value *key = &sums->keys.keys[at->number];
	if (of->kind == DX_GROUP_KEY)
		return dx_group_key_part(&sums->calls, key, of->part);
	return dx_group_call_answer(query, of, &sums->cells[(size_t)at->number * sums->calls.count + call]);
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
	if (query->is_stopped || sums->next == sums->keys.count)
		return false;
	struct group_place *at = dx_new(query->arena, struct group_place, 1);
	uint32_t number = dx_keys_place(&sums->keys, sums->next++);
	*at = (struct group_place){{&sums->calls, group_answer}, sums, number};
	const struct dx_value group = dx_object(&dx_group_class, at),
			      lambda = {.kind = DX_LAMBDA, .closure = sums->lambda};
	element->index = sums->keys.keys[number];
	element->value = dx_call(query, &lambda, &group);
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
