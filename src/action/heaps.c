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

enum { PAGE_BYTES = 4096 };

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

struct extent {
	uint32_t row;
	bool is_outstanding;
	uint64_t first, last;         /* pages */
};

static int extent_compare(const void *a, const void *b)
{
	const struct extent *left = a, *right = b;
	if (left->row != right->row)
		return left->row < right->row ? -1 : 1;
	return (left->first > right->first) - (left->first < right->first);
}

/* Pages in any of the extents of one row, which are in order. */
static uint64_t pages_of(const struct extent *extents, size_t count, bool is_outstanding)
{
	uint64_t pages = 0, next = 0;
	for (size_t i = 0; i < count; i++) {
		if (is_outstanding && !extents[i].is_outstanding)
			continue;
		uint64_t first = extents[i].first > next ? extents[i].first : next;
		if (extents[i].last + 1 > first) {
			pages += extents[i].last + 1 - first;
			next = extents[i].last + 1;
		}
	}
	return pages;
}

static bool extent_make(const struct action_source *source, const struct heap_window *window, uint32_t i, struct extent *extent)
{
	const struct heap_allocation *allocation = &source->table->allocations[i];
	const struct heap_details *details = &source->table->details[i];
	if (!heap_filter_passes(source->filter, allocation) || !heap_window_has(window, allocation))
		return false;
	uint64_t usable = allocation->size_bytes + details->slack_bytes;
	extent->is_outstanding = heap_window_is_outstanding(window, allocation);
	extent->first = details->address / PAGE_BYTES;
	extent->last = (details->address + (usable ? usable - 1 : 0)) / PAGE_BYTES;
	return true;
}

static void heaps_extend(struct action_source *source, const struct heap_window *window, struct action_rows *rows)
{
	const struct heap_table *table = source->table;
	struct extent *extents = memory_resize(NULL, table->count, sizeof(*extents));
	struct map row_of = {0};
	size_t count = 0;
	for (uint32_t i = 0; i < rows->count; i++) {
		bool added;
		*map_add(&row_of, map_pair(rows->memory[i].group, rows->memory[i].by), &added) = i;
	}
	for (uint32_t i = 0; i < table->count; i++) {
		struct heap_cell cell;
		if (!extent_make(source, window, i, &extents[count]))
			continue;
		heap_window_cell(window, table, &table->allocations[i], &cell);
		const uint32_t *row = map_find(&row_of, map_pair(cell.site, cell.by));
		if (!row)
			continue;
		extents[count].row = *row;
		if (extents[count].is_outstanding)
			rows->memory[*row].extra[EXTRA_USABLE] += table->allocations[i].size_bytes + table->details[i].slack_bytes;
		count++;
	}
	if (count)
		qsort(extents, count, sizeof(*extents), extent_compare);
	for (size_t first = 0, next; first < count; first = next) {
		for (next = first; next < count && extents[next].row == extents[first].row; next++)
			;
		struct action_row *row = &rows->memory[extents[first].row];
		row->extra[EXTRA_EXTENTS] = pages_of(&extents[first], next - first, false) * PAGE_BYTES;
		row->extra[EXTRA_LIVE_EXTENTS] = pages_of(&extents[first], next - first, true) * PAGE_BYTES;
	}
	map_fini(&row_of);
	free(extents);
}

const struct action action_heaps = {
	.name = "heaps", .title = "Heaps", .label = "heap", .help = "one row per heap: arena or allocator", .is_by_heap = true,
	.groups = heaps_groups, .text = heaps_text, .json = heaps_json, .extend = heaps_extend,
	.extra = {{"outstanding_usable_bytes", ">usable", EXTRA_BYTES}, {"extent_bytes", ">extents", EXTRA_BYTES},
		  {"outstanding_extent_bytes", ">of outstanding", EXTRA_BYTES}},
	.extra_count = 3,
};
