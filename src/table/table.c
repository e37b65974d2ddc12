/* SPDX-License-Identifier: MIT */
#include "table/table.h"

#include <assert.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "trace/process_rows.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"

#define X(id, word) word,
const char *const heap_end_words[HEAP_END_COUNT] = {HEAP_ENDS(X)};
#undef X

void heap_variance_add(struct heap_variance *to, const struct heap_variance *from)
{
	to->count += from->count;
	to->bytes += from->bytes;
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
	to->recorded_count += from->recorded_count;
	heap_variance_add(&to->total_variance, &from->total_variance);
	heap_variance_add(&to->outstanding_variance, &from->outstanding_variance);
	heap_variance_add(&to->peak_variance, &from->peak_variance);
}

COMPARE_BY_TWO(use_compare, struct heap_use, cell, thread)

void heap_uses_sort(struct heap_use *uses, size_t count)
{
	assert(uses || !count);
	if (count)
		qsort(uses, count, sizeof(*uses), use_compare);
}

COMPARE_BY(fault_compare, struct heap_fault, point)

void heap_faults_sort(struct heap_fault *faults, size_t count)
{
	assert(faults || !count);
	if (count)
		qsort(faults, count, sizeof(*faults), fault_compare);
}

bool heap_points_are_good(const struct heap_table *table)
{
	uint64_t behind = 0;
	for (uint32_t i = 0; i < table->instant_count; i++) {
		const struct heap_instant *instant = &table->instants[i];
		if (instant->first_point < behind || instant->point_count < 2)
			return false;
		behind = (uint64_t)instant->first_point + instant->point_count;
	}
	for (uint32_t i = 0; i < table->fault_count; i++)
		if (table->faults[i].thread >= table->dictionary->thread_count ||
		    table->faults[i].point >= table->point_count ||
		    (i && table->faults[i].point <= table->faults[i - 1].point))
			return false;
	return behind <= table->point_count;
}

uint32_t heap_table_step(const struct heap_table *table, uint32_t point)
{
	if (point == HEAP_NONE)
		return 0;
	uint32_t place; /* behind the instants that begin at the point or before it */
	BISECT(place, table->instant_count, i, table->instants[i].first_point <= point);
	const struct heap_instant *instant = place ? &table->instants[place - 1] : NULL;
	bool is_in = instant && point - instant->first_point < instant->point_count;
	return is_in ? point - instant->first_point + 1 : 1;
}

struct heap_site heap_sum_site(const struct trace_sum *sum)
{
	return (struct heap_site){sum->stack, sum->entry};
}

bool heap_is_folded(const struct heap_table *table)
{
	return table->dictionary->fold_count > 0;
}

bool heap_table_ends_detached(const struct heap_table *table)
{
	bool has_detached = false;
	for (uint32_t i = 0; i < table->dictionary->process_count; i++) {
		uint8_t end = table->dictionary->processes[i].end;
		bool is_last = end != TRACE_END_OPEN && table->processes[i].end_ns >= table->duration_ns;
		if (is_last && end != TRACE_END_DETACHED)
			return false;
		has_detached |= is_last;
	}
	return has_detached;
}

bool heap_table_find_sum_sites(struct heap_table *table)
{
	assert(!table->sum_sites);
	const struct trace_dictionary *dictionary = table->dictionary;
	struct map sites = {0};
	bool is_known = true, added;
	for (uint32_t i = 0; i < table->site_count && dictionary->sum_count; i++)
		*map_add(&sites, map_pair(table->sites[i].stack, table->sites[i].entry), &added) = i;
	table->sum_sites = memory_zeroed(dictionary->sum_count, sizeof(*table->sum_sites));
	for (uint32_t i = 0; i < dictionary->sum_count && is_known; i++) {
		struct heap_site site = heap_sum_site(&dictionary->sums[i]);
		const uint32_t *found = map_find(&sites, map_pair(site.stack, site.entry));
		table->sum_sites[i] = found ? *found : 0;
		is_known = found != NULL;
	}
	map_fini(&sites);
	return is_known;
}

void heap_table_free(struct heap_table *table)
{
	if (!table)
		return;
	groups_fini(&table->groups);
	heap_checkpoints_fini(&table->checkpoints);
	free(table->is_damaged);
	free(table->sites);
	free(table->sums.numbers);
	free(table->sums.uses);
	free(table->processes);
	free(table->sum_sites);
	free(table->inside);
	free(table->instants);
	free(table->point_times);
	free(table->faults);
	free(table);
}
