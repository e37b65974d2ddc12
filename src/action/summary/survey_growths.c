/* SPDX-License-Identifier: MIT */
#include "action/summary/survey_growths.h"

#include <stdlib.h>

#include "action/report/stack_view.h"
#include "action/summary/put_in.h"
#include "action/summary/survey_making.h"
#include "base/memory.h"
#include "base/text.h"
#include "trace/gap_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* Return how many frees of the process were lost in the time. */
static uint64_t lost_frees(const struct trace_dictionary *dictionary, const struct survey_slot *slot)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < dictionary->gap_count; i++) {
		const struct trace_gap *gap = &dictionary->gaps[i];
		bool is_own = gap->process == slot->process || gap->process == TRACE_NONE;
		if (is_own && gap->to_ns >= slot->clock.from_ns && gap->from_ns <= slot->clock.to_ns)
			count += gap->count[EVENT_FREE] + gap->count[EVENT_REALLOC];
	}
	return count;
}

static int growth_compare(const void *a, const void *b)
{
	const struct survey_growth *left = a, *right = b;
	bool left_grows = left->growth.verdict == GROWTH_GROWS, right_grows = right->growth.verdict == GROWTH_GROWS;
	if (left_grows != right_grows)
		return left_grows ? -1 : 1;
	double of_left = left_grows ? left->growth.bytes.low : (double)left->growth.grown_bytes,
	       of_right = left_grows ? right->growth.bytes.low : (double)right->growth.grown_bytes;
	if (of_left < of_right || of_left > of_right)
		return of_left > of_right ? -1 : 1;
	if (left->node != right->node)
		return left->node < right->node ? -1 : 1;
	return left->process < right->process ? -1 : left->process > right->process;
}

/* The stacks of a function in a process, which may grow together though each one ends after a while: a compiler at run
   time moves its code, a container of buckets takes another path. */
struct function_growth {
	struct growth_series series;
	uint32_t slot, node;  /* node: of the stack that has grown by the most bytes */
	uint32_t stack_count; /* that have grown */
	int64_t most_bytes;
	double low; /* bytes a second, of the stacks that grow by themselves */
	bool grows; /* faster than these */
};

enum { SURVEY_BEFORES = 64 /* stacks of functions that were put into one */ };

/* The growths of stacks, and those of their functions. */
struct growths {
	const struct survey_part *part;
	struct growth *stacks; /* by series */
	uint32_t *counts;      /* by series: of stacks that it stands for; 0: another one stands for it */
	uint32_t *function_of; /* by series, HEAP_NONE: of none */
	struct function_growth *functions;
	size_t function_count, function_capacity;
};

/* Return the place of the function of a stack, or HEAP_NONE. */
static uint32_t function_add(struct growths *growths, struct map *place_of, uint32_t slot, uint32_t node)
{
	struct action_input *input = growths->part->making->input;
	const struct heap_names *names = action_names(input);
	bool added;
	if (!node || node == HEAP_NONE)
		return HEAP_NONE;
	uint32_t name = heap_names_frame(names, stack_view_user_node(input, node))->name;
	if (heap_names_name(names, name)->is_mark)
		return HEAP_NONE;
	uint32_t *place = map_add(place_of, map_pair(slot, name), &added);
	if (added) {
		memory_grow(growths->functions, growths->function_count, growths->function_capacity);
		*place = (uint32_t)growths->function_count++;
		growths->functions[*place] = (struct function_growth){.slot = slot, .node = node};
	}
	return *place;
}

static void functions_sum(struct growths *growths)
{
	const struct survey_part *part = growths->part;
	struct map place_of = {0};
	for (uint32_t i = 0; i < part->series_count; i++) {
		uint32_t node = (uint32_t)part->series_keys[i],
			 place = function_add(growths, &place_of, (uint32_t)(part->series_keys[i] >> 32), node);
		growths->function_of[i] = place;
		if (place == HEAP_NONE)
			continue;
		struct function_growth *sum = &growths->functions[place];
		const struct growth *own = &growths->stacks[i];
		growth_merge(&sum->series, &part->series[i]);
		sum->stack_count += own->grown_count > 0;
		sum->low += own->verdict == GROWTH_GROWS ? own->bytes.low : 0;
		if (own->grown_bytes > sum->most_bytes || (own->grown_bytes == sum->most_bytes && node < sum->node)) {
			sum->most_bytes = own->grown_bytes;
			sum->node = node;
		}
	}
	map_fini(&place_of);
}

static struct growth series_judge(const struct survey_part *part, const struct growth_series *series, uint32_t number)
{
	const struct survey_slot *slot = &part->making->slots[number];
	const struct action_source *source = part->making->source;
	const struct trace_dictionary *dictionary = source->table->dictionary;
	struct growth growth =
		growth_judge(series, &slot->clock, &part->replaced[number], lost_frees(dictionary, slot));
	/* A process that has exited needs no more. Others may go on for years. */
	bool has_exited = dictionary->processes[slot->process].end == TRACE_END_EXIT;
	if (growth.verdict == GROWTH_GROWS && has_exited && growth.bytes.mean < GROWTH_LEAST_RATE &&
	    text_percent((uint64_t)growth.grown_bytes, source->window->totals.peak_bytes) < GROWTH_LEAST_PERCENT)
		growth.verdict = GROWTH_SMALL;
	return growth;
}

/* Return the place of a series, HEAP_NONE: there is none. What the index keeps has no table of them. */
static uint32_t series_find(const struct survey_part *part, uint64_t key)
{
	uint32_t place = 0;
	while (place < part->series_count && part->series_keys[place] != key)
		place++;
	return place < part->series_count ? place : HEAP_NONE;
}

