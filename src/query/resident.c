/* SPDX-License-Identifier: MIT */
#include "query/resident.h"

#include <stdlib.h>

#include "base/memory.h"
#include "query/extents.h"
#include "query/scan.h"

/* ---- words ---- */

static const struct {
	const char *key, *words;
} kinds[] = {
#define X(id, key, words) {key, words},
	TRACE_MAPPING_KINDS(X)
#undef X
};

const char *resident_kind_words(unsigned kind)
{
	return kinds[kind].words;
}

const char *resident_kind_key(unsigned kind)
{
	return kinds[kind].key;
}

/* ---- samples and splits ---- */

uint64_t resident_sum(const struct trace_resident *split)
{
	uint64_t sum = 0;
	for (int kind = 0; kind < TRACE_MAPPING_KIND_COUNT; kind++)
		if (__builtin_add_overflow(sum, split->bytes[kind], &sum))
			return UINT64_MAX;
	return sum;
}

struct resident *resident_find(const struct trace_dictionary *dictionary)
{
	struct resident *all = memory_zeroed(dictionary->process_count + 1, sizeof(*all));
	for (uint32_t i = 0; i < dictionary->sample_count; i++) {
		const struct trace_sample *sample = &dictionary->samples[i];
		struct resident *resident = &all[sample->process];
		if (!resident->largest || sample->resident_bytes > resident->largest->resident_bytes)
			resident->largest = sample;
	}
	for (uint32_t i = 0; i < dictionary->resident_count; i++) {
		const struct trace_resident *split = &dictionary->residents[i];
		struct resident *resident = &all[split->process];
		if (!resident->split || resident_sum(split) > resident_sum(resident->split))
			resident->split = split;
	}
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		struct resident *resident = &all[i];
		if (resident->split) {
			resident->bytes = resident_sum(resident->split);
			for (int kind = 0; kind < TRACE_MAPPING_KIND_COUNT; kind++)
				resident->rest[kind] = resident->split->bytes[kind];
			resident->rest_bytes = resident->bytes;
		} else if (resident->largest) {
			resident->bytes = resident->largest->resident_bytes;
		}
	}
	return all;
}

uint32_t resident_largest(const struct resident *residents, uint32_t process_count)
{
	uint32_t largest = TRACE_NONE;
	for (uint32_t i = 0; i < process_count; i++)
		if (residents[i].largest &&
		    (largest == TRACE_NONE ||
		     residents[i].largest->resident_bytes > residents[largest].largest->resident_bytes))
			largest = i;
	return largest;
}

/* ---- the split of a sample ---- */

static int split_compare(const struct trace_resident *split, uint32_t process, int64_t time_ns)
{
	if (split->process != process)
		return split->process < process ? -1 : 1;
	return (split->time_ns > time_ns) - (split->time_ns < time_ns);
}

static int place_compare(const void *a, const void *b, void *dictionary)
{
	const struct trace_resident *residents = ((const struct trace_dictionary *)dictionary)->residents,
				    *right = &residents[*(const uint32_t *)b];
	return split_compare(&residents[*(const uint32_t *)a], right->process, right->time_ns);
}

uint32_t *resident_order(const struct trace_dictionary *dictionary)
{
	uint32_t count = dictionary->resident_count, *order = memory_resize(NULL, count + 1, sizeof(*order));
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	qsort_r(order, count, sizeof(*order), place_compare, (void *)(uintptr_t)dictionary);
	return order;
}

