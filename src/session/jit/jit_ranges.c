/* SPDX-License-Identifier: MIT */
#include "session/jit/jit_ranges.h"

#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/memory.h"

/* Ranges of now, and added ones, of all processes. */
static size_t all_count;

static int range_compare(const void *a, const void *b)
{
	const struct jit_range *left = a, *right = b;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->number < right->number ? -1 : left->number > right->number;
}

static void past_add(struct jit_ranges *ranges, const struct jit_range *range)
{
	if (ranges->past_count == JIT_PAST_MAX) {
		ranges->past_count /= 2;
		memmove(ranges->past, ranges->past + JIT_PAST_MAX - ranges->past_count,
			ranges->past_count * sizeof(*ranges->past));
	}
	memory_grow(ranges->past, ranges->past_count, ranges->past_capacity);
	ranges->past[ranges->past_count++] = *range;
}

/* Put a range behind the others, which begin before it; of two that overlap the newer one stays. Return the new
   count. */
static size_t merged_put(struct jit_ranges *ranges, struct jit_range *merged, size_t count,
			 const struct jit_range *range)
{
	while (count && merged[count - 1].end > range->start) {
		if (merged[count - 1].number > range->number) {
			past_add(ranges, range);
			return count;
		}
		past_add(ranges, &merged[--count]);
	}
	merged[count] = *range;
	return count + 1;
}

/* Merge the added ranges into those of now. */
static void ranges_merge(struct jit_ranges *ranges)
{
	size_t all = ranges->count + ranges->added_count, count = 0, old = 0, added = 0;
	struct jit_range *merged = memory_resize(NULL, all, sizeof(*merged));
	qsort(ranges->added, ranges->added_count, sizeof(*ranges->added), range_compare);
	while (old < ranges->count || added < ranges->added_count) {
		bool is_old = added == ranges->added_count ||
			      (old < ranges->count && range_compare(&ranges->now[old], &ranges->added[added]) < 0);
		count = merged_put(ranges, merged, count, is_old ? &ranges->now[old] : &ranges->added[added]);
		old += is_old;
		added += !is_old;
	}
	free(ranges->now);
	ranges->now = merged;
	ranges->capacity = all;
	ranges->count = count;
	all_count -= all - count;
	ranges->added_count = 0;
}

bool jit_ranges_add(struct jit_ranges *ranges, const struct jit_range *range)
{
	if (all_count >= JIT_RANGES_MAX && ranges->added_count)
		ranges_merge(ranges);
	if (all_count >= JIT_RANGES_MAX)
		return false;
	all_count++;
	memory_grow(ranges->added, ranges->added_count, ranges->added_capacity);
	ranges->added[ranges->added_count] = *range;
	ranges->added[ranges->added_count++].number = ++ranges->number;
	return true;
}

static const struct jit_range *find_now(const struct jit_ranges *ranges, uint64_t address)
{
	size_t place;
	BISECT(place, ranges->count, i, ranges->now[i].start <= address);
	return place && address < ranges->now[place - 1].end ? &ranges->now[place - 1] : NULL;
}

const struct jit_range *jit_ranges_find(struct jit_ranges *ranges, uint64_t address, uint64_t ticks)
{
	if (ranges->added_count)
		ranges_merge(ranges);
	const struct jit_range *now = find_now(ranges, address);
	if (now && now->from_ticks <= ticks)
		return now;
	for (size_t i = ranges->past_count; now && i-- > 0;) {
		const struct jit_range *past = &ranges->past[i];
		if (address >= past->start && address < past->end && past->from_ticks <= ticks)
			return past;
	}
	return now;
}

void jit_ranges_fini(struct jit_ranges *ranges)
{
	all_count -= ranges->count + ranges->added_count;
	free(ranges->now);
	free(ranges->added);
	free(ranges->past);
	*ranges = (struct jit_ranges){.now = NULL};
}
