/* SPDX-License-Identifier: MIT */
/*
 * A sweep over the addresses. The spans that cover the current address wait in a heap, with the one that counts on top.
 * Ended spans are dropped when they come to the top. Each round either enters a span or ends one:
 *
 *      spans     aaaaaaaaaaaa        (priority 0)
 *                   bbbb  cc         (priority 1)
 *      pieces    aaabbbbaaccaa
 */
#include "symbols/spans.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "base/memory.h"
#include "base/order.h"

void span_list_add(struct span_list *list, uint64_t low, uint64_t high, uint64_t priority, uint32_t value)
{
	if (low >= high)
		return;
	memory_grow(list->spans, list->count, list->capacity);
	list->spans[list->count++] = (struct span){low, high, priority, value};
}

void span_list_fini(struct span_list *list)
{
	free(list->spans);
	*list = (struct span_list){0};
}

COMPARE_BY(span_compare_low, struct span, low)

static bool span_counts_before(const struct span *a, const struct span *b)
{
	return a->priority != b->priority ? a->priority > b->priority : a->value < b->value;
}

/** Spans that were entered and may have ended; the one that counts is items[0]. */
struct span_heap {
	const struct span **items;
	size_t count;
};

static void span_heap_push(struct span_heap *heap, const struct span *span)
{
	size_t place = heap->count++;
	while (place && span_counts_before(span, heap->items[(place - 1) / 2])) {
		heap->items[place] = heap->items[(place - 1) / 2];
		place = (place - 1) / 2;
	}
	heap->items[place] = span;
}

static void span_heap_pop(struct span_heap *heap)
{
	assert(heap->count > 0);
	const struct span *last = heap->items[--heap->count];
	size_t place = 0;
	for (size_t child; (child = 2 * place + 1) < heap->count; place = child) {
		if (child + 1 < heap->count && span_counts_before(heap->items[child + 1], heap->items[child]))
			child++;
		if (!span_counts_before(heap->items[child], last))
			break;
		heap->items[place] = heap->items[child];
	}
	heap->items[place] = last;
}

static void span_map_append(struct span_map *map, uint64_t low, uint32_t value)
{
	assert(!map->count || map->pieces[map->count - 1].low <= low);
	if (map->count && map->pieces[map->count - 1].value == value)
		return;
	memory_grow(map->pieces, map->count, map->capacity);
	map->pieces[map->count++] = (struct span_piece){low, value};
}

void span_map_init(struct span_map *map, struct span_list *list)
{
	struct span_heap heap = {.items = memory_resize(NULL, list->count + 1, sizeof(*heap.items))};
	size_t next = 0;
	uint64_t address = 0;

	*map = (struct span_map){0};
	if (list->count)
		qsort(list->spans, list->count, sizeof(*list->spans), span_compare_low);
	while (next < list->count || heap.count) {
		if (!heap.count)
			address = list->spans[next].low > address ? list->spans[next].low : address;
		while (next < list->count && list->spans[next].low <= address)
			span_heap_push(&heap, &list->spans[next++]);
		while (heap.count && heap.items[0]->high <= address)
			span_heap_pop(&heap);
		span_map_append(map, address, heap.count ? heap.items[0]->value : SPAN_NONE);
		if (heap.count) {
			address = heap.items[0]->high;
			if (next < list->count && list->spans[next].low < address)
				address = list->spans[next].low;
		}
	}
	free(heap.items);
}

void span_map_fini(struct span_map *map)
{
	free(map->pieces);
	*map = (struct span_map){0};
}

uint32_t span_map_find(const struct span_map *map, uint64_t address)
{
	size_t place;
	BISECT(place, map->count, i, map->pieces[i].low <= address);
	return place ? map->pieces[place - 1].value : SPAN_NONE;
}