const struct trace_resident *resident_of_sample(const struct trace_dictionary *dictionary, const uint32_t *order,
						const struct trace_sample *sample)
{
	uint32_t low = 0, high = dictionary->resident_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct trace_resident *split = &dictionary->residents[order[middle]];
		int compared = split_compare(split, sample->process, sample->time_ns);
		if (compared == 0)
			return split;
		if (compared < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* ---- heap and the rest ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* When the memory of a process is looked at. */
static int64_t time_of(const struct resident *resident)
{
	return resident->split ? resident->split->time_ns : resident->largest ? resident->largest->time_ns : INT64_MIN;
}

static void blocks_add(struct resident *all, struct heap_extents *extents, const struct heap_table *table)
{
	struct heap_scan_plan plan = HEAP_SCAN_ALL;
	struct heap_scan scan;
	const struct heap_rows *rows;
	plan.columns = PACK_DETAILS | PACK_TIMES | PACK_SIZES;
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct heap_allocation block = heap_rows_get(rows, i);
			uint32_t process = table->dictionary->threads[block.thread].process;
			struct resident *resident = &all[process];
			int64_t time_ns = time_of(resident);
			if (block.birth_ns > time_ns)
				continue;
			heap_extents_add(extents, process, &block, &rows->details[i]);
			/* A block in another one takes no memory of its own. */
			if (!heap_is_live_at(&block, time_ns) || block.flags & HEAP_NESTED)
				continue;
			resident->live_bytes += block.size_bytes;
			resident->live_count++;
			resident->rounding_bytes += heap_slack(&rows->details[i]);
			resident->unknown_count += rows->details[i].slack_bytes == HEAP_SLACK_UNKNOWN;
		}
	heap_scan_end(&scan);
}

/* Blocks may lie in memory of these kinds. */
static bool is_of_heaps(unsigned kind)
{
	return kind == TRACE_MAPPING_BREAK || kind == TRACE_MAPPING_ANONYMOUS || kind == TRACE_MAPPING_CODE ||
	       kind == TRACE_MAPPING_SHARED;
}

/* Return the bytes of pages that blocks of a process, or of one that it was forked from, have lain in. */
static uint64_t pages_within(struct heap_extents *extents, const struct trace_dictionary *dictionary, uint32_t process,
			     uint64_t low, uint64_t high)
{
	uint64_t bytes = 0;
	for (uint32_t i = process; i != TRACE_NONE; i = dictionary->processes[i].forked_from)
		bytes += heap_extents_within(extents, i, low, high);
	return least(bytes, high - low);
}

/* Take `bytes` of a kind for heap. */
static void heap_take(struct resident *resident, unsigned kind, uint64_t bytes)
{
	bytes = least(bytes, resident->rest[kind]);
	resident->rest[kind] -= bytes;
	resident->rest_bytes -= bytes;
	resident->heap_bytes += bytes;
}

/* Tell heap from the rest: in each of the largest mappings; then, of pages in none of them, in memory that the split
   does not list. */
static void heap_find(struct resident *resident, struct heap_extents *extents,
		      const struct trace_dictionary *dictionary, uint32_t process)
{
	const struct trace_resident *split = resident->split;
	uint64_t listed = 0, listed_pages = 0, pages = pages_within(extents, dictionary, process, 0, UINT64_MAX);
	for (uint32_t i = 0; i < split->spread; i++) {
		const struct trace_resident_part *part = &dictionary->resident_parts[split->first + i];
		uint64_t within = pages_within(extents, dictionary, process, part->base, part->end);
		if (part->kind == TRACE_MAPPING_ANONYMOUS)
			listed += part->resident_bytes;
		listed_pages += within;
		if (is_of_heaps(part->kind))
			heap_take(resident, part->kind, least(within, part->resident_bytes));
	}
	uint64_t anonymous = split->bytes[TRACE_MAPPING_ANONYMOUS];
	if (pages > listed_pages && anonymous > listed)
		heap_take(resident, TRACE_MAPPING_ANONYMOUS, least(pages - listed_pages, anonymous - listed));
}

struct resident *resident_split(const struct heap_table *table)
{
	const struct trace_dictionary *dictionary = table->dictionary;
	struct resident *all = resident_find(dictionary);
	struct heap_extents extents = {0};
	if (heap_is_folded(table) || table->sample_bytes)
		return all;
	blocks_add(all, &extents, table);
	for (uint32_t i = 0; i < dictionary->process_count; i++) {
		struct resident *resident = &all[i];
		if (!resident->largest && !resident->split)
			continue;
		resident->is_heap_known = true;
		if (resident->split)
			heap_find(resident, &extents, dictionary, i);
		else
			resident->heap_bytes =
				least(resident->bytes, pages_within(&extents, dictionary, i, 0, UINT64_MAX));
		resident->heap_live = least(resident->live_bytes, resident->heap_bytes);
		resident->heap_rounding = least(resident->rounding_bytes, resident->heap_bytes - resident->heap_live);
		resident->heap_free = resident->heap_bytes - resident->heap_live - resident->heap_rounding;
		if (!resident->split)
			resident->rest_bytes = resident->bytes - resident->heap_bytes;
	}
	heap_extents_fini(&extents);
	return all;
}
