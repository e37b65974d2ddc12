/* SPDX-License-Identifier: MIT */
#include "recorder/heap_rows.h"

#include "recorder/stream.h"

static uint32_t file_of_entry(const struct recorder *recorder, uint32_t entry)
{
	return entry < recorder->limits.entry_max
		       ? LOAD(&region_entry_at(recorder->region, &recorder->limits, entry)->file)
		       : REGION_NONE;
}

/* Return the row in which a relative of this forked process has met the heap: children of one parent have the same
   arenas. REGION_HEAP_NONE: there is none. */
static uint32_t heap_row_of_relative(const struct recorder *recorder, const struct hook_context *context, uint64_t key)
{
	enum { FIRST_PLACE = 1 };
	const uint32_t count = LOAD(&recorder->region->heap_count), ready = LOAD_ACQUIRE(&recorder->region->heap_ready);
	if (LOAD(&recorder->fork_wiped->process) == FIRST_PLACE)
		return REGION_HEAP_NONE;
	for (uint32_t i = 0; i < count && i < ready && i < recorder->limits.heap_max; i++) {
		const struct region_heap *row = region_heap_at(recorder->region, &recorder->limits, i);
		if (LOAD_ACQUIRE(&row->handle) == (key & HEAP_HANDLE_BITS) &&
		    LOAD(&row->kind) == (uint8_t)(key >> HEAP_KEY_KIND) &&
		    LOAD(&row->name) == (uint8_t)(key >> RECORDER_HEAP_KEY_NAME) &&
		    file_of_entry(recorder, LOAD(&row->entry)) == file_of_entry(recorder, context->entry))
			return i;
	}
	return REGION_HEAP_NONE;
}

/* Take a new row for a heap; REGION_HEAP_NONE if none is ready. */
static uint32_t heap_row_add(struct thread *thread, const struct hook_context *context, uint64_t key)
{
	struct recorder *recorder = thread->recorder;
	struct region_header *region = recorder->region;
	uint32_t i = LOAD(&region->heap_count);
	do {
		uint32_t ready = LOAD_ACQUIRE(&region->heap_ready);
		if (i >= recorder->limits.heap_max ||
		    (i >= ready && !room_wait(recorder, ROOM_HEAPS, &region->heap_ready, ready))) {
			COUNT(&region->heaps_refused, 1);
			return REGION_HEAP_NONE;
		}
	} while (i >= LOAD_ACQUIRE(&region->heap_ready) || !swap_if_expected(&region->heap_count, &i, i + 1));
	struct region_heap *row = region_heap_at(region, &recorder->limits, i);
	STORE(&row->process, LOAD(&recorder->fork_wiped->process) - 1);
	STORE(&row->kind, (uint8_t)(key >> HEAP_KEY_KIND));
	STORE(&row->entry, context->entry);
	STORE(&row->name, (uint8_t)(key >> RECORDER_HEAP_KEY_NAME));
	STORE_RELEASE(&row->handle, key & HEAP_HANDLE_BITS);
	return i;
}

static uint32_t heap_row_find(struct thread *thread, const struct hook_context *context, uint64_t key)
{
	uint32_t found = heap_row_of_relative(thread->recorder, context, key);
	return found == REGION_HEAP_NONE ? heap_row_add(thread, context, key) : found;
}

__attribute__((noinline)) struct heap_place *heap_place_find(struct thread *thread, const struct hook_context *context,
							     uint64_t key)
{
	struct recorder *recorder = thread->recorder;
	uint32_t hash = heap_hash(key);
	for (uint32_t i = 0; i < RECORDER_HEAP_PROBES; i++) {
		struct heap_place *place = &recorder->heap[(hash + i) & (RECORDER_HEAP_TABLE - 1)];
		uint64_t found = LOAD_ACQUIRE(&place->key);
		if (LIKELY(found == key))
			return place;
		if (found || !__atomic_compare_exchange_n(&place->key, &found, HEAP_PLACE_BUSY, 0, __ATOMIC_ACQ_REL,
							  __ATOMIC_RELAXED))
			continue;
		/* A heap that was never created has no name. */
		uint32_t index = key & HEAP_CURRENT ? heap_lookup(thread, context, key & ~HEAP_CURRENT)
						    : heap_row_find(thread, context, key);
		STORE(&place->index, index);
		/* A heap that found no row is tried again. */
		STORE_RELEASE(&place->key, index == REGION_HEAP_NONE ? 0 : key);
		return index == REGION_HEAP_NONE ? 0 : place;
	}
	__atomic_fetch_add(&recorder->region->heaps_refused, 1, __ATOMIC_RELAXED);
	return 0;
}

uint32_t heap_lookup(struct thread *thread, const struct hook_context *context, uint64_t key)
{
	const struct heap_place *place = heap_place_find(thread, context, key);
	return place ? LOAD(&place->index) : REGION_HEAP_NONE;
}

__attribute__((noinline)) uint16_t heap_of_slowly(struct thread *thread, const struct hook_context *context,
						  uint64_t key)
{
	uint32_t id = thread->heap_handle[1] == key ? thread->heap_id[1] : heap_lookup(thread, context, key);
	/* Two heaps in turn: the last one first. */
	thread->heap_handle[1] = thread->heap_handle[0];
	thread->heap_id[1] = thread->heap_id[0];
	thread->heap_handle[0] = key;
	thread->heap_id[0] = id;
	return (uint16_t)id;
}
