/* SPDX-License-Identifier: MIT */
/* make_mixed FILE SEED CALLS: writes the trace of a random program with everything that makes matching difficult. Its
   processes fork, and their children fork; some are new programs. Pools with names and blocks of their own lie in the
   blocks of malloc, are destroyed, and are inherited. There are heap objects. Threads contradict each other, events are lost, stamps are
   inverted; in one seed of three the program was attached to, in one of five it is a sample. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"
#include "trace/code_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"

enum {
	PROCESSES = 12,
	THREADS_EACH = 3,
	PLACES = 24,
	CELLS = 4,
	POOLS = 2,
	STACKS = 6,
	PLACE_BYTES = 0x1000,
	CELL_BYTES = 0x100
};

/* What a process has: by place a block of malloc, and in it cells of pools. */
struct mixed_process {
	uint32_t id, threads[THREADS_EACH], heap, pools[POOLS];
	bool has_pool[POOLS], is_over;
	bool is_live[PLACES], is_object[PLACES];
	uint32_t object;                  /* the heap object, or TRACE_NONE */
	uint8_t cell_pool[PLACES][CELLS]; /* 0: no block; else the pool plus one */
};

struct mixed {
	struct scene scene;
	struct mixed_process processes[PROCESSES];
	uint32_t seed, number, process_count, stacks[STACKS];
	bool has_pools, has_objects, is_attached;
	int64_t now;
};

static uint32_t below(struct mixed *mixed, uint32_t limit)
{
	mixed->seed = mixed->seed * 1664525 + 1013904223;
	return (mixed->seed >> 8) % limit;
}

static uint32_t heap_add(struct mixed *mixed, uint32_t process, uint64_t handle, const char *name)
{
	return writer_add_heap(mixed->scene.writer,
			       &(struct trace_heap){.process = process, .handle = handle, .name = (char *)name});
}

/* Begin a process. A child has its parent's blocks. */
static void process_begin(struct mixed *mixed, const struct mixed_process *parent, const struct mixed_process *state)
{
	struct mixed_process *process = &mixed->processes[mixed->process_count++];
	*process = state ? *state : (struct mixed_process){0};
	process->id =
		scene_process(&mixed->scene, 100 * mixed->process_count, parent ? parent->id : TRACE_NONE, mixed->now);
	process->heap = heap_add(mixed, process->id, 0x7f0000001000, "main arena");
	memset(process->has_pool, 0, sizeof(process->has_pool));
	process->object = TRACE_NONE;
	for (uint32_t i = 0; i < THREADS_EACH; i++)
		process->threads[i] = scene_thread(&mixed->scene, process->id, 100 * mixed->process_count + i);
	mixed->now += 1 + below(mixed, 5);
}

/* Choose the thread, the stack and the time of the next call. */
static uint32_t call_begin(struct mixed *mixed, const struct mixed_process *process, uint32_t heap, uint32_t function)
{
	mixed->scene.heap = heap;
	mixed->scene.function = function;
	mixed->scene.stack = mixed->stacks[below(mixed, STACKS)];
	mixed->now += below(mixed, 8) ? 1 + below(mixed, 60) : 0;
	return process->threads[below(mixed, THREADS_EACH)];
}

static uint64_t address_of(uint32_t place)
{
	return 0x7f0000000000 + (uint64_t)place * PLACE_BYTES;
}

static void place_forget(struct mixed_process *process, uint32_t place)
{
	process->is_live[place] = process->is_object[place] = false;
	memset(process->cell_pool[place], 0, sizeof(process->cell_pool[place]));
}

/* Move a block to another place or leave it where it is; other threads may call between the two points. */
static void plain_realloc(struct mixed *mixed, struct mixed_process *process, uint32_t place)
{
	uint32_t thread = call_begin(mixed, process, process->heap, FUNCTION_COUNT), to = below(mixed, PLACES);
	int64_t from_ns = mixed->now - below(mixed, mixed->now > 200 ? 200u : 1u);
	bool is_moved = !process->is_live[to];
	scene_realloc(&mixed->scene, thread, from_ns, mixed->now, address_of(place), address_of(is_moved ? to : place),
		      100 + below(mixed, 900));
	if (!is_moved)
		return;
	place_forget(process, place);
	process->is_live[to] = true;
}

