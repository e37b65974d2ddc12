/* SPDX-License-Identifier: MIT */
#include "action/summary/function_sum.h"

#include <stdlib.h>
#include <string.h>

#include "action/report/stack_view.h"
#include "base/map.h"
#include "base/memory.h"
#include "query/library_frames.h"

static void row_add(struct function_sum *sum, const struct action_row *row, uint64_t number)
{
	sum->node = row->group;
	sum->stack_count += number > 0;
	sum->sorted_by += number;
	heap_numbers_add(&sum->figures.numbers, &row->figures->numbers);
	for (unsigned i = 0; i < ACTION_EXTRA_MAX; i++)
		sum->figures.extra[i] += row->figures->extra[i];
}

/* Return the name of the stack's function, HEAP_NONE if the stack is empty. */
static uint32_t name_of(struct action_input *input, uint32_t node)
{
	return node ? heap_names_frame(action_names(input), stack_view_user_node(input, node))->name : HEAP_NONE;
}

/* Rows are in no order: equal functions stand by name. */
static bool is_before(struct action_input *input, const struct function_sum *left, const struct function_sum *right)
{
	const struct heap_names *names = action_names(input);
	uint32_t of_left = name_of(input, left->node), of_right = name_of(input, right->node);
	if (left->sorted_by != right->sorted_by)
		return left->sorted_by > right->sorted_by;
	return of_right == HEAP_NONE || (of_left != HEAP_NONE && strcmp(heap_names_name(names, of_left)->text,
									heap_names_name(names, of_right)->text) < 0);
}

struct function_sum function_sum_largest(struct action_input *input, const struct action_rows *rows,
					 const struct action_sort *sort)
{
	struct function_sum *sums = memory_zeroed(rows->memory_count + 1, sizeof(*sums)), largest;
	struct map place_of = {0};
	for (size_t i = 0; i < rows->memory_count; i++) {
		const struct action_row *row = &rows->memory[i];
		bool added;
		uint32_t *place = map_add(&place_of, name_of(input, row->group), &added);
		*place = added ? place_of.count - 1 : *place;
		row_add(&sums[*place], row, sort->number(row->figures));
	}
	largest = sums[0];
	for (uint32_t i = 1; i < place_of.count; i++)
		if (is_before(input, &sums[i], &largest))
			largest = sums[i];
	map_fini(&place_of);
	free(sums);
	return largest;
}

bool function_sum_has(struct action_input *input, const struct function_sum *sum, uint32_t node)
{
	return name_of(input, node) == name_of(input, sum->node);
}

/* Return the first caller of a frame that has a name, 0: there is none. */
static uint32_t named_caller(const struct heap_names *names, uint32_t node)
{
	while ((node = heap_names_frame(names, node)->parent)) {
		const struct heap_name *name = heap_names_name(names, heap_names_frame(names, node)->name);
		if (!heap_name_is_offset(name) && !name->is_mark && !library_begins(name))
			break;
	}
	return node;
}

struct function_sum function_sum_named_caller(struct action_input *input, const struct action_rows *rows,
					      const struct action_sort *sort, uint32_t nameless)
{
	const struct heap_names *names = action_names(input);
	const uint32_t of = name_of(input, nameless);
	struct function_sum *sums = memory_zeroed(rows->memory_count + 1, sizeof(*sums)), largest = {.node = 0};
	struct map place_of = {0};
	for (size_t i = 0; i < rows->memory_count; i++) {
		const struct action_row *row = &rows->memory[i];
		uint32_t caller = row->group && name_of(input, row->group) == of
					  ? named_caller(names, stack_view_user_node(input, row->group))
					  : 0;
		bool added;
		if (!caller)
			continue;
		uint32_t *place = map_add(&place_of, heap_names_frame(names, caller)->name, &added);
		*place = added ? place_of.count - 1 : *place;
		row_add(&sums[*place], row, sort->number(row->figures));
		sums[*place].node = caller;
	}
	for (uint32_t i = 0; i < place_of.count; i++) {
		const char *text = heap_names_name(names, heap_names_frame(names, sums[i].node)->name)->text;
		if (!largest.node || sums[i].sorted_by > largest.sorted_by ||
		    (sums[i].sorted_by == largest.sorted_by &&
		     strcmp(text, heap_names_name(names, heap_names_frame(names, largest.node)->name)->text) < 0))
			largest = sums[i];
	}
	map_fini(&place_of);
	free(sums);
	return largest;
}
