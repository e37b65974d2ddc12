/* SPDX-License-Identifier: MIT */
/*
 * -heaps: one row per heap: an arena of glibc's, or an allocator. Extents are the pages that its blocks lay in.
 */
#include "action/report/action.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "action/actions/action_table.h"
#include "action/report/report_rows.h"
#include "base/memory.h"
#include "base/text.h"
#include "query/extents.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum { EXTRA_USABLE, EXTRA_EXTENTS, EXTRA_LIVE_EXTENTS };

/* Groups by number. The first source's heaps have their places in its trace's list, from 1; 0: no heap. */
struct action_heaps {
	struct intern names; /* by group: what makes a heap the same in another source */
	struct {
		const struct action_source *source; /* the first that has it */
		uint32_t place;
	} * items;
	size_t capacity;
};

static const struct trace_heap *heap_at(const struct action_source *source, uint32_t place)
{
	return place ? &trace_dictionary(source->trace)->heaps[place - 1] : NULL;
}

/* The heap whose blocks it lies in, or NULL. */
static const struct trace_heap *heap_around(const struct action_source *source, uint32_t place)
{
	assert(place > 0);
	uint32_t inside = source->table->inside[place - 1];
	return inside == TRACE_NONE ? NULL : heap_at(source, inside + 1);
}

static char *heap_text(const struct action_source *source, uint32_t place)
{
	const struct trace_heap *heap = heap_at(source, place), *around = heap ? heap_around(source, place) : NULL;
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

/* ---- groups ---- */

/* Heaps of one source stay apart even if they are called the same: the first one, the second one. */
static uint32_t group_add(struct action_heaps *heaps, const struct action_source *source, uint32_t place,
			  struct intern *texts, struct map *times)
{
	char *text = heap_text(source, place), *name = NULL;
	bool added;
	uint32_t known = heaps->names.count, time = (*map_add(times, intern_text(texts, text), &added))++;
	if (asprintf(&name, "%s\n%" PRIu32, text, time) < 0)
		memory_exhausted(0);
	uint32_t group = intern_text(&heaps->names, name);
	free(name);
	free(text);
	if (group == known) {
		memory_grow(heaps->items, group, heaps->capacity);
		heaps->items[group].source = source;
		heaps->items[group].place = place;
	}
	return group;
}

static void groups_find(struct action_heaps *heaps, struct action_source *source)
{
	uint32_t count = trace_dictionary(source->trace)->heap_count + 1;
	struct intern texts = {.count = 0};
	struct map times = {0};
	source->heap_groups = memory_resize(NULL, count, sizeof(*source->heap_groups));
	for (uint32_t place = 0; place < count; place++)
		source->heap_groups[place] = group_add(heaps, source, place, &texts, &times);
	intern_fini(&texts);
	map_fini(&times);
}

static void heaps_free(struct action_heaps *heaps)
{
	intern_fini(&heaps->names);
	free(heaps->items);
	free(heaps);
}

static uint32_t group_of(struct action_input *input, const struct action_source *source, uint32_t place)
{
	if (!input->heaps) {
		input->heaps = memory_zeroed(1, sizeof(*input->heaps));
		input->heaps_free = heaps_free;
		for (unsigned i = 0; i < input->source_count; i++)
			groups_find(input->heaps, &input->sources[i]);
	}
	assert(place <= trace_dictionary(source->trace)->heap_count);
	return source->heap_groups[place];
}

static void heaps_groups(struct action_input *input, struct action_source *source, const struct heap_cell *cell,
			 struct action_groups *groups)
{
	action_groups_add(groups, group_of(input, source, cell->site));
}

static char *heaps_text(struct action_input *input, uint32_t group)
{
	return heap_text(input->heaps->items[group].source, input->heaps->items[group].place);
}

static void heaps_json(struct action_input *input, uint32_t group, struct json *json)
{
	const struct action_source *source = input->heaps->items[group].source;
	uint32_t place = input->heaps->items[group].place;
	const struct trace_heap *heap = heap_at(source, place);
	if (!heap) {
		json_text(json, "name", "[no heap]");
		return;
	}
	json_address(json, "heap", heap->handle);
	json_text(json, "name", heap->name);
	if (heap_around(source, place))
		json_address(json, "inside", heap_around(source, place)->handle);
	json_count(json, "process", heap->process);
	uint32_t pid = trace_dictionary(source->trace)->processes[heap->process].pid;
	if (pid)
		json_count(json, "pid", pid);
}

/* ---- extents ---- */

static void heaps_extend(struct action_input *input, struct action_source *source, struct action_rows *rows)
{
	const struct heap_window *window = &source->by_heap;
	const unsigned number = (unsigned)(source - input->sources);
	struct heap_scan_plan plan = heap_window_plan(window, &source->of_heaps);
	struct heap_extents all = {0}, outstanding = {0};
	struct heap_scan scan;
	const struct heap_rows *part;
	uint64_t *bytes = memory_zeroed(2 * rows->memory_count, sizeof(*bytes));
	plan.columns = PACK_ALL | PACK_DETAILS;
	heap_scan_begin(&scan, source->table, &plan, NULL);
	while ((part = heap_scan_next(&scan)))
		heap_rows_each (part, i) {
			struct heap_cell cell;
			const struct heap_allocation own = heap_rows_get(part, i), *allocation = &own;
			if (!heap_window_has(window, allocation))
				continue;
			heap_window_cell(window, source->table, allocation, &cell);
			uint32_t row =
				action_rows_find(rows, input, source, group_of(input, source, cell.site), cell.by);
			if (row == HEAP_NONE)
				continue;
			heap_extents_add(&all, row, allocation, &part->details[i]);
			if (!heap_window_is_outstanding(window, allocation))
				continue;
			heap_extents_add(&outstanding, row, allocation, &part->details[i]);
			rows->memory[row].figures[number].extra[EXTRA_USABLE] +=
				allocation->size_bytes + heap_slack(&part->details[i]);
		}
	heap_scan_end(&scan);
	heap_extents_sum(&all, bytes, (uint32_t)rows->memory_count);
	heap_extents_sum(&outstanding, &bytes[rows->memory_count], (uint32_t)rows->memory_count);
	for (size_t i = 0; i < rows->memory_count; i++) {
		uint64_t *extra = rows->memory[i].figures[number].extra;
		extra[EXTRA_EXTENTS] = bytes[i];
		extra[EXTRA_LIVE_EXTENTS] = bytes[rows->memory_count + i];
	}
	heap_extents_fini(&all);
	heap_extents_fini(&outstanding);
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