/* Make a heap object, or delete it: its blocks stay in the default heap, or end with it. */
static void object_call(struct mixed *mixed, struct mixed_process *process)
{
	bool is_new = process->object == TRACE_NONE, is_deleted = below(mixed, 2);
	uint32_t function = is_new       ? FUNCTION_OBJECT_NEW
			    : is_deleted ? FUNCTION_OBJECT_DELETE
					 : FUNCTION_OBJECT_DESTROY;
	if (is_new)
		process->object = heap_add(mixed, process->id, 0x9000 + below(mixed, 2), "heap");
	uint32_t thread = call_begin(mixed, process, process->object, function);
	scene_event(&mixed->scene, thread, is_new ? EVENT_CREATE : EVENT_DESTROY, mixed->now);
	for (uint32_t place = 0; place < PLACES && !is_new; place++) {
		if (process->is_object[place] && !is_deleted)
			place_forget(process, place);
		process->is_object[place] = false;
	}
	process->object = is_new ? process->object : TRACE_NONE;
}

/* Allocate a block of the heap object. */
static void object_alloc(struct mixed *mixed, struct mixed_process *process, uint32_t place)
{
	uint32_t thread = call_begin(mixed, process, process->object, FUNCTION_OBJECT_MALLOC);
	scene_alloc(&mixed->scene, thread, mixed->now, address_of(place), 64 + below(mixed, 2000));
	process->is_live[place] = process->is_object[place] = true;
}

static void plain_call(struct mixed *mixed, struct mixed_process *process, uint32_t place)
{
	uint32_t thread = call_begin(mixed, process, process->heap, FUNCTION_COUNT);
	bool is_wrong = below(mixed, 60) == 0;
	if (below(mixed, 40) == 0)
		mixed->scene.flags = EVENT_FAILED;
	if (process->is_live[place] == is_wrong) {
		bool has_failed = mixed->scene.flags & EVENT_FAILED;
		scene_alloc(&mixed->scene, thread, mixed->now, has_failed ? 0 : address_of(place),
			    64 + below(mixed, 2000));
		process->is_live[place] |= !has_failed;
	} else {
		mixed->scene.flags = 0;
		scene_free(&mixed->scene, thread, mixed->now, address_of(place));
		if (mixed->is_attached && below(mixed, 2))
			scene_measure(&mixed->scene, thread, 64);
		place_forget(process, place);
		/* Another thread gets the block at the same time, or had it a little earlier by its clock. */
		if (below(mixed, 5) == 0) {
			int64_t inverted_ns = below(mixed, 2) ? (int64_t)below(mixed, 300) : 0;
			scene_alloc(&mixed->scene, process->threads[below(mixed, THREADS_EACH)],
				    mixed->now + inverted_ns, address_of(place), 80);
			process->is_live[place] = true;
		}
	}
}

static void pool_call(struct mixed *mixed, struct mixed_process *process, uint32_t place, uint32_t cell)
{
	static const char *const names[POOLS] = {"pool", "slab"};
	uint8_t *is_of = &process->cell_pool[place][cell];
	uint32_t pool = *is_of ? *is_of - 1u : below(mixed, POOLS);
	uint64_t address = address_of(place) + (uint64_t)cell * CELL_BYTES;
	if (!process->has_pool[pool])
		process->pools[pool] = heap_add(mixed, process->id, 0x5000 + pool, names[pool]);
	process->has_pool[pool] = true;
	if (below(mixed, 80) == 0) {
		uint32_t function = below(mixed, 2) ? FUNCTION_HEAP_DESTROY : FUNCTION_HEAP_RESET;
		uint32_t thread = call_begin(mixed, process, process->pools[pool], function);
		scene_event(&mixed->scene, thread, EVENT_DESTROY, mixed->now);
		for (uint32_t i = 0; i < PLACES * CELLS; i++)
			if (process->cell_pool[i / CELLS][i % CELLS] == pool + 1)
				process->cell_pool[i / CELLS][i % CELLS] = 0;
		return;
	}
	/* Sometimes it is not known which heap it is. */
	uint32_t heap = below(mixed, 30) ? process->pools[pool] : TRACE_NONE;
	uint32_t thread = call_begin(mixed, process, heap, *is_of ? FUNCTION_HEAP_FREE : FUNCTION_HEAP_ALLOC);
	if (*is_of)
		scene_free(&mixed->scene, thread, mixed->now, address);
	else
		scene_alloc(&mixed->scene, thread, mixed->now, address, CELL_BYTES);
	*is_of = *is_of ? 0 : (uint8_t)(pool + 1);
}

