/* SPDX-License-Identifier: MIT */
#include "match/match_heaps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/events.h"
#include "base/memory.h"
#include "match/matching.h"
#include "trace/code_rows.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

/* Return the number of the heap of a process with this handle and name. If there is none, return the unused key where
   it belongs in *key, and TRACE_NONE. */
static uint32_t heap_search(const struct matching *matching, const struct trace_heap *heap, uint32_t process,
			    uint64_t *key)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	const uint32_t *found;
	*key = XXH3_64bits_withSeed(heap->name, strlen(heap->name), heap->handle ^ (uint64_t)process << 32);
	/* Two different heaps may have one hash. */
	for (; (found = map_find(&matching->heap_ids, *key)); ++*key) {
		const struct trace_heap *other = &dictionary->heaps[*found];
		if (other->process == process && other->handle == heap->handle && !strcmp(other->name, heap->name))
			return *found;
	}
	return TRACE_NONE;
}

uint32_t matching_heap_like(const struct matching *matching, uint32_t heap, uint32_t process)
{
	uint64_t key;
	assert(heap < matching->annotated_count);
	return heap_search(matching, &matching->table->dictionary->heaps[heap], process, &key);
}

/* List the heaps of each process. */
static void heaps_list(struct matching *matching)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	matching->next_heap = memory_resize(matching->next_heap, dictionary->heap_count, sizeof(*matching->next_heap));
	for (uint32_t i = 0; i < dictionary->process_count; i++)
		matching->processes[i].first_heap = TRACE_NONE;
	for (uint32_t i = dictionary->heap_count; i-- > 0;) {
		struct matching_process *process = &matching->processes[dictionary->heaps[i].process];
		matching->next_heap[i] = process->first_heap;
		process->first_heap = i;
	}
}

static void heaps_extend(struct matching *matching)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	uint32_t known = matching->annotated_count, count = dictionary->heap_count;
	matching->annotated = memory_resize(matching->annotated, (size_t)count + 1, sizeof(*matching->annotated));
	memset(&matching->annotated[known], 0, (count - known) * sizeof(*matching->annotated));
	matching->annotated_count = count;
	for (uint32_t i = known; i < count; i++) {
		bool added;
		uint64_t key;
		if (heap_search(matching, &dictionary->heaps[i], dictionary->heaps[i].process, &key) == TRACE_NONE)
			*map_add(&matching->heap_ids, key, &added) = i;
	}
}

/* Before the first annotated block nothing can lie in the blocks of allocators. Later ones can lie in those that are
   live now. */
static void starts_add(struct matching *matching)
{
	for (uint32_t i = 0; i < matching->known.processes; i++) {
		struct matching_process *process = &matching->processes[i];
		for (size_t k = 0; process->live.cells && k < (size_t)1 << process->live.bits; k++) {
			const struct live_cell *cell = &process->live.cells[k];
			if (cell->address && matching_is_live(matching, cell->current))
				nest_starts_add(&process->nest.plain, cell->address);
		}
	}
}

void matching_read_heaps(struct matching *matching)
{
	const struct trace_dictionary *dictionary = matching->table->dictionary;
	if (!trace_has_annotations(dictionary))
		return;
	if (!matching->is_annotation)
		starts_add(matching);
	matching->is_annotation =
		memory_resize(matching->is_annotation, dictionary->entry_count, sizeof(*matching->is_annotation));
	for (uint32_t i = 0; i < dictionary->entry_count; i++)
		matching->is_annotation[i] = function_is_annotation(dictionary->entries[i].function);
	heaps_extend(matching);
	heaps_list(matching);
}

void matching_heaps_fini(struct matching *matching)
{
	for (uint32_t i = 0; i < matching->annotated_count; i++)
		live_fini(&matching->annotated[i]);
	free(matching->annotated);
	free(matching->next_heap);
	free(matching->is_annotation);
	map_fini(&matching->heap_ids);
}