/* The stacks of functions that were put into this one may be the same growth, which goes on for all of the time. */
static void befores_judge(struct growths *growths, const struct put_in *put_in, const struct put_in_row *row,
			  uint32_t number)
{
	const struct survey_part *part = growths->part;
	const uint32_t slot = (uint32_t)(part->series_keys[number] >> 32);
	struct growth_series series = part->series[number];
	uint32_t places[SURVEY_BEFORES], count = 0;
	for (uint32_t i = 0; i < row->count && count < SURVEY_BEFORES; i++) {
		uint32_t place = series_find(part, map_pair(slot, put_in->befores[row->first + i]));
		if (place == HEAP_NONE || !growths->counts[place] || growths->stacks[place].verdict == GROWTH_GROWS)
			continue;
		growth_merge(&series, &part->series[place]);
		places[count++] = place;
	}
	const struct growth growth = series_judge(part, &series, slot);
	if (!count || growth.verdict != GROWTH_GROWS || growth.is_of_buffers)
		return;
	growths->stacks[number] = growth;
	growths->counts[number] += count;
	while (count > 0)
		growths->counts[places[--count]] = 0;
}

static void put_ins_judge(struct growths *growths, const struct put_in *put_in)
{
	for (uint32_t i = 0; i < growths->part->series_count; i++)
		growths->counts[i] = 1;
	for (uint32_t i = 0; put_in && i < growths->part->series_count; i++) {
		const struct put_in_row *row = put_in_row(put_in, (uint32_t)growths->part->series_keys[i]);
		if (row && growths->counts[i])
			befores_judge(growths, put_in, row, i);
	}
}

static void growth_put(struct survey *survey, const struct survey_slot *slot, uint32_t node, uint32_t stack_count,
		       struct growth growth)
{
	survey->growths[survey->growth_count++] =
		(struct survey_growth){slot->process, node, stack_count, slot->clock, growth};
	survey->grows_count += growth.verdict == GROWTH_GROWS;
}

/* A function stands for its stacks if they are sure to grow by less than half as much by themselves. */
static void functions_put(struct survey *survey, struct growths *growths)
{
	for (size_t i = 0; i < growths->function_count; i++) {
		struct function_growth *sum = &growths->functions[i];
		if (sum->stack_count < 2)
			continue;
		const struct growth growth = series_judge(growths->part, &sum->series, sum->slot);
		sum->grows = growth.verdict == GROWTH_GROWS && !growth.is_of_buffers && growth.bytes.low > 2 * sum->low;
		if (sum->grows)
			growth_put(survey, &growths->part->making->slots[sum->slot], sum->node, sum->stack_count,
				   growth);
	}
}

static void stacks_put(struct survey *survey, const struct growths *growths)
{
	for (uint32_t i = 0; i < growths->part->series_count; i++) {
		const struct growth *own = &growths->stacks[i];
		uint64_t key = growths->part->series_keys[i];
		uint32_t function = growths->function_of[i];
		bool grows = own->verdict == GROWTH_GROWS;
		if (grows ? function != HEAP_NONE && growths->functions[function].grows : own->grown_count <= 0)
			continue;
		if (growths->counts[i])
			growth_put(survey, &growths->part->making->slots[key >> 32], (uint32_t)key, growths->counts[i],
				   *own);
	}
}

static bool has_growth(const struct survey *survey, uint32_t process)
{
	for (size_t i = 0; i < survey->growth_count; i++)
		if (survey->growths[i].process == process && survey->growths[i].growth.verdict == GROWTH_GROWS)
			return true;
	return false;
}

/* A process of which no stack grows by itself may grow by all of them: by arenas that any line may need, or in code
   that a runtime moves. */
static void processes_put(struct survey *survey, const struct survey_part *part)
{
	for (unsigned number = 0; number < part->making->slot_count; number++) {
		const struct survey_slot *slot = &part->making->slots[number];
		struct growth_series whole = part->wholes[number];
		/* What new blocks replace is no growth. How long they live says nothing of those from before. */
		for (unsigned i = 0; i < GROWTH_PARTS; i++) {
			whole.bytes[i] += part->replaced[number].bytes[i];
			whole.count[i] += part->replaced[number].count[i];
			whole.old_bytes[i] += part->replaced[number].old_bytes[i];
			whole.old_count[i] += part->replaced[number].old_count[i];
		}
		struct growth growth = series_judge(part, &whole, number);
		growth.replaced_bytes = 0;
		if (growth.verdict == GROWTH_GROWS && !has_growth(survey, slot->process))
			growth_put(survey, slot, HEAP_NONE, 0, growth);
	}
}

void survey_growths_judge(struct survey *survey, const struct survey_part *part)
{
	struct growths growths = {.part = part};
	growths.stacks = memory_resize(NULL, (size_t)part->series_count + 1, sizeof(*growths.stacks));
	growths.counts = memory_resize(NULL, (size_t)part->series_count + 1, sizeof(*growths.counts));
	growths.function_of = memory_resize(NULL, (size_t)part->series_count + 1, sizeof(*growths.function_of));
	for (uint32_t i = 0; i < part->series_count; i++)
		growths.stacks[i] = series_judge(part, &part->series[i], (uint32_t)(part->series_keys[i] >> 32));
	put_ins_judge(&growths, survey->plan.put_in);
	functions_sum(&growths);
	survey->growths = memory_zeroed((size_t)part->series_count + growths.function_count + SURVEY_GROWING_PROCESSES,
					sizeof(*survey->growths));
	functions_put(survey, &growths);
	stacks_put(survey, &growths);
	processes_put(survey, part);
	qsort(survey->growths, survey->growth_count, sizeof(*survey->growths), growth_compare);
	free(growths.stacks);
	free(growths.counts);
	free(growths.function_of);
	free(growths.functions);
}
