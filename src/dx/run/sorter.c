/* SPDX-License-Identifier: MIT */
#include "dx/run/sorter.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/priority_queue.h"

enum { BUFFERS_PART = 4, HEAD_BYTES = 16 << 10, BUFFER_LEAST = 1 << 10, BUFFER_MOST = 256 << 10 };

/* The least element of a run that was not taken yet; its keys are among head_keys. */
struct sorter_head {
	struct run_reader run;
	struct dx_arena arena;
	struct dx_element element;
	bool is_over;
};

void dx_sorter_begin(struct dx_sorter *sorter, struct dx_query *query, const struct dx_iterator *iterator,
		     struct dx_arena *arena)
{
	assert(sorter->compare && sorter->key_count);
	sorter->query = query;
	sorter->iterator = iterator;
	sorter->elements = dx_list_new(query, arena);
	sorter->keys = dx_list_new(query, arena);
	sorter->spill = (struct dx_spill){.file = {RUN_FILE_NONE}};
}

/* ---- in memory ---- */

static const struct dx_element *keys_of(const struct dx_sorter *sorter, uint32_t number)
{
	return sorter->present_keys + (size_t)number * sorter->key_count;
}

static int numbers_order(const struct dx_sorter *sorter, uint32_t one, uint32_t other)
{
	return sorter->compare(sorter->context, keys_of(sorter, one), keys_of(sorter, other));
}

/* Sort by merging from the bottom up, stably. */
static uint32_t *numbers_sort(const struct dx_sorter *sorter, uint32_t *numbers, uint32_t *scratch, uint32_t count)
{
	for (uint64_t width = 1; width < count; width *= 2) {
		for (uint64_t start = 0; start < count; start += 2 * width) {
			uint64_t middle = start + width < count ? start + width : count;
			uint64_t end = start + 2 * width < count ? start + 2 * width : count;
			for (uint64_t left = start, right = middle, to = start; to < end; to++) {
				bool is_left = right >= end || (left < middle && numbers_order(sorter, numbers[left],
											       numbers[right]) <= 0);
				scratch[to] = numbers[is_left ? left++ : right++];
			}
			if (!dx_step_kept(sorter->query, sorter->iterator))
				return numbers;
		}
		uint32_t *swapped = numbers;
		numbers = scratch;
		scratch = swapped;
	}
	return numbers;
}

/* Sort what is in memory. False: the query is to end. */
static bool run_sort(struct dx_sorter *sorter)
{
	size_t count = sorter->count = dx_list_count(sorter->elements);
	sorter->numbers = memory_resize(sorter->numbers, count + 1, sizeof(*sorter->numbers));
	sorter->scratch = memory_resize(sorter->scratch, count + 1, sizeof(*sorter->scratch));
	for (uint32_t i = 0; i < count; i++)
		sorter->numbers[i] = i;
	sorter->present_keys = dx_list_elements(sorter->keys);
	uint32_t *sorted = numbers_sort(sorter, sorter->numbers, sorter->scratch, (uint32_t)count);
	if (sorted == sorter->scratch) {
		sorter->scratch = sorter->numbers;
		sorter->numbers = sorted;
	}
	return !sorter->query->is_stopped;
}

/* ---- to the file ---- */

static void spill_failed(const struct dx_sorter *sorter)
{
	const struct dx_sequence *sequence = sorter->iterator->sequence;
	dx_stop(sorter->query, sequence->column, "%s: the temporary file for sorting: %s", sequence->operation->name,
		strerror(sorter->spill.file.error));
}

/* Write an element behind its keys. */
static void element_write(struct dx_sorter *sorter, const struct dx_element *keys, const struct dx_element *element)
{
	for (uint32_t k = 0; k < sorter->key_count; k++)
		dx_spill_write(&sorter->spill, &keys[k].value);
	dx_spill_write(&sorter->spill, &element->index);
	dx_spill_write(&sorter->spill, &element->value);
}

