/* SPDX-License-Identifier: MIT */
/*
 * Most of an address space is free, but programs count on some of it:
 *
 *     0            4 MiB       image            break       + 1 GiB              [stack]
 *     | null + n,  |           |      | bss ... | heap ...  |                    |
 *     | fixed maps |  free     |      | random  | grows     |  free  ...  256 MiB |
 *
 * The break begins at a random distance behind the executable (up to 1 GiB since Linux 6.9, up to 32 MiB before). It
 * exists from the exec on, though nothing is mapped there yet. A program in low memory may replace what lies between
 * fixed addresses there, knowing only its own image and heap. It maps from low addresses on, so the highest place in
 * reach is the best.
 */
#include "inject/place.h"

#include <string.h>

enum { PAGE = 4096 };

#define DISTANCE (UINT64_C(512) << 20) /* where the loader's next mappings do not come */
#define LOW_MEMORY (UINT64_C(1) << 32)
#define HEAP_ROOM (UINT64_C(1) << 30)
#define STACK_ROOM (UINT64_C(256) << 20)
#define BREAK_RANDOM (UINT64_C(1) << 30)
#define SPACE_END (UINT64_C(1) << 47)

struct place_heap place_heap_of(pid_t pid, const struct proc_map *maps, int count)
{
	uint64_t begin = proc_break_start(pid), end = begin, behind = 0;
	for (int i = 0; i < count; i++) {
		if (maps[i].high <= begin)
			behind = maps[i].high;
		if (strcmp(maps[i].path, "[heap]") == 0 && maps[i].high > end)
			end = maps[i].high;
	}
	/* In another run, the heap would have lain between the executable and this break. */
	return (struct place_heap){behind && begin - behind <= BREAK_RANDOM ? behind : begin,
				   begin ? end + HEAP_ROOM : begin, begin};
}

bool place_is_kept(const struct place_heap *heap, uint64_t at, uint64_t bytes)
{
	return at < PLACE_LOWEST || (at < heap->high && at + bytes > heap->low);
}

struct place_wish place_near(uint64_t low, uint64_t high)
{
	struct place_wish place = {high > PLACE_REACH ? high - PLACE_REACH : 0, low + PLACE_REACH, low - DISTANCE};
	if (low < LOW_MEMORY)
		place.wish = place.high;
	return place;
}

struct place_wish place_anywhere(void)
{
	return (struct place_wish){0, SPACE_END, SPACE_END};
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Take the best place of a gap, if it is better than what was found. */
static void search_in(uint64_t low, uint64_t high, const struct place_wish *place, uint64_t bytes, uint64_t *best)
{
	uint64_t from = low > place->low ? low : place->low, to = high < place->high ? high : place->high;
	from = (from + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	to &= ~(uint64_t)(PAGE - 1);
	if (from >= to || to - from < bytes)
		return;
	uint64_t at = place->wish < from         ? from
		      : place->wish > to - bytes ? to - bytes
						 : place->wish & ~(uint64_t)(PAGE - 1);
	if (!*best || distance(at, place->wish) < distance(*best, place->wish))
		*best = at;
}

uint64_t place_find(const struct proc_map *maps, int count, const struct place_heap *heap,
		    const struct place_wish *place, uint64_t bytes)
{
	uint64_t best = 0, low = PLACE_LOWEST;
	for (int i = 0; i <= count; i++) {
		uint64_t high = i < count && maps[i].low < SPACE_END ? maps[i].low : SPACE_END, room = PAGE;
		if (i < count && strcmp(maps[i].path, "[stack]") == 0)
			room = STACK_ROOM;
		high = high > room ? high - room : 0;
		if (heap->low < high && heap->high > low) {
			search_in(low, heap->low, place, bytes, &best);
			low = heap->high > low ? heap->high : low;
		}
		search_in(low, high, place, bytes, &best);
		if (i < count && maps[i].high + PAGE > low)
			low = maps[i].high + PAGE;
	}
	/* Where the break is almost 1 GiB away, its room ends out of reach of a program in low memory. */
	if (!best && heap->low < heap->begin) {
		const struct place_heap own = {heap->begin, heap->high, heap->begin};
		best = place_find(maps, count, &own, place, bytes);
	}
	return best;
}
