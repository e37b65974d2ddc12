/* SPDX-License-Identifier: MIT */
#include "plan/records.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/priority_queue.h"
#include "base/sort.h"

/* ---- the order ---- */

static void order_add(struct record_order *order, uint32_t output, enum plan_type type, bool is_descending)
{
	order->keys[order->count].output = output;
	order->keys[order->count].type = (uint8_t)type;
	order->keys[order->count++].is_descending = is_descending;
}

void record_order_make(struct record_order *order, const struct plan *plan)
{
	uint32_t width = plan_width(plan), first_row = width + 2;
	*order = (struct record_order){.width = width, .stride = first_row};
	for (uint32_t i = 0; i < plan->order_count; i++)
		order_add(order, plan->orders[i].output, plan_output_type(plan, plan->orders[i].output),
			  plan->orders[i].is_descending);
	if (plan->keeps_first_order) {
		order->stride += FIRST_ROW_WORDS;
		order_add(order, first_row, PLAN_TIME, false);
		order_add(order, first_row + 1, PLAN_NUMBER, false);
	}
	for (uint32_t i = 0; i < plan->key_count && !plan->keeps_first_order; i++)
		order_add(order, i, plan_output_type(plan, i), false);
}

static int value_compare(uint8_t type, uint64_t a, uint64_t b)
{
	double x, y;
	switch (type) {
	case PLAN_TIME:
		return ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b);
	case PLAN_REAL:
		memcpy(&x, &a, sizeof(x));
		memcpy(&y, &b, sizeof(y));
		return (x > y) - (x < y);
	default:
		return (a > b) - (a < b);
	}
}

int record_compare(const struct record_order *order, const uint64_t *a, const uint64_t *b)
{
	uint64_t absent_a = a[order->width], absent_b = b[order->width];
	for (uint32_t i = 0; i < order->count; i++) {
		uint32_t output = order->keys[i].output;
		bool has_a = !(absent_a >> output & 1), has_b = !(absent_b >> output & 1);
		if (has_a != has_b)
			return has_b - has_a;
		int difference = has_a ? value_compare(order->keys[i].type, a[output], b[output]) : 0;
		if (difference)
			return order->keys[i].is_descending ? -difference : difference;
	}
	return (a[order->width + 1] > b[order->width + 1]) - (a[order->width + 1] < b[order->width + 1]);
}

/* ---- collecting ---- */

enum { SMALL_ROOM = 16, RUN_WORDS = 1 << 13 /* read at a time */, READ_WORDS_LEAST = 1 << 9 };

void records_begin(struct records *records, const struct record_order *order, struct run_file *spill, uint64_t most,
		   uint64_t memory_bytes)
{
	/* A record and its place for sorting, and both once more while they are sorted. */
	uint64_t each = 2 * (order->stride * sizeof(uint64_t) + sizeof(uint64_t *));
	*records = (struct records){.order = order, .spill = spill, .most = most};
	records->room = memory_bytes / each > SMALL_ROOM ? memory_bytes / each : SMALL_ROOM;
}

static int indirect_compare(const void *a, const void *b, void *context)
{
	return record_compare(context, *(uint64_t *const *)a, *(uint64_t *const *)b);
}

/* The places of records in their order. */
static const uint64_t **records_sorted(const struct record_order *order, const uint64_t *items, size_t count)
{
	const uint64_t **sorted = memory_resize(NULL, count + 1, sizeof(*sorted));
	for (size_t i = 0; i < count; i++)
		sorted[i] = items + i * order->stride;
	pointers_sort((void **)sorted, count, indirect_compare, (void *)order, order->is_cancelled);
	return sorted;
}

void records_write(struct records *records, const uint64_t *items, size_t count)
{
	size_t bytes = records->order->stride * sizeof(uint64_t);
	struct run_writer writer;
	if (!count || cancel_is_asked(records->order->is_cancelled))
		return;
	const uint64_t **sorted = records_sorted(records->order, items, count);
	run_begin(&writer, records->spill, count * bytes);
	for (size_t i = 0; i < count; i++)
		run_write(&writer, sorted[i], bytes);
	free(sorted);
	memory_grow(records->runs, records->run_count, records->run_capacity);
	records->runs[records->run_count++] = run_end(&writer);
}

/* Keep the first ones, and remember the last of them. */
static void records_cut(struct records *records)
{
	uint32_t stride = records->order->stride;
	const uint64_t **sorted = records_sorted(records->order, records->items, records->count);
	size_t count = records->count < records->most ? records->count : (size_t)records->most;
	uint64_t *kept = memory_resize(NULL, records->capacity * stride, sizeof(*kept));
	for (size_t i = 0; i < count; i++)
		memcpy(kept + i * stride, sorted[i], stride * sizeof(*kept));
	free(sorted);
	free(records->items);
	records->items = kept;
	records->count = count;
	if (count < records->most || !count)
		return;
	records->threshold = memory_resize(records->threshold, stride, sizeof(*records->threshold));
	memcpy(records->threshold, kept + (count - 1) * stride, stride * sizeof(*kept));
	records->has_threshold = true;
}

/* The record that was added last comes too late to be wanted. */
static void last_drop(struct records *records)
{
	uint32_t stride = records->order->stride;
	if (records->has_threshold && records->count &&
	    record_compare(records->order, records->items + (records->count - 1) * stride, records->threshold) > 0)
		records->count--;
}

