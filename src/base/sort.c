/* SPDX-License-Identifier: MIT */
#include "base/sort.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Pointers that are sorted or merged between two looks at the flag: less than a millisecond, also where comparing takes
   long. */
enum { PART = 1024 };

struct sorting {
	int (*compare)(const void *a, const void *b, void *context);
	void *context;
	const bool *is_cancelled;
};

/* Merge from[0..middle) and from[middle..end), or copy what is left of both when it is cancelled. */
static void merge(const struct sorting *sorting, void **to, void *const *from, size_t middle, size_t end)
{
	size_t left = 0, right = middle, at = 0;
	while (left < middle && right < end) {
		if (at % PART == 0 && cancel_is_asked(sorting->is_cancelled))
			break;
		bool is_left = sorting->compare(&from[left], &from[right], sorting->context) <= 0;
		to[at++] = from[is_left ? left++ : right++];
	}
	memcpy(to + at, from + left, (middle - left) * sizeof(*to));
	memcpy(to + at + middle - left, from + right, (end - right) * sizeof(*to));
}

void pointers_sort(void **items, size_t count, int (*compare)(const void *a, const void *b, void *context),
		   void *context, const bool *is_cancelled)
{
	const struct sorting sorting = {compare, context, is_cancelled};
	for (size_t at = 0; at < count && !cancel_is_asked(is_cancelled); at += PART)
		qsort_r(items + at, count - at < PART ? count - at : PART, sizeof(*items), compare, context);
	if (count <= PART)
		return;
	void **room = memory_resize(NULL, count, sizeof(*room)), **from = items, **to = room;
	for (size_t width = PART; width < count && !cancel_is_asked(is_cancelled); width *= 2) {
		for (size_t at = 0; at < count; at += 2 * width) {
			size_t left = count - at;
			merge(&sorting, to + at, from + at, width < left ? width : left,
			      2 * width < left ? 2 * width : left);
		}
		void **swapped = from;
		from = to;
		to = swapped;
	}
	if (from != items)
		memcpy(items, from, count * sizeof(*items));
	free(room);
}
