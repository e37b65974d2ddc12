/* SPDX-License-Identifier: MIT */
#include "query/resident.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "trace/memory_rows.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* ---- words ---- */

static const struct {
	const char *key, *words;
} kinds[] = {
#define X(id, key, words) {key, words},
	TRACE_MAPPING_KINDS(X)
#undef X
};

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

struct resident *resident_list(const struct trace_dictionary *dictionary)
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
		} else if (resident->largest) {
			resident->bytes = resident->largest->resident_bytes;
		}
	}
	return all;
}

void resident_rest_text(const struct resident *resident, unsigned most_kinds, struct sink *out)
{
	bool is_said[TRACE_MAPPING_KIND_COUNT] = {false};
	const char *between = "";
	for (unsigned i = 0; i < most_kinds; i++) {
		int most = -1;
		for (int kind = 0; kind < TRACE_MAPPING_KIND_COUNT; kind++)
			if (!is_said[kind] && resident->rest[kind] &&
			    (most < 0 || resident->rest[kind] > resident->rest[most]))
				most = kind;
		if (most < 0)
			return;
		is_said[most] = true;
		sink_format(out, "%s%s %s", between, text_bytes(resident->rest[most]).data, kinds[most].words);
		between = ", ";
	}
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

const struct trace_resident *resident_of_reading(const struct trace_dictionary *dictionary, const uint32_t *order,
						 uint32_t process, int64_t time_ns)
{
	uint32_t low = 0, high = dictionary->resident_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct trace_resident *split = &dictionary->residents[order[middle]];
		int compared = split_compare(split, process, time_ns);
		if (compared == 0)
			return split;
		if (compared < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* ---- limits ---- */

const struct trace_limit *resident_limit(const struct trace_dictionary *dictionary, uint32_t process)
{
	for (uint32_t i = dictionary->limit_count; i-- > 0;)
		if (dictionary->limits[i].process == process)
			return &dictionary->limits[i];
	return NULL;
}

/* ---- heap and the rest ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Blocks may lie in memory of these kinds. */
static bool is_of_heaps(unsigned kind)
{
	return kind == TRACE_MAPPING_BREAK || kind == TRACE_MAPPING_ANONYMOUS || kind == TRACE_MAPPING_CODE ||
	       kind == TRACE_MAPPING_SHARED;
}

bool resident_is_of(const struct trace_dictionary *dictionary, uint32_t process, uint32_t other)
{
	/* A process comes after the one that it was forked from. */
	while (process != TRACE_NONE && process > other)
		process = dictionary->processes[process].forked_from;
	return process == other;
}

/* Take `bytes` of a kind for heap. */
static void heap_take(struct resident *resident, unsigned kind, uint64_t bytes)
{
	bytes = least(bytes, resident->rest[kind]);
	resident->rest[kind] -= bytes;
	resident->heap_bytes += bytes;
}

/* First in each of the largest mappings; then, of pages in none of them, in memory that the split does not list. */
void resident_tell(struct resident *resident, const struct trace_dictionary *dictionary, struct heap_extents *extents)
{
	const struct trace_resident *split = resident->split;
	if (!split)
		return;
	uint64_t listed = 0, listed_pages = 0, pages = heap_extents_within(extents, 0, 0, UINT64_MAX);
	for (uint32_t i = 0; i < split->spread; i++) {
		const struct trace_resident_part *part = &dictionary->resident_parts[split->first + i];
		uint64_t within = heap_extents_within(extents, 0, part->base, part->end);
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
