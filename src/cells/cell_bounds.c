/* SPDX-License-Identifier: MIT */
#include "cells/cell_bounds.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void search_prepare(struct cell_bounds *bounds)
{
	uint64_t length = (uint64_t)bounds->times[bounds->count - 1] - (uint64_t)bounds->times[0];
	bounds->scale = length > CELL_SLICES ? (uint64_t)(((unsigned __int128)CELL_SLICES << 64) / length) : UINT64_MAX;
	bounds->firsts = memory_zeroed(CELL_SLICES + 1, sizeof(*bounds->firsts));
	for (uint32_t i = 0; i < bounds->count; i++)
		bounds->firsts[cell_bounds_slice(bounds, bounds->times[i]) + 1]++;
	for (uint32_t i = 1; i <= CELL_SLICES; i++)
		bounds->firsts[i] += bounds->firsts[i - 1];
}

static int time_compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
	return (left > right) - (left < right);
}

static void times_settle(struct cell_bounds *bounds)
{
	uint32_t kept = 0;
	qsort(bounds->times, bounds->count, sizeof(*bounds->times), time_compare);
	for (uint32_t i = 0; i < bounds->count; i++)
		if (!kept || bounds->times[i] != bounds->times[kept - 1])
			bounds->times[kept++] = bounds->times[i];
	bounds->count = kept;
}

void cell_bounds_make(struct cell_bounds *bounds, int64_t from_ns, int64_t to_ns, uint32_t intervals,
		      const int64_t *wanted, unsigned wanted_count)
{
	assert(from_ns < to_ns && intervals > 0 && intervals + wanted_count < UINT16_MAX);
	uint64_t length = (uint64_t)to_ns - (uint64_t)from_ns;
	intervals = length < intervals ? (uint32_t)length : intervals;
	*bounds = (struct cell_bounds){.times = memory_zeroed(intervals + 1 + wanted_count, sizeof(*bounds->times))};
	for (uint32_t i = 0; i <= intervals; i++) {
		uint64_t offset = (uint64_t)((unsigned __int128)length * i / intervals);
		bounds->times[bounds->count++] = (int64_t)((uint64_t)from_ns + offset);
	}
	for (unsigned i = 0; i < wanted_count; i++)
		if (wanted[i] > from_ns && wanted[i] < to_ns)
			bounds->times[bounds->count++] = wanted[i];
	times_settle(bounds);
	search_prepare(bounds);
}

uint32_t cell_bounds_find(const struct cell_bounds *bounds, int64_t time_ns)
{
	uint32_t moment = cell_bounds_moment(bounds, time_ns);
	return moment < bounds->count && bounds->times[moment] == time_ns ? moment : CELL_NO_BOUND;
}

void cell_bounds_fini(struct cell_bounds *bounds)
{
	free(bounds->times);
	free(bounds->firsts);
	*bounds = (struct cell_bounds){.times = NULL};
}