static void process_call(struct mixed *mixed, struct mixed_process *process)
{
	uint32_t place = below(mixed, PLACES);
	if (mixed->has_pools && below(mixed, 2))
		pool_call(mixed, process, place, below(mixed, CELLS));
	else if (mixed->has_objects && below(mixed, 30) == 0)
		object_call(mixed, process);
	else if (process->object != TRACE_NONE && !process->is_live[place] && below(mixed, 2))
		object_alloc(mixed, process, place);
	else if (process->is_live[place] && below(mixed, 5) == 0)
		plain_realloc(mixed, process, place);
	else
		plain_call(mixed, process, place);
}

static void calls_lose(struct mixed *mixed, struct mixed_process *process)
{
	uint32_t place = below(mixed, PLACES);
	int64_t from_ns = mixed->now + 1;
	mixed->now += 2 + below(mixed, 100);
	scene_gap(&mixed->scene, process->id, process->threads[0], from_ns, mixed->now, 1 + below(mixed, 3));
	mixed->now++;
	/* What was freed there may be allocated again. */
	place_forget(process, place);
	place_forget(process, below(mixed, PLACES));
}

/* A child notices its fork late: its parent may have made calls since. */
static void process_fork(struct mixed *mixed, struct mixed_process *parent)
{
	const struct mixed_process state = *parent;
	for (uint32_t i = below(mixed, 6); i > 0; i--)
		process_call(mixed, parent);
	process_begin(mixed, parent, &state);
}

static void earlier_find(struct mixed *mixed, const struct mixed_process *process)
{
	for (uint32_t place = 0; place < PLACES; place += 1 + below(mixed, 4)) {
		mixed->scene.heap = process->heap;
		mixed->scene.stack = 0;
		mixed->scene.function = FUNCTION_COUNT;
		scene_earlier(&mixed->scene, process->threads[0], mixed->now, address_of(place), 64);
	}
	mixed->now++;
}

static void processes_change(struct mixed *mixed, uint32_t call, uint32_t calls)
{
	struct mixed_process *one = &mixed->processes[below(mixed, mixed->process_count)];
	if (mixed->process_count < PROCESSES && below(mixed, calls / PROCESSES) == 0) {
		if (mixed->number % 7 && below(mixed, 4) && !one->is_over)
			process_fork(mixed, one);
		else
			process_begin(mixed, NULL, NULL);
	}
	if (mixed->process_count > 2 && !one->is_over && below(mixed, calls / 4) == 0) {
		one->is_over = true;
		scene_end(&mixed->scene, one->id, mixed->now++, TRACE_END_EXIT, 0);
		mixed->now++;
	}
	if (below(mixed, 150) == 0 && !one->is_over)
		calls_lose(mixed, one);
	mixed->has_objects |= mixed->number % 4 == 0 && call > calls / 2;
	mixed->has_pools |= mixed->number % 2 && call > calls / 3;
}

int main(int argc, char **argv)
{
	static struct mixed mixed;
	if (argc != 4) {
		fputs("usage: make_mixed FILE SEED CALLS\n", stderr);
		return 2;
	}
	uint32_t seed = (uint32_t)atoi(argv[2]), calls = (uint32_t)atoi(argv[3]);
	mixed = (struct mixed){.seed = seed * 7919, .number = seed, .is_attached = seed % 3 == 0, .now = 1000};
	scene_open(&mixed.scene, argv[1]);
	if (seed % 5 == 0)
		writer_add_option(mixed.scene.writer, "sample", "500");
	for (uint32_t i = 0; i < STACKS; i++)
		mixed.stacks[i] = i ? scene_stack(&mixed.scene, 0x1000, 0x2000 + i % 3, 0x3000 + i, 0) : 0;
	process_begin(&mixed, NULL, NULL);
	for (uint32_t call = 0; call < calls; call++) {
		processes_change(&mixed, call, calls);
		struct mixed_process *process = &mixed.processes[below(&mixed, mixed.process_count)];
		if (!process->is_over)
			process_call(&mixed, process);
		if (mixed.is_attached && call == calls / 8)
			earlier_find(&mixed, &mixed.processes[0]);
		mixed.is_attached &= call < calls / 8;
	}
	scene_close(&mixed.scene);
	return 0;
}
