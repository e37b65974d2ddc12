/* SPDX-License-Identifier: MIT */
#include "heap/window.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"

static bool is_in_range(const struct heap_allocation *allocation, struct heap_range range)
{
	return allocation->birth_ns >= range.from_ns && allocation->birth_ns <= range.to_ns && !(allocation->flags & HEAP_EARLIER);
}

static bool is_outstanding(const struct heap_allocation *allocation, struct heap_range range)
{
	return !heap_end_is_given_back(allocation->end) || allocation->end_ns > range.to_ns;
}

static bool is_live_at(const struct heap_allocation *allocation, int64_t time_ns)
{
	bool has_begun = allocation->birth_ns <= time_ns || allocation->flags & HEAP_EARLIER;
	return has_begun && (allocation->end_ns > time_ns || allocation->end == HEAP_END_OPEN);
}

void heap_numbers_add(struct heap_numbers *to, const struct heap_numbers *from)
{
	to->total_count += from->total_count;
	to->total_bytes += from->total_bytes;
	to->outstanding_count += from->outstanding_count;
	to->outstanding_bytes += from->outstanding_bytes;
	to->realloc_count += from->realloc_count;
	to->realloc_moved_count += from->realloc_moved_count;
	to->temporary_count += from->temporary_count;
	to->open_count += from->open_count;
	to->peak_count += from->peak_count;
	to->peak_bytes += from->peak_bytes;
}

static void numbers_count(struct heap_numbers *numbers, const struct heap_allocation *allocation, struct heap_range range)
{
	numbers->total_count++;
	numbers->total_bytes += allocation->size_bytes;
	if (is_outstanding(allocation, range)) {
		numbers->outstanding_count++;
		numbers->outstanding_bytes += allocation->size_bytes;
	}
	numbers->realloc_count += !!(allocation->flags & HEAP_REALLOC);
	numbers->realloc_moved_count += !!(allocation->flags & HEAP_MOVED);
	numbers->temporary_count += !!(allocation->flags & HEAP_TEMPORARY);
	numbers->open_count += !heap_end_is_given_back(allocation->end);
}

static uint64_t window_earlier_bytes(const struct heap_table *table)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < table->count; i++)
		if (table->allocations[i].flags & HEAP_EARLIER)
			bytes += table->allocations[i].size_bytes;
	return bytes;
}

/*
 * The peak: beginnings and ends are both in order of time, so one pass over the two adds up what is live. All that
 * happens at one time is taken together, since a block is live from its beginning up to, not at, its end: the order
 * among equal times makes no difference.
 */
static void window_find_peak(struct heap_window *window, const struct heap_table *table)
{
	const struct heap_allocation *allocations = table->allocations;
	uint64_t live_bytes = window_earlier_bytes(table), peak_bytes = 0;
	uint32_t birth = 0, end = 0;
	window->peak_at_ns = window->range.from_ns;
	for (bool is_begun = false;;) {
		int64_t time_ns = birth < table->count ? allocations[birth].birth_ns : INT64_MAX;
		if (end < table->end_count && allocations[table->ends[end]].end_ns < time_ns)
			time_ns = allocations[table->ends[end]].end_ns;
		if (!is_begun && time_ns > window->range.from_ns) {
			peak_bytes = live_bytes;
			is_begun = true;
		}
		if (time_ns > window->range.to_ns || (birth >= table->count && end >= table->end_count))
			break;
		for (; end < table->end_count && allocations[table->ends[end]].end_ns <= time_ns; end++)
			live_bytes -= allocations[table->ends[end]].size_bytes;
		for (; birth < table->count && allocations[birth].birth_ns <= time_ns; birth++)
			if (!(allocations[birth].flags & HEAP_EARLIER))
				live_bytes += allocations[birth].size_bytes;
		if (is_begun && live_bytes > peak_bytes) {
			peak_bytes = live_bytes;
			window->peak_at_ns = time_ns;
		}
	}
}

static void window_count(struct heap_window *window, const struct heap_table *table)
{
	for (uint32_t i = 0; i < table->count; i++) {
		const struct heap_allocation *allocation = &table->allocations[i];
		struct heap_numbers *site = &window->sites[allocation->site];
		if (allocation->flags & HEAP_EARLIER) {
			window->earlier_count++;
			window->earlier_bytes += allocation->size_bytes;
		}
		if (is_live_at(allocation, window->peak_at_ns)) {
			site->peak_count++;
			site->peak_bytes += allocation->size_bytes;
		}
		if (!is_in_range(allocation, window->range))
			continue;
		numbers_count(site, allocation, window->range);
		const struct heap_process *process = &table->processes[table->dictionary->threads[allocation->thread].process];
		if (!heap_end_is_given_back(allocation->end) && process->last_loss_ns > allocation->birth_ns) {
			window->uncertain_count++;
			window->uncertain_bytes += allocation->size_bytes;
		}
	}
	for (uint32_t i = 0; i < table->site_count; i++)
		heap_numbers_add(&window->totals, &window->sites[i]);
}

static int use_compare(const void *a, const void *b)
{
	const struct heap_use *left = a, *right = b;
	if (left->site != right->site)
		return left->site < right->site ? -1 : 1;
	return (left->thread > right->thread) - (left->thread < right->thread);
}

/* Lifetimes by site (a counting sort), and which threads used which site. */
static void window_collect(struct heap_window *window, const struct heap_table *table)
{
	uint32_t *next = memory_zeroed((size_t)table->site_count + 1, sizeof(*next));
	uint32_t *last_thread = memory_resize(NULL, table->site_count, sizeof(*last_thread));
	struct map seen = {0};
	size_t use_capacity = 0;
	window->lifetime_starts = memory_zeroed((size_t)table->site_count + 1, sizeof(*window->lifetime_starts));
	for (uint32_t i = 0; i < table->site_count; i++) {
		window->lifetime_starts[i + 1] = window->lifetime_starts[i] + (uint32_t)window->sites[i].total_count;
		next[i] = window->lifetime_starts[i];
		last_thread[i] = HEAP_NONE;
	}
	window->lifetimes = memory_resize(NULL, window->totals.total_count, sizeof(*window->lifetimes));
	for (uint32_t i = 0; i < table->count; i++) {
		const struct heap_allocation *allocation = &table->allocations[i];
		if (!is_in_range(allocation, window->range))
			continue;
		window->lifetimes[next[allocation->site]++] = allocation->end_ns - allocation->birth_ns;
		if (last_thread[allocation->site] == allocation->thread)
			continue;
		last_thread[allocation->site] = allocation->thread;
		bool added;
		map_add(&seen, map_pair(allocation->site, allocation->thread), &added);
		if (!added)
			continue;
		memory_grow(window->uses, window->use_count, use_capacity);
		window->uses[window->use_count++] = (struct heap_use){allocation->site, allocation->thread};
	}
	if (window->use_count)
		qsort(window->uses, window->use_count, sizeof(*window->uses), use_compare);
	map_fini(&seen);
	free(last_thread);
	free(next);
}

void heap_window_make(struct heap_window *window, const struct heap_table *table, struct heap_range range)
{
	*window = (struct heap_window){.range = range};
	window->sites = memory_zeroed(table->site_count, sizeof(*window->sites));
	window_find_peak(window, table);
	window_count(window, table);
	window_collect(window, table);
}

void heap_window_fini(struct heap_window *window)
{
	free(window->sites);
	free(window->lifetimes);
	free(window->lifetime_starts);
	free(window->uses);
	*window = (struct heap_window){0};
}
