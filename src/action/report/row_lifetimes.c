/* SPDX-License-Identifier: MIT */
#include "action/report/row_lifetimes.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "query/lifetime.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

static void swap(int64_t *a, int64_t *b)
{
	int64_t kept = *a;
	*a = *b;
	*b = kept;
}

/* Put the k-th smallest in its place, smaller ones before it (Hoare's selection, middle of three as pivot). */
static int64_t select_nth(int64_t *values, size_t count, size_t k)
{
	assert(k < count);
	size_t low = 0, high = count - 1;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (values[middle] < values[low])
			swap(&values[middle], &values[low]);
		if (values[high] < values[low])
			swap(&values[high], &values[low]);
		if (values[high] < values[middle])
			swap(&values[high], &values[middle]);
		int64_t pivot = values[middle];
		size_t left = low, right = high;
		while (left <= right) {
			while (values[left] < pivot)
				left++;
			while (values[right] > pivot)
				right--;
			if (left > right)
				break;
			swap(&values[left++], &values[right]);
			if (!right--)
				break;
		}
		if (k <= right && right != SIZE_MAX)
			high = right;
		else if (k >= left)
			low = left;
		else
			break;
	}
	return values[k];
}

void row_lifetimes(struct action_figures *row, int64_t *values, size_t count)
{
	if (!count)
		return;
	row->lifetime_min = row->lifetime_max = values[0];
	for (size_t i = 1; i < count; i++) {
		if (values[i] < row->lifetime_min)
			row->lifetime_min = values[i];
		if (values[i] > row->lifetime_max)
			row->lifetime_max = values[i];
	}
	row->lifetime_median = select_nth(values, count, count / 2);
	if (count % 2)
		return;
	int64_t below = values[0];
	for (size_t i = 1; i < count / 2; i++)
		below = values[i] > below ? values[i] : below;
	row->lifetime_median = below + (row->lifetime_median - below) / 2;
}

/* A lifetime by its place in their order. */
static int64_t class_at(const uint64_t *classes, uint64_t place)
{
	uint32_t class = 0;
	for (uint64_t before = 0; class + 1 < LIFETIME_CLASSES && before + classes[class] <= place; class ++)
		before += classes[class];
	return (int64_t)lifetime_middle(class);
}

/* The lifetimes of a row's blocks that are in sums beside those of others: the median is known by its class. */
static void row_add_folded(struct action_figures *row, const uint64_t *classes, uint64_t count,
			   const struct heap_range *bounds, bool has_others)
{
	if (!count)
		return;
	row->lifetime_min = has_others && row->lifetime_min < bounds->from_ns ? row->lifetime_min : bounds->from_ns;
	row->lifetime_max = has_others && row->lifetime_max > bounds->to_ns ? row->lifetime_max : bounds->to_ns;
	int64_t middle = class_at(classes, count / 2), below = count % 2 ? middle : class_at(classes, count / 2 - 1);
	middle = below + (middle - below) / 2;
	row->lifetime_median = middle < row->lifetime_min   ? row->lifetime_min
			       : middle > row->lifetime_max ? row->lifetime_max
							    : middle;
}

void row_lifetimes_folded(struct action_figures *row, const struct trace_dictionary *dictionary, const uint32_t *sums,
			  size_t sum_count, const int64_t *values, size_t count)
{
	uint64_t *classes = memory_zeroed(LIFETIME_CLASSES, sizeof(*classes)), all = count;
	struct heap_range bounds = {INT64_MAX, 0};
	for (size_t i = 0; i < count; i++)
		classes[lifetime_class(values[i] < 0 ? 0 : (uint64_t)values[i])]++;
	for (size_t i = 0; i < sum_count; i++) {
		const struct trace_sum *sum = &dictionary->sums[sums[i]];
		bounds.from_ns =
			(int64_t)sum->lifetime_min_ns < bounds.from_ns ? (int64_t)sum->lifetime_min_ns : bounds.from_ns;
		bounds.to_ns =
			(int64_t)sum->lifetime_max_ns > bounds.to_ns ? (int64_t)sum->lifetime_max_ns : bounds.to_ns;
		for (uint32_t k = sum->first; k < sum->first + sum->spread; k++) {
			const struct trace_lifetime *lifetime = &dictionary->lifetimes[k];
			classes[lifetime->class < LIFETIME_CLASSES ? lifetime->class : LIFETIME_CLASSES - 1] +=
				lifetime->count;
			all += lifetime->count;
		}
	}
	row_add_folded(row, classes, all, &bounds, count > 0);
	free(classes);
}
