/* SPDX-License-Identifier: MIT */
#include "action/summary/function_sum.h"

#include <stdlib.h>
#include <string.h>

#include "action/report/stack_view.h"
#include "base/memory.h"
#include "query/library_frames.h"

/* What is added up, and for whom. */
struct summing {
	struct action_input *input;
	const struct action_rows *rows;
	const struct action_sort *sort;
	uint32_t nameless; /* the name of the function whose callers count; HEAP_NONE: functions count */
};

/* The number of one name. */
struct name_sum {
	uint64_t number;
	size_t stacks; /* with some of it */
	uint32_t node; /* one of the stacks, or the caller */
	bool is_there;
};

/* Return the name of a frame, HEAP_NONE of an empty stack. */
static uint32_t name_of(struct action_input *input, uint32_t frame)
{
	return frame ? heap_names_frame(action_names(input), frame)->name : HEAP_NONE;
}

/* Return the stack's first frame of the user's code, 0 if the stack is empty. */
static uint32_t user_frame(struct action_input *input, uint32_t node)
{
	return node ? stack_view_user_node(input, node) : 0;
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

/* Set the frame whose function the row counts for. Return false: it counts for none. */
static bool frame_of(const struct summing *summing, const struct action_row *row, uint32_t *frame)
{
	*frame = user_frame(summing->input, row->group);
	if (summing->nameless == HEAP_NONE)
		return true;
	if (name_of(summing->input, *frame) != summing->nameless)
		return false;
	*frame = named_caller(action_names(summing->input), *frame);
	return *frame;
}

/* Add up the number by name; that of empty stacks is behind the names. */
static void names_sum(const struct summing *summing, struct name_sum *sums, uint32_t name_count)
{
	for (size_t i = 0; i < summing->rows->memory_count; i++) {
		const struct action_row *row = &summing->rows->memory[i];
		const uint64_t number = summing->sort->number(row->figures);
		uint32_t frame;
		if (!frame_of(summing, row, &frame))
			continue;
		const uint32_t name = name_of(summing->input, frame);
		struct name_sum *sum = &sums[name < name_count ? name : name_count];
		sum->number += number;
		sum->stacks += number > 0;
		sum->node = summing->nameless == HEAP_NONE ? row->group : frame;
		sum->is_there = true;
	}
}

/* Return the name with the most; name_count: that of empty stacks, which may be none. Equal ones stand by their texts,
   and empty stacks come last. */
static uint32_t name_choose(const struct heap_names *names, const struct name_sum *sums, uint32_t name_count)
{
	uint32_t best = name_count;
	for (uint32_t i = 0; i < name_count; i++)
		if (sums[i].is_there && (!sums[best].is_there || sums[i].number > sums[best].number ||
					 (sums[i].number == sums[best].number &&
					  (best == name_count || strcmp(heap_names_name(names, i)->text,
									heap_names_name(names, best)->text) < 0))))
			best = i;
	return best;
}

/* Add up the figures of the name's rows alone: these are much to read. */
static void figures_sum(const struct summing *summing, uint32_t wanted, struct action_figures *sum)
{
	for (size_t i = 0; i < summing->rows->memory_count; i++) {
		const struct action_row *row = &summing->rows->memory[i];
		uint32_t frame;
		if (!frame_of(summing, row, &frame) || name_of(summing->input, frame) != wanted)
			continue;
		heap_numbers_add(&sum->numbers, &row->figures->numbers);
		for (unsigned k = 0; k < ACTION_EXTRA_MAX; k++)
			sum->extra[k] += row->figures->extra[k];
	}
}

static struct function_sum largest_find(const struct summing *summing)
{
	const struct heap_names *names = action_names(summing->input);
	const uint32_t name_count = heap_names_count(names);
	struct name_sum *sums = memory_zeroed((size_t)name_count + 1, sizeof(*sums));
	names_sum(summing, sums, name_count);
	const uint32_t best = name_choose(names, sums, name_count);
	struct function_sum largest = {.node = sums[best].node, .stack_count = sums[best].stacks};
	if (sums[best].is_there)
		figures_sum(summing, best == name_count ? HEAP_NONE : best, &largest.figures);
	free(sums);
	return largest;
}

struct function_sum function_sum_largest(struct action_input *input, const struct action_rows *rows,
					 const struct action_sort *sort)
{
	return largest_find(&(struct summing){input, rows, sort, HEAP_NONE});
}

bool function_sum_has(struct action_input *input, const struct function_sum *sum, uint32_t node)
{
	return name_of(input, user_frame(input, node)) == name_of(input, user_frame(input, sum->node));
}

struct function_sum function_sum_named_caller(struct action_input *input, const struct action_rows *rows,
					      const struct action_sort *sort, uint32_t nameless)
{
	const uint32_t of = name_of(input, user_frame(input, nameless));
	if (of == HEAP_NONE)
		return (struct function_sum){.node = 0};
	return largest_find(&(struct summing){input, rows, sort, of});
}
