/* SPDX-License-Identifier: MIT */
#include "plan/block_order.h"

#include <stdlib.h>

#include "base/memory.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/trace.h"

/* Return whether a block of some thread begins before the end of the one before. */
static bool blocks_overlap(const struct trace *trace)
{
	uint32_t thread_count = trace_dictionary(trace)->thread_count;
	int64_t *last_ns = memory_zeroed((size_t)thread_count + 1, sizeof(*last_ns));
	bool do_overlap = false;
	for (uint32_t i = 0; i < thread_count; i++)
		last_ns[i] = INT64_MIN;
	for (uint32_t i = 0; i < trace_block_count(trace) && !do_overlap; i++) {
		struct trace_block head;
		trace_block_head(trace, i, &head);
		if (!head.count || head.thread >= thread_count)
			continue;
		do_overlap = head.first_ns < last_ns[head.thread];
		last_ns[head.thread] = head.last_ns;
	}
	free(last_ns);
	return do_overlap;
}

static int thread_order(const void *one, const void *other, void *context)
{
	const struct trace_thread *threads = context;
	uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
	if (threads[a].process != threads[b].process)
		return threads[a].process < threads[b].process ? -1 : 1;
	return (a > b) - (a < b);
}

/* Set *starts to the rank of each thread's first block. */
static void starts_find(const struct trace *trace, uint32_t *starts)
{
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	uint32_t *order = memory_zeroed((size_t)dictionary->thread_count + 1, sizeof(*order)), passed = 0;
	struct trace_block head;
	for (uint32_t i = 0; i < dictionary->thread_count; i++)
		order[i] = i;
	qsort_r(order, dictionary->thread_count, sizeof(*order), thread_order, (void *)dictionary->threads);
	for (uint32_t i = 0; i < trace_block_count(trace); i++) {
		trace_block_head(trace, i, &head);
		if (head.thread < dictionary->thread_count)
			starts[head.thread]++;
	}
	for (uint32_t i = 0; i < dictionary->thread_count; i++) {
		uint32_t count = starts[order[i]];
		starts[order[i]] = passed;
		passed += count;
	}
	free(order);
}

/* Set the rank of each block. */
static void ranks_set(const struct trace *trace, uint32_t *ranks)
{
	uint32_t thread_count = trace_dictionary(trace)->thread_count;
	uint32_t *starts = memory_zeroed((size_t)thread_count + 1, sizeof(*starts));
	struct trace_block head;
	starts_find(trace, starts);
	for (uint32_t i = 0; i < trace_block_count(trace); i++) {
		trace_block_head(trace, i, &head);
		if (head.thread < thread_count)
			ranks[i] = starts[head.thread]++;
	}
	free(starts);
}

uint32_t *block_ranks_new(const struct trace *trace)
{
	uint32_t *ranks = NULL;
	if (!blocks_overlap(trace)) {
		ranks = memory_zeroed((size_t)trace_block_count(trace) + 1, sizeof(*ranks));
		ranks_set(trace, ranks);
	}
	return ranks;
}