/* Write what is in memory to the file, sorted. */
static void run_spill(struct dx_sorter *sorter)
{
	assert(dx_list_count(sorter->keys) == dx_list_count(sorter->elements) * sorter->key_count);
	if (!run_sort(sorter))
		return;
	for (uint32_t i = 0; i < sorter->count && dx_step_kept(sorter->query, sorter->iterator); i++)
		element_write(sorter, keys_of(sorter, sorter->numbers[i]), dx_sorter_at(sorter, i));
	dx_list_clear(sorter->elements);
	dx_list_clear(sorter->keys);
	if (!dx_spill_end_run(&sorter->spill))
		spill_failed(sorter);
}

/* Before one more element would take more than the memory. */
static bool is_time_to_spill(const struct dx_sorter *sorter)
{
	return dx_list_bytes_with(sorter->elements) + dx_list_bytes_with(sorter->keys) > sorter->memory_bytes &&
	       dx_list_count(sorter->elements) && !sorter->is_unspillable && !sorter->query->is_stopped;
}

void dx_sorter_add(struct dx_sorter *sorter, const struct dx_element *element, const struct dx_value *keys)
{
	if (is_time_to_spill(sorter))
		run_spill(sorter);
	dx_list_add(sorter->elements, element);
	sorter->is_unspillable |= !dx_spill_takes(&element->value) || !dx_spill_takes(&element->index);
	for (uint32_t i = 0; i < sorter->key_count; i++) {
		const struct dx_element key = {keys[i], dx_bool(false)};
		dx_list_add(sorter->keys, &key);
		sorter->is_unspillable |= !dx_spill_takes(&keys[i]);
	}
}

/* ---- merging ---- */

/* Equal elements keep their order: an earlier run has the earlier ones. */
static bool is_before(const struct dx_sorter *sorter, uint32_t one, uint32_t other)
{
	int order = numbers_order(sorter, one, other);
	return order ? order < 0 : one < other;
}

PRIORITY_QUEUE(run_queue, uint32_t, const struct dx_sorter *, is_before(context, *one, *other))

/* Read the next element of a run, with its keys. */
static void head_read(struct dx_sorter *sorter, uint32_t run)
{
	assert(run < sorter->spill.run_count);
	struct sorter_head *head = &sorter->heads[run];
	struct dx_element *keys = &sorter->head_keys[run * sorter->key_count];
	dx_arena_clear(&head->arena);
	for (uint32_t k = 0; k < sorter->key_count && !head->is_over; k++)
		head->is_over = !dx_spill_read(&head->run, &head->arena, &keys[k].value);
	head->is_over = head->is_over || !dx_spill_read(&head->run, &head->arena, &head->element.index) ||
			!dx_spill_read(&head->run, &head->arena, &head->element.value);
}

/* Begin to read `count` runs from `first` on beside each other. */
static void heads_open(struct dx_sorter *sorter, uint32_t first, uint32_t count, size_t buffer)
{
	for (uint32_t i = 0; i < count; i++) {
		struct sorter_head *head = &sorter->heads[i];
		dx_arena_init(&head->arena, &sorter->query->budget);
		run_open(&head->run, &sorter->spill.file, sorter->spill.runs[first + i], buffer);
		head->is_over = false;
		sorter->head_count = i + 1;
		head_read(sorter, i);
		if (!head->is_over)
			sorter->queue[sorter->queue_count++] = i;
	}
	run_queue_make(sorter, sorter->queue, sorter->queue_count);
}

static void heads_close(struct dx_sorter *sorter)
{
	for (uint32_t i = 0; i < sorter->head_count; i++) {
		run_close(&sorter->heads[i].run);
		dx_arena_fini(&sorter->heads[i].arena);
	}
	sorter->head_count = sorter->queue_count = 0;
}

/* Go on behind the least head. */
static void heads_advance(struct dx_sorter *sorter)
{
	uint32_t run = sorter->queue[0];
	head_read(sorter, run);
	if (sorter->heads[run].is_over)
		run_queue_pop(sorter, sorter->queue, --sorter->queue_count);
	else
		run_queue_sink(sorter, sorter->queue, sorter->queue_count, 0);
}

