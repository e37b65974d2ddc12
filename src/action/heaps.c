/* SPDX-License-Identifier: MIT */
/*
 * -heaps: one row per heap: an arena of glibc's, or an allocator. Extents are the pages that its blocks lay in.
 */
#include "action/action.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "action/rows.h"
#include "base/memory.h"
#include "heap/extents.h"

enum { EXTRA_USABLE, EXTRA_EXTENTS, EXTRA_LIVE_EXTENTS };

/* A group is the heap's place in the trace's list, from 1; 0: none was told. */
static void heaps_groups(struct action_source *source, const struct heap_cell *cell, struct action_groups *groups)
{
	(void)source;
	action_groups_add(groups, cell->site);
}

static const struct trace_heap *heap_of(const struct action_source *source, uint32_t group)
{
	return group ? &trace_dictionary(source->trace)->heaps[group - 1] : NULL;
}

static char *heaps_text(struct action_source *source, uint32_t group)
{
	const struct trace_heap *heap = heap_of(source, group);
	char *text = NULL;
	if (!heap)
		return action_copy("[no heap]");
	if (asprintf(&text, "0x%" PRIx64 " %s in pid %" PRIu32, heap->handle, heap->name, trace_dictionary(source->trace)->processes[heap->process].pid) < 0)
		memory_exhausted(0);
	return text;
}

static void heaps_json(struct action_source *source, uint32_t group, struct json *json)
{
	const struct trace_heap *heap = heap_of(source, group);
	if (!heap) {
		json_text(json, "name", "[no heap]");
		return;
	}
	json_address(json, "heap", heap->handle);
	json_text(json, "name", heap->name);
	json_count(json, "process", heap->process);
	json_count(json, "pid", trace_dictionary(source->trace)->processes[heap->process].pid);
}

/* ---- extents ---- */

static void heaps_extend(struct action_source *source, const struct heap_window *window, struct action_rows *rows)
{
	const struct heap_table *table = source->table;
	struct heap_extent *extents = memory_resize(NULL, table->count, sizeof(*extents));
	struct map row_of = {0};
	size_t count = 0;
	for (uint32_t i = 0; i < rows->count; i++) {
		bool added;
		*map_add(&row_of, map_pair(rows->memory[i].group, rows->memory[i].by), &added) = i;
	}
	for (uint32_t i = 0; i < table->count; i++) {
		struct heap_cell cell;
		const struct heap_allocation *allocation = &table->allocations[i];
		if (!heap_filter_passes(source->filter, allocation) || !heap_window_has(window, allocation))
			continue;
		heap_window_cell(window, table, allocation, &cell);
		const uint32_t *row = map_find(&row_of, map_pair(cell.site, cell.by));
		if (!row)
			continue;
		heap_extent_make(&extents[count], table, i);
		extents[count].group = *row;
		extents[count].is_marked = heap_window_is_outstanding(window, allocation);
		if (extents[count].is_marked)
			rows->memory[*row].extra[EXTRA_USABLE] += table->allocations[i].size_bytes + table->details[i].slack_bytes;
		count++;
	}
	heap_extents_sort(extents, count);
	for (size_t first = 0, next; first < count; first = next) {
		for (next = first; next < count && extents[next].group == extents[first].group; next++)
			;
		struct action_row *row = &rows->memory[extents[first].group];
		row->extra[EXTRA_EXTENTS] = heap_extents_pages(&extents[first], next - first, false) * HEAP_PAGE_BYTES;
		row->extra[EXTRA_LIVE_EXTENTS] = heap_extents_pages(&extents[first], next - first, true) * HEAP_PAGE_BYTES;
	}
	map_fini(&row_of);
	free(extents);
}

const struct action action_heaps = {
	.name = "heaps", .title = "Heaps", .label = "heap", .help = "one row per heap: arena or allocator", .is_by_heap = true, .with_details = true,
	.groups = heaps_groups, .text = heaps_text, .json = heaps_json, .extend = heaps_extend,
	.extra = {{"outstanding_usable_bytes", ">usable", EXTRA_BYTES}, {"extent_bytes", ">extents", EXTRA_BYTES},
		  {"outstanding_extent_bytes", ">of outstanding", EXTRA_BYTES}},
	.extra_count = 3,
};
