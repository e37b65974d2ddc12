/* SPDX-License-Identifier: MIT */
#include "cells/cell_resident.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trace/memory_rows.h"
#include "trace/process_rows.h"
#include "trace/trace.h"

/* A process is measured, or ends: then it has nothing. */
struct cell_measure {
	int64_t time_ns;
	uint32_t process;
	bool is_end;
	uint64_t bytes;
};

static int measure_compare(const void *a, const void *b)
{
	const struct cell_measure *left = a, *right = b;
	if (left->time_ns != right->time_ns)
		return left->time_ns < right->time_ns ? -1 : 1;
	if (left->is_end != right->is_end)
		return left->is_end - right->is_end;
	if (left->process != right->process)
		return left->process < right->process ? -1 : 1;
	return (left->bytes > right->bytes) - (left->bytes < right->bytes);
}

static struct cell_measure *measures_list(const struct trace_dictionary *dictionary, size_t *count)
{
	struct cell_measure *list =
		memory_zeroed((size_t)dictionary->sample_count + dictionary->process_count, sizeof(*list));
	*count = 0;
	for (uint32_t i = 0; i < dictionary->sample_count; i++) {
		const struct trace_sample *sample = &dictionary->samples[i];
		list[(*count)++] =
			(struct cell_measure){sample->time_ns, sample->process, false, sample->resident_bytes};
	}
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		if (trace_process_end_is_known(&dictionary->processes[i]))
			list[(*count)++] = (struct cell_measure){dictionary->processes[i].end_ns, i, true, 0};
	if (*count)
		qsort(list, *count, sizeof(*list), measure_compare);
	return list;
}

uint64_t *cell_resident_find(const struct trace_dictionary *dictionary, const struct cell_bounds *bounds)
{
	uint64_t *resident = memory_resize(NULL, bounds->count - 1, sizeof(*resident)),
		 *last_bytes = memory_zeroed(dictionary->process_count, sizeof(*last_bytes)), sum = 0;
	size_t count;
	struct cell_measure *list = measures_list(dictionary, &count);
	memset(resident, 0xff, (bounds->count - 1) * sizeof(*resident));
	for (size_t i = 0; i < count; i++) {
		const struct cell_measure *at = &list[i];
		uint32_t moment = cell_bounds_moment(bounds, at->time_ns);
		sum += at->bytes - last_bytes[at->process];
		last_bytes[at->process] = at->bytes;
		if (at->is_end || !moment || moment >= bounds->count)
			continue;
		if (resident[moment - 1] == UINT64_MAX || sum > resident[moment - 1])
			resident[moment - 1] = sum;
	}
	free(list);
	free(last_bytes);
	return resident;
}
