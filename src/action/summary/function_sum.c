/* SPDX-License-Identifier: MIT */
#include "action/summary/function_sum.h"

#include <stdlib.h>
#include <string.h>

#include "action/report/stack_view.h"
#include "base/map.h"
#include "base/memory.h"
#include "query/library_frames.h"

/* Sums by name, each in the order of its first row. */
struct name_sums {
	struct function_sum *items;
	size_t capacity;
	struct map place_of;
};

static struct function_sum *sum_of(struct name_sums *sums, uint32_t name)
{
	bool added;
	uint32_t *place = map_add(&sums->place_of, name, &added);
	if (added) {
		*place = sums->place_of.count - 1;
		memory_grow(sums->items, *place, sums->capacity);
		sums->items[*place] = (struct function_sum){.node = 0};
	}
	return &sums->items[*place];
}

static void sums_fini(struct name_sums *sums)
{
	map_fini(&sums->place_of);
	free(sums->items);
}

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
	struct name_sums sums = {.items = NULL};
	struct function_sum largest = {.node = 0};
	for (size_t i = 0; i < rows->memory_count; i++) {
		const struct action_row *row = &rows->memory[i];
		row_add(sum_of(&sums, name_of(input, row->group)), row, sort->number(row->figures));
	}
	for (uint32_t i = 0; i < sums.place_of.count; i++)
		if (!i || is_before(input, &sums.items[i], &largest))
			largest = sums.items[i];
	sums_fini(&sums);
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
	struct name_sums sums = {.items = NULL};
	struct function_sum largest = {.node = 0};
	for (size_t i = 0; i < rows->memory_count; i++) {
		const struct action_row *row = &rows->memory[i];
		uint32_t caller = row->group && name_of(input, row->group) == of
					  ? named_caller(names, stack_view_user_node(input, row->group))
					  : 0;
		if (!caller)
			continue;
		struct function_sum *sum = sum_of(&sums, heap_names_frame(names, caller)->name);
		row_add(sum, row, sort->number(row->figures));
		sum->node = caller;
	}
	for (uint32_t i = 0; i < sums.place_of.count; i++) {
		const struct function_sum *sum = &sums.items[i];
		const char *text = heap_names_name(names, heap_names_frame(names, sum->node)->name)->text;
		if (!largest.node || sum->sorted_by > largest.sorted_by ||
		    (sum->sorted_by == largest.sorted_by &&
		     strcmp(text, heap_names_name(names, heap_names_frame(names, largest.node)->name)->text) < 0))
			largest = *sum;
	}
	sums_fini(&sums);
	return largest;
}
