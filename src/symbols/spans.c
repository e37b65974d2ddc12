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
#include "base/priority_queue.h"

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

/* Spans that were entered and may have ended; the one that counts is the first. */
PRIORITY_QUEUE(span_queue, const struct span *, const void *, span_counts_before(*one, *other))

static void span_map_append(struct span_map *map, uint64_t low, uint32_t value)
{
	assert(!map->count || map->pieces[map->count - 1].low <= low);
	if (map->count && map->pieces[map->count - 1].value == value)
		return;
	memory_grow(map->pieces, map->count, map->capacity);
	map->pieces[map->count++] = (struct span_piece){low, value};
}

/* Sort by `low`. Those of symbols come in the order of their addresses, backwards. */
static void span_list_sort(struct span_list *list)
{
	struct span *spans = list->spans;
	size_t backwards = 1;
	while (backwards < list->count && spans[backwards].low <= spans[backwards - 1].low)
		backwards++;
	if (backwards < list->count) {
		qsort(spans, list->count, sizeof(*spans), span_compare_low);
		return;
	}
	for (size_t i = 0; i < list->count / 2; i++) {
		struct span other = spans[list->count - 1 - i];
		spans[list->count - 1 - i] = spans[i];
		spans[i] = other;
	}
}

void span_map_init(struct span_map *map, struct span_list *list)
{
	const struct span **queue = memory_resize(NULL, list->count + 1, sizeof(*queue));
	size_t next = 0, queued = 0;
	uint64_t address = 0;

	*map = (struct span_map){0};
	span_list_sort(list);
	while (next < list->count || queued) {
		if (!queued)
			address = list->spans[next].low > address ? list->spans[next].low : address;
		while (next < list->count && list->spans[next].low <= address)
			span_queue_push(NULL, queue, queued++, &list->spans[next++]);
		while (queued && queue[0]->high <= address)
			span_queue_pop(NULL, queue, --queued);
		span_map_append(map, address, queued ? queue[0]->value : SPAN_NONE);
		if (queued) {
			address = queue[0]->high;
			if (next < list->count && list->spans[next].low < address)
				address = list->spans[next].low;
		}
	}
	free(queue);
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