uint64_t *records_add(struct records *records)
{
	uint32_t stride = records->order->stride;
	last_drop(records);
	assert(records->count <= records->capacity);
	if (records->most <= records->room / 2 && records->count >= 2 * records->most + SMALL_ROOM)
		records_cut(records);
	else if (records->count >= records->room) {
		records_write(records, records->items, records->count);
		records->count = 0;
	}
	if (records->count >= records->capacity) {
		records->capacity = memory_capacity(records->capacity, records->count + 1);
		if (records->capacity > records->room && records->count < records->room)
			records->capacity = records->room;
		records->items = memory_resize(records->items, records->capacity * stride, sizeof(*records->items));
	}
	return records->items + records->count++ * stride;
}

void records_sort(struct records *records)
{
	if (records->count && !cancel_is_asked(records->order->is_cancelled))
		records_cut(records);
	CHECK_VALID(records_are_valid(records));
	CHECK_VALID(cancel_is_asked(records->order->is_cancelled) || records_are_sorted(records));
}

bool records_are_sorted(const struct records *records)
{
	uint32_t stride = records->order->stride;
	const uint64_t *items = records->items;
	for (size_t i = 1; i < records->count; i++)
		if (record_compare(records->order, items + (i - 1) * stride, items + i * stride) >= 0)
			return false;
	return records->count <= records->most;
}

/* A value, or a part of the first row. */
static bool is_compared(const struct record_order *order, uint32_t word)
{
	return word < order->width || (word > order->width + 1 && word < order->stride);
}

/* Records that were added last are not filled in yet: they are not looked at. */
bool records_are_valid(const struct records *records)
{
	uint64_t end = 0;
	bool is_valid = records->count <= records->capacity && records->room >= SMALL_ROOM &&
			records->run_count <= records->run_capacity && records->has_threshold <= !!records->threshold &&
			records->order->count <= sizeof(records->order->keys) / sizeof(*records->order->keys);
	for (uint32_t i = 0; is_valid && i < records->order->count; i++)
		is_valid = is_compared(records->order, records->order->keys[i].output);
	for (uint32_t i = 0; is_valid && i < records->run_count; i++) {
		is_valid = records->runs[i].bytes && records->runs[i].offset >= end;
		end = records->runs[i].offset + records->runs[i].bytes;
	}
	return is_valid && end <= records->spill->end;
}

void records_end(struct records *records)
{
	free(records->items);
	free(records->threshold);
	free(records->runs);
	*records = (struct records){.items = NULL};
}

/* ---- merging ---- */

struct record_merge {
	const struct record_order *order;
	struct run_file *spill;
	struct run_reader *sources;
	const uint64_t **heads; /* by source: its next record */
	uint32_t *heap;
	uint32_t source_count, heap_count;
	bool has_top; /* the first source's record was given out */
};

PRIORITY_QUEUE(source_queue, uint32_t, const struct record_merge *,
	       record_compare(context->order, context->heads[*one], context->heads[*other]) < 0)

/* Return the next record of a source; NULL: there are no more. */
static const uint64_t *source_next(struct record_merge *merge, uint32_t source)
{
	return run_next(&merge->sources[source], merge->order->stride * sizeof(uint64_t));
}

static void sources_add(struct record_merge *merge, const struct records *records, size_t window_bytes)
{
	if (records->count)
		run_open_memory(&merge->sources[merge->source_count++], records->spill, records->items,
				records->count * records->order->stride * sizeof(*records->items));
	for (uint32_t i = 0; i < records->run_count; i++)
		run_open(&merge->sources[merge->source_count++], records->spill, records->runs[i], window_bytes);
}

struct record_merge *record_merge_new(struct records *records, unsigned count, uint64_t memory_bytes)
{
	uint32_t sources = 0, runs = 0, stride = records[0].order->stride;
	assert(count > 0);
	for (unsigned i = 0; i < count; i++) {
		assert(records[i].order == records[0].order && records[i].spill == records[0].spill);
		runs += records[i].run_count;
	}
	sources = runs + count;
	uint64_t words = runs ? memory_bytes / sizeof(uint64_t) / runs : 0;
	if (runs && words < READ_WORDS_LEAST)
		return NULL;
	struct record_merge *merge = memory_zeroed(1, sizeof(*merge));
	*merge = (struct record_merge){.order = records[0].order, .spill = records[0].spill};
	merge->sources = memory_zeroed(sources, sizeof(*merge->sources));
	merge->heads = memory_zeroed(sources, sizeof(*merge->heads));
	merge->heap = memory_zeroed(sources, sizeof(*merge->heap));
	for (unsigned i = 0; i < count; i++)
		sources_add(merge, &records[i],
			    (words > RUN_WORDS ? RUN_WORDS : words) / stride * stride * sizeof(uint64_t));
	for (uint32_t i = 0; i < merge->source_count; i++)
		if ((merge->heads[i] = source_next(merge, i)))
			merge->heap[merge->heap_count++] = i;
	source_queue_make(merge, merge->heap, merge->heap_count);
	return merge;
}

const uint64_t *record_merge_next(struct record_merge *merge)
{
	if (merge->has_top) {
		uint32_t top = merge->heap[0];
		merge->heads[top] = source_next(merge, top);
		if (merge->heads[top])
			source_queue_sink(merge, merge->heap, merge->heap_count, 0);
		else
			source_queue_pop(merge, merge->heap, --merge->heap_count);
	}
	merge->has_top = merge->heap_count && !merge->spill->error;
	return merge->has_top ? merge->heads[merge->heap[0]] : NULL;
}

void record_merge_free(struct record_merge *merge)
{
	if (!merge)
		return;
	for (uint32_t i = 0; i < merge->source_count; i++)
		run_close(&merge->sources[i]);
	free(merge->sources);
	free(merge->heads);
	free(merge->heap);
	free(merge);
}