/* Merge each `most` runs to one, until there are no more than these. Merged ones keep the order of the first ones. */
static void runs_join(struct dx_sorter *sorter, uint32_t most, size_t buffer)
{
	const struct dx_query *query = sorter->query;
	struct dx_spill *spill = &sorter->spill;
	while (spill->run_count > most && !query->is_stopped) {
		uint32_t count = spill->run_count;
		for (uint32_t first = 0; first < count && !query->is_stopped; first += most) {
			heads_open(sorter, first, count - first < most ? count - first : most, buffer);
			for (; sorter->queue_count && dx_step_kept(sorter->query, sorter->iterator);
			     heads_advance(sorter))
				element_write(sorter, keys_of(sorter, sorter->queue[0]),
					      &sorter->heads[sorter->queue[0]].element);
			heads_close(sorter);
			if (!dx_spill_end_run(spill))
				spill_failed(sorter);
		}
		dx_spill_forget(spill, count);
	}
}

static void merge_begin(struct dx_sorter *sorter)
{
	uint32_t count = sorter->spill.run_count;
	assert(count);
	/* An arena for each head, and its buffer. */
	size_t memory = sorter->query->budget.limit_bytes / BUFFERS_PART, most = memory / (HEAD_BYTES + BUFFER_LEAST);
	most = most > 2 ? most : 2;
	count = count < most ? count : (uint32_t)most;
	size_t buffer = memory / count > HEAD_BYTES + BUFFER_LEAST ? memory / count - HEAD_BYTES : BUFFER_LEAST;
	buffer = buffer < BUFFER_MOST ? buffer : BUFFER_MOST;
	sorter->heads = memory_zeroed(count, sizeof(*sorter->heads));
	sorter->head_keys = memory_zeroed((size_t)count * sorter->key_count, sizeof(*sorter->head_keys));
	sorter->present_keys = sorter->head_keys;
	sorter->queue = memory_zeroed(count, sizeof(*sorter->queue));
	runs_join(sorter, count, buffer);
	if (!sorter->query->is_stopped)
		heads_open(sorter, 0, sorter->spill.run_count, buffer);
}

static bool merge_next(struct dx_sorter *sorter, struct dx_element *element, struct dx_value *keys)
{
	struct dx_arena *arena = sorter->query->arena;
	if (!sorter->queue_count || sorter->query->is_stopped)
		return false;
	uint32_t run = sorter->queue[0];
	element->value = dx_value_copy(arena, &sorter->heads[run].element.value);
	element->index = dx_value_copy(arena, &sorter->heads[run].element.index);
	for (uint32_t i = 0; keys && i < sorter->key_count; i++)
		keys[i] = dx_value_copy(arena, &keys_of(sorter, run)[i].value);
	heads_advance(sorter);
	if (sorter->spill.file.error)
		spill_failed(sorter);
	return !sorter->query->is_stopped;
}

/* ---- all of it ---- */

void dx_sorter_sort(struct dx_sorter *sorter)
{
	if (sorter->query->is_stopped)
		return;
	if (sorter->spill.run_count)
		run_spill(sorter);
	else
		run_sort(sorter);
	if (sorter->spill.run_count && !sorter->query->is_stopped)
		merge_begin(sorter);
}

const struct dx_element *dx_sorter_at(const struct dx_sorter *sorter, uint32_t i)
{
	return &dx_list_elements(sorter->elements)[sorter->numbers[i]];
}

bool dx_sorter_next(struct dx_sorter *sorter, struct dx_element *element, struct dx_value *keys)
{
	if (sorter->heads)
		return merge_next(sorter, element, keys);
	if (sorter->query->is_stopped || sorter->next == sorter->count)
		return false;
	*element = *dx_sorter_at(sorter, sorter->next);
	for (uint32_t i = 0; keys && i < sorter->key_count; i++)
		keys[i] = keys_of(sorter, sorter->numbers[sorter->next])[i].value;
	sorter->next++;
	return true;
}

void dx_sorter_end(struct dx_sorter *sorter)
{
	if (!sorter->query)
		return;
	heads_close(sorter);
	free(sorter->heads);
	free(sorter->head_keys);
	free(sorter->queue);
	free(sorter->numbers);
	free(sorter->scratch);
	dx_spill_fini(&sorter->spill);
	sorter->heads = NULL;
	sorter->head_keys = NULL;
	sorter->queue = sorter->numbers = sorter->scratch = NULL;
	sorter->count = sorter->next = 0;
}
