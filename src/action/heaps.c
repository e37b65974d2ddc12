/* SPDX-License-Identifier: MIT */
/*
 * -heaps: one row per heap: an arena of glibc's, or an allocator. Extents are the pages that its blocks lay in.
 */
#include "action/action.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "action/report_rows.h"
#include "base/memory.h"
#include "base/text.h"
#include "query/extents.h"

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

/* The heap whose blocks it lies in, or NULL. */
static const struct trace_heap *heap_around(const struct action_source *source, uint32_t group)
{
	uint32_t inside = source->table->inside[group - 1];
	return inside == TRACE_NONE ? NULL : heap_of(source, inside + 1);
}

static char *heaps_text(struct action_source *source, uint32_t group)
{
	const struct trace_heap *heap = heap_of(source, group), *around = heap ? heap_around(source, group) : NULL;
	char *text = NULL, *inside = NULL;
	if (!heap)
		return action_copy("[no heap]");
	if ((around && asprintf(&inside, ", inside 0x%" PRIx64 " %s", around->handle, around->name) < 0) ||
	    asprintf(&text, "0x%" PRIx64 " %s in pid %s%s", heap->handle, heap->name,
		     text_pid(trace_dictionary(source->trace)->processes[heap->process].pid).data,
		     inside ? inside : "") < 0)
		memory_exhausted(0);
	free(inside);
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
	if (heap_around(source, group))
		json_address(json, "inside", heap_around(source, group)->handle);
	json_count(json, "process", heap->process);
	uint32_t pid = trace_dictionary(source->trace)->processes[heap->process].pid;
	if (pid)
		json_count(json, "pid", pid);
}

/* ---- extents ---- */

static void heaps_extend(struct action_source *source, const struct heap_window *window, struct action_rows *rows)
{
	struct heap_scan_plan plan = heap_window_plan(window, source->filter);
	struct heap_extents all = {0}, outstanding = {0};
	struct map row_of = {0};
	struct heap_scan scan;
	const struct heap_rows *part;
	uint64_t *bytes = memory_zeroed(2 * rows->memory_count, sizeof(*bytes));
	for (uint32_t i = 0; i < rows->memory_count; i++) {
		bool added;
		*map_add(&row_of, map_pair(rows->memory[i].group, rows->memory[i].by), &added) = i;
	}
	plan.columns = PACK_EVERYTHING;
	heap_scan_begin(&scan, source->table, &plan, NULL);
	while ((part = heap_scan_next(&scan)))
		for
			heap_rows_each (part, i) {
				struct heap_cell cell;
				const struct heap_allocation own = heap_rows_get(part, i), *allocation = &own;
				if (!heap_window_has(window, allocation))
					continue;
				heap_window_cell(window, source->table, allocation, &cell);
				const uint32_t *row = map_find(&row_of, map_pair(cell.site, cell.by));
				if (!row)
					continue;
				heap_extents_add(&all, *row, allocation, &part->details[i]);
				if (!heap_window_is_outstanding(window, allocation))
					continue;
				heap_extents_add(&outstanding, *row, allocation, &part->details[i]);
				rows->memory[*row].extra[EXTRA_USABLE] +=
					allocation->size_bytes + heap_slack(&part->details[i]);
			}
	heap_scan_end(&scan);
	heap_extents_sum(&all, bytes, (uint32_t)rows->memory_count);
	heap_extents_sum(&outstanding, &bytes[rows->memory_count], (uint32_t)rows->memory_count);
	for (size_t i = 0; i < rows->memory_count; i++) {
		rows->memory[i].extra[EXTRA_EXTENTS] = bytes[i];
		rows->memory[i].extra[EXTRA_LIVE_EXTENTS] = bytes[rows->memory_count + i];
	}
	heap_extents_fini(&all);
	heap_extents_fini(&outstanding);
	map_fini(&row_of);
	free(bytes);
}

const struct action action_heaps = {
	.name = "heaps",
	.title = "Heaps",
	.label = "heap",
	.help = "one row per heap: arena or allocator",
	.is_by_heap = true,
	.groups = heaps_groups,
	.text = heaps_text,
	.json = heaps_json,
	.extend = heaps_extend,
	.extra = {{"outstanding_usable_bytes", ">usable", EXTRA_BYTES},
		  {"extent_bytes", ">extents", EXTRA_BYTES},
		  {"outstanding_extent_bytes", ">of outstanding", EXTRA_BYTES}},
	.extra_count = 3,
};
