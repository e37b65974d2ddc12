/* SPDX-License-Identifier: MIT */
/* make_trace plain|forks|together|losses|earlier|untraced|circular|resident|random|nested|growing|cleaned|idle|growths|turns|interpreted|java_natives|java_agent|put_in|nameless|limited|exited|ended|actions|sampled|huge|python|python_extensions|python_library|python_spread|python_objects|python_arenas|python_attached|unknown_python FILE [SEED [CALLS]]: writes a trace whose every
   event is known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"
#include "trace/code_rows.h"
#include "trace/memory_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/row_ids.h"

static void function(struct scene *scene, uint32_t id, uint32_t stack)
{
	scene->function = id;
	scene->stack = stack;
}

/* Every function of the family, a stack that is truncated, one that is missing, a failure, a call that never
   returned. */
static void plain(struct scene *scene)
{
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0);
	uint32_t thread = scene_thread(scene, process, 100), other = scene_thread(scene, process, 101);
	uint32_t main_loop = scene_stack(scene, 0x1000, 0x2000, 0),
		 parse = scene_stack(scene, 0x1000, 0x2000, 0x3000, 0);
	uint32_t cut = writer_intern_node(
		scene->writer,
		writer_intern_node(scene->writer, 0,
				   writer_intern_frame(scene->writer, TRACE_NONE, TRACE_FRAME_TRUNCATED)),
		writer_intern_frame(scene->writer, scene->image, 0x4000));
	function(scene, FUNCTION_COUNT, main_loop);
	scene_alloc(scene, thread, 1000, 0x7f0000010010, 100);
	function(scene, FUNCTION_CALLOC, parse);
	scene_alloc(scene, thread, 2000, 0x7f0000010090, 4096);
	scene->events[thread].argument[1] = 16;
	function(scene, FUNCTION_POSIX_MEMALIGN, parse);
	scene_alloc(scene, other, 2500, 0x7f0000020000, 65536);
	scene->events[other].argument[0] = 4096;
	scene->events[other].argument2[0] = 0x7ffc00001000;
	function(scene, FUNCTION_COUNT, parse);
	scene_realloc(scene, thread, 3000, 3500, 0x7f0000010010, 0x7f0000030010, 200);
	scene_realloc(scene, thread, 4000, 4100, 0x7f0000030010, 0x7f0000030010, 250);
	scene_free(scene, other, 5000, 0x7f0000010090);
	function(scene, FUNCTION_COUNT, cut);
	scene_alloc(scene, other, 6000, 0x7f0000010090, 24);
	scene->events[other].flags[scene->events[other].count - 1] |= EVENT_TRUNCATED;
	scene_free(scene, other, 7000, 0x7f0000010090);
	uint32_t mark = writer_intern_node(scene->writer, 0,
					   writer_intern_frame(scene->writer, TRACE_NONE, TRACE_FRAME_UNWINDLESS));
	function(scene, FUNCTION_COUNT,
		 writer_intern_node(scene->writer, mark, writer_intern_frame(scene->writer, scene->image, 0x5000)));
	scene_alloc(scene, thread, 7500, 0x7f0000050010, 48);
	function(scene, FUNCTION_COUNT, 0);
	scene_alloc(scene, thread, 8000, 0x7f0000040010, 8);
	scene->flags = EVENT_FAILED;
	scene_alloc(scene, thread, 9000, 0, (uint64_t)1 << 60);
	scene->flags = EVENT_IN_FLIGHT | EVENT_NO_DURATION;
	function(scene, FUNCTION_COUNT, main_loop);
	scene_free(scene, thread, 1234567, 0x7f0000040010);
	scene_end(scene, process, 2000000, TRACE_END_SIGNAL, 6);
}

static void forks(struct scene *scene)
{
	uint32_t parent = scene_process(scene, 100, TRACE_NONE, 0), parent_thread = scene_thread(scene, parent, 100);
	scene->stack = scene_stack(scene, 0x1000, 0);
	scene_alloc(scene, parent_thread, 1000, 0x7f0000010010, 1000);
	scene_alloc(scene, parent_thread, 2000, 0x7f0000020010, 500);
	uint32_t child = scene_process(scene, 200, parent, 3000), child_thread = scene_thread(scene, child, 200);
	scene_free(scene, child_thread, 4000, 0x7f0000010010);
	scene_alloc(scene, child_thread, 5000, 0x7f0000010010, 64);
	scene_end(scene, child, 6000, TRACE_END_EXIT, 3);
	scene_free(scene, parent_thread, 7000, 0x7f0000010010);
	scene_end(scene, parent, 8000, TRACE_END_EXEC, 0);
}

/* A forked process that ends in the same nanosecond as its parent, which is the trace's end. */
static void together(struct scene *scene)
{
	uint32_t parent = scene_process(scene, 100, TRACE_NONE, 0), parent_thread = scene_thread(scene, parent, 100);
	scene->stack = scene_stack(scene, 0x1000, 0);
	scene_alloc(scene, parent_thread, 1000, 0x7f0000010010, 1000);
	scene_alloc(scene, parent_thread, 2000, 0x7f0000020010, 500);
	uint32_t child = scene_process(scene, 200, parent, 3000), child_thread = scene_thread(scene, child, 200);
	scene_free(scene, child_thread, 4000, 0x7f0000010010);
	scene_alloc(scene, child_thread, 5000, 0x7f0000030010, 64);
	scene_end(scene, child, 6000, TRACE_END_SIGNAL, 9);
	scene_end(scene, parent, 6000, TRACE_END_SIGNAL, 9);
}

static void losses(struct scene *scene)
{
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	scene->stack = scene_stack(scene, 0x1000, 0);
	scene_alloc(scene, thread, 1000, 0x7f0000010010, 1000);
	scene_alloc(scene, thread, 2000, 0x7f0000020010, 500);
	scene_gap(scene, process, thread, 3000, 4000, 7);
	scene_alloc(scene, thread, 90000, 0x7f0000010010, 20);
	scene_alloc(scene, thread, 91000, 0x7f0000010010, 30);
	scene_free(scene, thread, 95000, 0x7f0000090010);
}

/* Attached to: blocks found later, one given back before, and some that are not known. */
static void earlier(struct scene *scene)
{
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t none = scene_thread(scene, process, TRACE_TID_NONE);
	writer_add_option(scene->writer, "attached", "yes");
	writer_add_option(scene->writer, TRACE_OPTION_EARLIER_MISSING,
			  "process 100: not all blocks from before are known: 1 of 3 arenas could not be walked");
	scene->stack = scene_stack(scene, 0x1000, 0);
	scene_free(scene, thread, 1000, 0x7f0000010010);
	scene_measure(scene, thread, 40);
	scene_alloc(scene, thread, 2000, 0x7f0000020010, 500);
	scene_realloc(scene, thread, 7000, 7500, 0x7f0000030010, 0x7f0000040010, 90);
	scene_free(scene, thread, 9000, 0x7f0000050010);
	scene->stack = 0;
	scene_earlier(scene, none, 5000, 0x7f0000010010, 40);
	scene_earlier(scene, none, 5000, 0x7f0000020010, 504);
	scene_earlier(scene, none, 5000, 0x7f0000030010, 120);
	scene_earlier(scene, none, 5000, 0x7f0000060010, 1000);
}

/* A process that was never traced, of which little is known, and one that has not ended. */
static void untraced(struct scene *scene)
{
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	const struct trace_process other = {.pid = 200,
					    .parent = process,
					    .forked_from = TRACE_NONE,
					    .exec_generation = 1,
					    .start_ns = 3000,
					    .end_ns = INT64_MAX,
					    .end = TRACE_END_UNKNOWN,
					    .image = "/bin/static",
					    .command = "",
					    .note = "it has no function of an allocator"};
	scene->stack = scene_stack(scene, 0x1000, 0);
	scene_alloc(scene, thread, 1000, 0x7f0000010010, 1000);
	writer_add_process(scene->writer, &other);
}

/* More than the file may hold: the oldest segments are overwritten. */
static void circular(struct scene *scene)
{
	enum { CALLS = 4000, KEPT = 50, CALLS_OF_BLOCK = 100 };
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	for (int i = 0; i < CALLS; i++) {
		uint64_t address = 0x7f0000000000 + (uint64_t)(i % KEPT) * 0x1000;
		scene->stack = scene_stack(scene, 0x1000 + i % 3, 0x2000 + i % 7, 0);
		scene_alloc(scene, thread, i * 1000, address, 10 + (uint64_t)i * 7919 % 1009);
		if (i % KEPT)
			scene_free(scene, thread, i * 1000 + 500, address);
		if (i % CALLS_OF_BLOCK == 0)
			scene_block(scene, thread);
	}
	scene_end(scene, process, CALLS * 1000, TRACE_END_EXIT, 0);
}

static uint32_t next(uint32_t *seed, uint32_t limit)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % limit;
}

/* Four processes, two of them forked, three threads each, that allocate at random, with stamps that are sometimes
   inverted. */
/* Blocks in three of the mappings that a reading lists, and in one that it does not list; a child that has its parent's
   blocks; a process whose memory was not read; and samples at which nothing was read. */
static void resident(struct scene *scene)
{
	enum { MIB = 1 << 20 };
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	const struct trace_resident_part parts[] = {
		{TRACE_MAPPING_FILES, 0x400000, 0x500000, MIB, "/bin/scene"},
		{TRACE_MAPPING_BREAK, 0x1000000, 0x1400000, 3 * MIB, ""},
		{TRACE_MAPPING_ANONYMOUS, 0x7f0000000000, 0x7f0001000000, 8 * MIB, ""},
		{TRACE_MAPPING_ANONYMOUS, 0x7f0010000000, 0x7f0010400000, 4 * MIB, "[anon:a pool]"},
	};
	struct trace_resident row = {.process = process,
				     .time_ns = 5000,
				     .bytes = {MIB, MIB / 2, 3 * MIB, 13 * MIB, 8192, MIB / 4, MIB / 8, 4096, 4096},
				     .mapping_count = 30,
				     .spread = 4};
	const struct trace_page_run runs[] = {
		{0x1000, 3 * MIB / TRACE_PAGE_BYTES, TRACE_MAPPING_BREAK, false},
		{0x100000, 2, TRACE_MAPPING_CODE, false},
		{0x7efefed00 - 2, 8 * MIB / TRACE_PAGE_BYTES, TRACE_MAPPING_ANONYMOUS, false},
		{0xf800, 4 * MIB / TRACE_PAGE_BYTES, TRACE_MAPPING_ANONYMOUS, false},
		{0xfc00, MIB / TRACE_PAGE_BYTES, TRACE_MAPPING_ANONYMOUS, false},
		{0x1000, MIB / 4 / TRACE_PAGE_BYTES, TRACE_MAPPING_SHARED, false},
	};
	struct trace_pages pages = {.process = process,
				    .time_ns = 5000,
				    .huge_bytes = TRACE_HUGE_UNKNOWN,
				    .swapped_bytes = MIB / 2,
				    .spread = sizeof(runs) / sizeof(runs[0])};
	scene->stack = scene_stack(scene, 0x1000, 0x2000, 0);
	scene_alloc(scene, thread, 1000, 0x1000000, 2 * MIB);      /* in the break, of which 3 MiB are resident */
	scene_alloc(scene, thread, 1100, 0x7f0000000000, MIB);     /* beside 7 MiB of the program's own */
	scene_alloc(scene, thread, 1200, 0x7f0000100000, MIB / 2); /* freed before the reading */
	scene_alloc(scene, thread, 1300, 0x7f0020000000, MIB / 4); /* in a mapping that is not listed */
	scene_free(scene, thread, 2000, 0x7f0000100000);
	writer_add_sample(scene->writer, &(struct trace_sample){process, 1500, 9 * MIB});
	writer_add_sample(scene->writer, &(struct trace_sample){process, 5000, 18 * MIB});
	writer_add_resident(scene->writer, &row, parts);
	writer_add_pages(scene->writer, &pages, runs);
	writer_add_sample(scene->writer, &(struct trace_sample){process, 6000, 18 * MIB + 4096});
	uint32_t child = scene_process(scene, 200, process, 6500), child_thread = scene_thread(scene, child, 200);
	scene_alloc(scene, child_thread, 7000, 0x7f0000200000, MIB);
	row.process = child;
	row.time_ns = 8000;
	pages.process = child;
	pages.time_ns = 8000;
	pages.huge_bytes = 2 * MIB;
	writer_add_sample(scene->writer, &(struct trace_sample){child, 8000, 18 * MIB});
	writer_add_resident(scene->writer, &row, parts);
	writer_add_pages(scene->writer, &pages, runs);
	uint32_t other = scene_process(scene, 300, TRACE_NONE, 7000), other_thread = scene_thread(scene, other, 300);
	scene_alloc(scene, other_thread, 7500, 0x7f0000010010, 64);
	writer_add_sample(scene->writer, &(struct trace_sample){other, 8000, MIB});
	scene_end(scene, child, 9000, TRACE_END_EXIT, 0);
	scene_end(scene, process, 9500, TRACE_END_EXIT, 0);
}

static void random_calls(struct scene *scene, uint32_t seed, int calls)
{
	enum { ADDRESSES = 400, PROCESSES = 4, THREADS = 3 };
	static bool is_live[PROCESSES][ADDRESSES];
	uint32_t stacks[20], threads[PROCESSES][THREADS], process_count = 1;
	int64_t now = 0;
	for (int i = 0; i < 20; i++)
		stacks[i] = i ? scene_stack(scene, 0x1000 + i % 3, 0x2000 + i % 5, 0x3000 + i, 0) : 0;
	for (uint32_t i = 0; i < THREADS; i++)
		threads[0][i] = scene_thread(scene, i ? 0 : scene_process(scene, 100, TRACE_NONE, 0), 100 + i);
	for (int call = 0; call < calls; call++) {
		if (call % (calls / PROCESSES) == calls / PROCESSES - 1 && process_count < PROCESSES) {
			uint32_t parent = process_count == 3 ? TRACE_NONE : process_count - 1,
				 id = scene_process(scene, 100 * (process_count + 1), parent, now);
			for (uint32_t i = 0; i < THREADS; i++)
				threads[id][i] = scene_thread(scene, id, 100 * (id + 1) + i);
			if (parent != TRACE_NONE)
				memcpy(is_live[id], is_live[parent], sizeof(is_live[id]));
			process_count++;
			now += 2000;
		}
		uint32_t process = next(&seed, process_count), thread = threads[process][next(&seed, THREADS)],
			 at = next(&seed, ADDRESSES);
		uint64_t address = 0x7f0000000000 + at * 64, size = next(&seed, 1000);
		scene->stack = stacks[next(&seed, 20)];
		now += 1 + next(&seed, 50);
		if (!is_live[process][at]) {
			scene_alloc(scene, thread, now, address, size);
			is_live[process][at] = true;
		} else if (next(&seed, 3)) {
			scene_free(scene, thread, now, address);
			is_live[process][at] = false;
			/* A stamp equal to another thread's; not in children, whose first free of an address may be of
			   an inherited block. */
			if (!next(&seed, 4) && scene->processes[process].forked_from == TRACE_NONE) {
				scene_alloc(scene,
					    threads[process][0] == thread ? threads[process][1] : threads[process][0],
					    now, address, size);
				is_live[process][at] = true;
			}
		} else {
			scene_realloc(scene, thread, now, now + 20, address, address, size);
			now += 20;
		}
		if (!next(&seed, 2000))
			scene_block(scene, thread);
	}
	scene_end(scene, 1, now - 1, TRACE_END_EXIT, 0);
	if (process_count > 3)
		scene_end(scene, 3, now + 500, TRACE_END_SIGNAL, 9);
}

/* A minute: a leak of one block of so many bytes each 100 ms, a cache that fills in 20 s and stops, blocks that another thread frees at
   once, and a buffer that grows by realloc. */
static void leaking(struct scene *scene, uint64_t bytes)
{
	enum { STEP_NS = 20000000, STEPS = 3000, BUFFER = 0x10000 };
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100),
		 other = scene_thread(scene, process, 101);
	uint32_t leak = scene_stack(scene, 0x1000, 0x2000, 0), cache = scene_stack(scene, 0x1000, 0x3000, 0),
		 churn = scene_stack(scene, 0x1000, 0x4000, 0), buffer = scene_stack(scene, 0x1000, 0x5000, 0);
	uint64_t size = 100, address = 0x7e0000000000;
	scene->stack = buffer;
	scene_alloc(scene, thread, 1000, address, size);
	for (int64_t i = 0; i < STEPS; i++) {
		int64_t now = 10000 + i * STEP_NS;
		scene->stack = churn;
		scene_alloc(scene, thread, now, 0x7d0000000000, 64);
		scene_free(scene, other, now + 2000, 0x7d0000000000);
		scene->stack = leak;
		if (i % 5 == 0)
			scene_alloc(scene, thread, now + 4000, 0x7f0000000000 + (uint64_t)i * 1024, bytes);
		scene->stack = cache;
		if (i < STEPS / 3)
			scene_alloc(scene, thread, now + 6000, 0x7c0000000000 + (uint64_t)i * 4096, 2000);
		scene->stack = buffer;
		if (i && i % 600 == 0)
			scene_realloc(scene, thread, now + 8000, now + 9000, address, address + BUFFER, size * 4);
		address += i && i % 600 == 0 ? BUFFER : 0;
		size *= i && i % 600 == 0 ? 4 : 1;
	}
}

/* A program that keeps a block each tenth of a second for 48 s, frees all in the next 12 s, and exits; or is idle then, and frees
   all at once. */
static void freeing(struct scene *scene, int64_t freed_from_ns, int64_t step_ns)
{
	enum { STEPS = 480, EXTRA = 6 };
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	scene->stack = scene_stack(scene, 0x1000, 0x2000, 0x3000, 0);
	for (int i = 0; i < STEPS; i++)
		scene_alloc(scene, thread, 10000 + (int64_t)i * 100000000, 0x7f0000000000 + (uint64_t)i * 4096, 2000 + i % EXTRA);
	for (int i = 0; i < STEPS; i++)
		scene_free(scene, thread, freed_from_ns + i * step_ns, 0x7f0000000000 + (uint64_t)i * 4096);
	scene_end(scene, process, INT64_C(60000000000), TRACE_END_EXIT, 0);
}

static void cleaned(struct scene *scene)
{
	freeing(scene, INT64_C(48000000000), 24000000);
}

static void idle(struct scene *scene)
{
	freeing(scene, INT64_C(59990000000), 10000);
}

static void growing(struct scene *scene)
{
	leaking(scene, 200);
}

/* Two stacks whose blocks stay. */
static void growths(struct scene *scene)
{
	enum { STEP_NS = 100000000, STEPS = 600 };
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	for (int i = 0; i < STEPS; i++) {
		scene->stack = scene_stack(scene, 0x1000, i % 2 ? 0x2000 : 0x3000, 0);
		scene_alloc(scene, thread, 10000 + (int64_t)i * STEP_NS, 0x7f0000000000 + (uint64_t)i * 1024,
			    i % 2 ? 200 : 100);
	}
}

/* A function whose blocks stay, called on one path after the other, as where a compiler moves the callers while they
   run; and one whose blocks are freed on each path. */
static void turns(struct scene *scene)
{
	enum { STEP_NS = 20000000, STEPS = 3000, PATHS = 4, LIVE = 50 };
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	for (int i = 0; i < STEPS; i++) {
		uint64_t caller = 0x2000 + (uint64_t)(i * PATHS / STEPS) * 0x100, place = (uint64_t)i * 1024;
		int64_t now = 10000 + (int64_t)i * STEP_NS;
		scene->stack = scene_stack(scene, 0x1000, caller, 0x6000, 0);
		scene_alloc(scene, thread, now, 0x7f0000000000 + place, 200);
		scene->stack = scene_stack(scene, 0x1000, caller, 0x7000, 0);
		scene_alloc(scene, thread, now + 2000, 0x7e0000000000 + place, 300);
		if (i >= LIVE)
			scene_free(scene, thread, now + 4000, 0x7e0000000000 + place - LIVE * 1024);
	}
}

/* Blocks of a pool in blocks of malloc's or in memory of its own, and blocks of a slab in those. Everything ends with
   what it lies in. */
struct nested {
	struct scene *scene;
	uint32_t seed, heaps[3], threads[2], stacks[6], thread;
	int64_t now;
	struct outer {
		bool is_live;
		uint64_t address, size, cell_bytes;
		bool has_cell[4], has_half[4][2];
	} outer[12];
};
enum { NESTED_PLAIN, NESTED_POOL, NESTED_SLAB, NESTED_OUTER = 12, NESTED_CELLS = 4 };

/* The next call is one of this heap. */
static void nested_of(struct nested *nested, int heap, uint32_t annotated_function)
{
	struct scene *scene = nested->scene;
	scene->heap = nested->heaps[heap];
	function(scene, heap == NESTED_PLAIN ? FUNCTION_COUNT : annotated_function,
		 nested->stacks[next(&nested->seed, 6)]);
	nested->thread = nested->threads[next(&nested->seed, 2)];
	nested->now += 10 + next(&nested->seed, 50);
}

static void nested_clear(struct outer *outer)
{
	memset(outer->has_cell, 0, sizeof(outer->has_cell));
	memset(outer->has_half, 0, sizeof(outer->has_half));
}

static void nested_outer(struct nested *nested, int place)
{
	struct outer *outer = &nested->outer[place];
	uint32_t what = next(&nested->seed, 3);
	nested_of(nested, NESTED_PLAIN, 0);
	if (!outer->is_live) {
		*outer = (struct outer){true,
					0x7f0000000000 + (uint64_t)place * 0x10000,
					64 + next(&nested->seed, 4000),
					0,
					{false},
					{{false}}};
		outer->cell_bytes = outer->size / NESTED_CELLS;
		scene_alloc(nested->scene, nested->thread, nested->now, outer->address, outer->size);
	} else if (what == 0) {
		scene_free(nested->scene, nested->thread, nested->now, outer->address);
		outer->is_live = false;
		nested_clear(outer);
	} else if (what == 1) {
		uint64_t before = outer->address;
		bool is_moved = next(&nested->seed, 2);
		outer->address = is_moved ? before ^ 0x8000 : before;
		outer->size += next(&nested->seed, 100);
		scene_realloc(nested->scene, nested->thread, nested->now, nested->now + 5, before, outer->address,
			      outer->size);
		nested->now += 5;
		if (is_moved)
			nested_clear(outer);
	}
}

static void nested_inner(struct nested *nested, int place, int cell)
{
	struct outer *outer = &nested->outer[place];
	uint64_t address = outer->address + (uint64_t)cell * outer->cell_bytes, half_bytes = outer->cell_bytes / 2;
	int half = (int)next(&nested->seed, 2),
	    heap = outer->has_cell[cell] && next(&nested->seed, 3) ? NESTED_SLAB : NESTED_POOL;
	bool *is_there = heap == NESTED_SLAB ? &outer->has_half[cell][half] : &outer->has_cell[cell];
	nested_of(nested, heap, *is_there ? FUNCTION_HEAP_FREE : FUNCTION_HEAP_ALLOC);
	if (heap == NESTED_SLAB)
		address += (uint64_t)half * half_bytes;
	if (*is_there)
		scene_free(nested->scene, nested->thread, nested->now, address);
	else
		scene_alloc(nested->scene, nested->thread, nested->now, address,
			    heap == NESTED_SLAB ? half_bytes : outer->cell_bytes);
	*is_there = !*is_there;
	if (heap == NESTED_POOL)
		memset(outer->has_half[cell], 0, sizeof(outer->has_half[cell]));
}

static void nested_calls(struct scene *scene, uint32_t seed, int calls)
{
	struct nested nested = {.scene = scene, .seed = seed, .now = 1000};
	static const char *const names[] = {"libc", "pool", "slab"};
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0);
	for (uint32_t i = 0; i < 3; i++)
		nested.heaps[i] = writer_add_heap(
			scene->writer,
			&(struct trace_heap){.process = process, .handle = 0x1000 * (i + 1), .name = (char *)names[i]});
	for (uint32_t i = 0; i < 2; i++)
		nested.threads[i] = scene_thread(scene, process, 100 + i);
	for (uint32_t i = 0; i < 6; i++)
		nested.stacks[i] = scene_stack(scene, 0x1000 + i % 2, 0x2000 + i % 3, 0x3000 + i, 0);
	for (int call = 0; call < calls; call++) {
		int place = (int)next(&nested.seed, NESTED_OUTER);
		if (!next(&nested.seed, 150)) {
			nested_of(&nested, NESTED_POOL, FUNCTION_HEAP_DESTROY);
			scene_event(scene, nested.thread, EVENT_DESTROY, nested.now);
			for (int i = 0; i < NESTED_OUTER; i++)
				nested_clear(&nested.outer[i]);
		} else if (!nested.outer[place].is_live || !next(&nested.seed, 4)) {
			nested_outer(&nested, place);
		} else {
			nested_inner(&nested, place, (int)next(&nested.seed, NESTED_CELLS));
		}
	}
}

/* The same with limits, of which the cgroup's is the nearest, and with resident memory. */
static void limited(struct scene *scene)
{
	growing(scene);
	writer_add_sample(scene->writer, &(struct trace_sample){0, 1000, 1 << 20});
	writer_add_sample(scene->writer, &(struct trace_sample){0, INT64_C(60000000000), 2 << 20});
	writer_add_limit(scene->writer,
			 &(struct trace_limit){0, UINT64_C(1) << 40, UINT64_C(1) << 33, 7 << 20, UINT64_C(1) << 34});
	writer_add_limit(scene->writer,
			 &(struct trace_limit){0, UINT64_C(1) << 40, UINT64_C(1) << 33, 12 << 20, UINT64_C(1) << 34});
}

/* One that leaks less, which then needs far more for a moment, by a function that many paths lead to, and exits. It has mapped more
   by itself than all of its blocks. */
static void exited(struct scene *scene)
{
	enum { MIB = 1 << 20, PATHS = 20 };
	const int64_t now = INT64_C(60100000000);
	const struct trace_resident_part parts[] = {
		{TRACE_MAPPING_ANONYMOUS, 0x600000000000, 0x600004000000, 64 * MIB, ""}};
	const struct trace_resident row = {
		.time_ns = now, .bytes = {[TRACE_MAPPING_ANONYMOUS] = 64 * MIB}, .mapping_count = 1, .spread = 1};
	leaking(scene, 90);
	for (int i = 0; i < PATHS; i++) {
		scene->stack = scene_stack(scene, 0x1000, 0x2100 + i, 0x8000, 0);
		scene_alloc(scene, 0, now - 2000 + i, 0x7a0000000000 + (uint64_t)i * MIB, MIB / 2);
	}
	for (int i = 0; i < PATHS; i++)
		scene_free(scene, 0, now - 1000 + i, 0x7a0000000000 + (uint64_t)i * MIB);
	writer_add_sample(scene->writer, &(struct trace_sample){0, now, 64 * MIB});
	writer_add_resident(scene->writer, &row, parts);
	scene_end(scene, 0, now, TRACE_END_EXIT, 0);
}

/* Processes that ended in all ways, and what the kernel counted until then. */
static void ended(struct scene *scene)
{
	static const struct {
		uint8_t end;
		int32_t status;
		bool has_cause;
		struct trace_cause cause;
	} ends[] = {
		{TRACE_END_EXIT, 0, false, {0}},
		{TRACE_END_EXIT, 3, false, {0}},
		{TRACE_END_UNKNOWN, 0, false, {0}},
		{TRACE_END_DETACHED, 0, false, {0}},
		{TRACE_END_SIGNAL, 9, true, {.cgroup_kills = 2, .cgroup_hits = 3, .machine_kills = 4}},
		{TRACE_END_SIGNAL, 9, true, {.cgroup_kills = 1, .machine_kills = 1}},
		{TRACE_END_SIGNAL, 9, true, {.cgroup_hits = 1, .machine_kills = 1}},
		{TRACE_END_SIGNAL, 9, true, {0, false, TRACE_CAUSE_UNKNOWN, TRACE_CAUSE_UNKNOWN, 7}},
		{TRACE_END_SIGNAL, 9, true, {0, false, TRACE_CAUSE_UNKNOWN, TRACE_CAUSE_UNKNOWN, TRACE_CAUSE_UNKNOWN}},
		{TRACE_END_SIGNAL, 11, true, {0, true, TRACE_CAUSE_UNKNOWN, TRACE_CAUSE_UNKNOWN, TRACE_CAUSE_UNKNOWN}},
		{TRACE_END_SIGNAL, 99, false, {0}}};
	for (uint32_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		uint32_t process = scene_process(scene, 100 + i, TRACE_NONE, 0);
		uint32_t thread = scene_thread(scene, process, 100 + i);
		struct trace_cause cause = ends[i].cause;
		scene->stack = scene_stack(scene, 0x1000, 0x2000, 0, 0);
		scene_alloc(scene, thread, 1000 + i, 0x10000, 64);
		scene_end(scene, process, 2000 + i, ends[i].end, ends[i].status);
		cause.process = process;
		if (ends[i].has_cause)
			writer_add_cause(scene->writer, &cause);
	}
	writer_add_option(scene->writer, TRACE_OPTION_TRIGGERED, "process 104 has hit the memory limit of its cgroup");
}

/* The last event's arguments, as the recorder stores them. */
static void arguments(struct scene *scene, uint32_t thread, uint64_t address, uint64_t size, uint64_t argument,
		      uint64_t argument2)
{
	struct writer_events *events = &scene->events[thread];
	uint32_t i = events->count - 1;
	events->address[i] = address;
	events->size[i] = size;
	events->argument[i] = argument;
	events->argument2[i] = argument2;
}

/* A call of each action, in a heap that reports itself; calls that did not return, and one of jemalloc's. */
static void actions(struct scene *scene)
{
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t plain_heap = scene->heap;
	scene->stack = scene_stack(scene, 0x1000, 0x2000, 0);
	scene->heap = writer_add_heap(scene->writer,
				      &(struct trace_heap){.process = process, .handle = 0x5000, .name = "pool"});
	scene->function = FUNCTION_HEAP_CREATE_SIZED;
	scene_event(scene, thread, EVENT_CREATE, 1000);
	arguments(scene, thread, 0, 0x100000, 0x7f0000100000, 0x1000);
	scene->function = FUNCTION_HEAP_LOCK;
	scene_event(scene, thread, EVENT_LOCK, 2000);
	scene->function = FUNCTION_HEAP_ALLOC;
	scene_alloc(scene, thread, 3000, 0x7f0000100010, 100);
	scene->function = FUNCTION_HEAP_UNLOCK;
	scene_event(scene, thread, EVENT_UNLOCK, 4000);
	scene->function = FUNCTION_HEAP_REALLOC;
	scene_realloc(scene, thread, 5000, 5500, 0x7f0000100010, 0x7f0000100100, 200);
	scene->function = FUNCTION_HEAP_PROTECT;
	scene_event(scene, thread, EVENT_PROTECT, 6000);
	arguments(scene, thread, 0x7f0000100000, 0x1000, 1, 0);
	scene_event(scene, thread, EVENT_PROTECT, 6500);
	arguments(scene, thread, 0x7f0000100000, 0x1000, 3, 0);
	scene->function = FUNCTION_HEAP_ALLOC;
	scene_alloc(scene, thread, 6600, 0x7f0000100200, 50);
	scene->function = FUNCTION_HEAP_FREE;
	scene_free(scene, thread, 7000, 0x7f0000100100);
	scene->function = FUNCTION_HEAP_DESTROY;
	scene_event(scene, thread, EVENT_DESTROY, 8000);
	scene->heap = plain_heap;
	scene->function = FUNCTION_MALLOCX;
	scene_alloc(scene, thread, 9000, 0x7f0000200000, 64);
	arguments(scene, thread, 0x7f0000200000, 64, 0x40, 0);
	scene->function = FUNCTION_OBJECT_NEW;
	scene_event(scene, thread, EVENT_CREATE, 9500);
	arguments(scene, thread, 0x7f0000300000, 0, 0, 0);
	scene->function = FUNCTION_HEAP_LOCK;
	scene->flags = EVENT_IN_FLIGHT | EVENT_NO_DURATION;
	scene_event(scene, thread, EVENT_LOCK, 10000);
	scene_end(scene, process, 11000, TRACE_END_SIGNAL, 9);
}

/* One block for each thousand bytes. */
static void sampled(struct scene *scene)
{
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	writer_add_option(scene->writer, "sample", "1000");
	scene->stack = scene_stack(scene, 0x1000, 0x2000, 0);
	scene_alloc(scene, thread, 1000, 0x7f0000100010, 100);
	scene_context(scene, thread, UINT64_C(0xefcdab8967452301), UINT64_C(0x8877665544332211));
	scene_alloc(scene, thread, 2000, 0x7f0000200010, 50000);
	scene_context(scene, thread, 0, 0);
	scene_free(scene, thread, 3000, 0x7f0000100010);
}

/* Larger than numbers of scripts: the sum of sizes, and the time of the end, after 200 days. */
static void huge(struct scene *scene)
{
	const int64_t end_ns = (int64_t)200 * 86400 * 1000000000;
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	scene->stack = scene_stack(scene, 0x1000, 0x2000, 0);
	for (int i = 0; i < 64; i++)
		scene_alloc(scene, thread, 1000 + i, (uint64_t)(i + 1) << 50, (UINT64_C(1) << 48) - 1);
	scene_free(scene, thread, end_ns - 1000, UINT64_C(1) << 50);
	scene_end(scene, process, end_ns, TRACE_END_SIGNAL, 9);
}

/* A line of a function of Python, called from a stack. */
static uint32_t python_line(struct scene *scene, uint32_t stack, const char *file, const char *function, uint32_t line)
{
	uint32_t image = writer_add_image(scene->writer, &(struct trace_image){.path = file});
	uint64_t place = (uint64_t)strlen(function) << 40 | line;
	uint32_t frame = writer_intern_frame(scene->writer, image, place);
	writer_name_frame(scene->writer, frame, &(struct trace_function){function, "", file, line, false}, 1);
	return writer_intern_node(scene->writer, stack, frame);
}

/* Python that calls C that calls Python, and the interpreter's own code around and inside of it. */
static void python(struct scene *scene)
{
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t interpreter = writer_add_image(scene->writer, &(struct trace_image){.path = "/usr/bin/python3.11"});
	uint32_t start = writer_intern_node(scene->writer, scene_stack(scene, 0x1000, 0),
					    writer_intern_frame(scene->writer, interpreter, 0x2000));
	uint32_t module = python_line(scene, start, "/src/shop.py", "<module>", 9);
	uint32_t again = python_line(scene, start, "/src/shop.py", "<module>", 10);
	uint32_t sort =
		writer_intern_node(scene->writer, module, writer_intern_frame(scene->writer, interpreter, 0x3000));
	uint32_t grow = writer_intern_frame(scene->writer, interpreter, 0x4000);
	scene->stack = start;
	scene_alloc(scene, thread, 1000, 0x7f0000100010, 100);
	scene->stack =
		writer_intern_node(scene->writer, python_line(scene, sort, "/src/shop.py", "Shop.load", 6), grow);
	scene_alloc(scene, thread, 2000, 0x7f0000200010, 200);
	scene->stack =
		writer_intern_node(scene->writer, python_line(scene, again, "/src/shop.py", "Shop.load", 6), grow);
	scene_alloc(scene, thread, 3000, 0x7f0000300010, 3000);
	scene->stack = writer_intern_node(scene->writer, again, grow);
	scene_alloc(scene, thread, 4000, 0x7f0000400010, 500);
}

/* Extensions without symbols: one that comes with Python, another one, and the same where no Python calls. */
static void python_extensions(struct scene *scene)
{
	static const char *const paths[] = {"/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so",
					    "/usr/lib/python3/dist-packages/_grid.cpython-311-x86_64-linux-gnu.so"};
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t start = scene_stack(scene, 0x1000, 0);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t image = writer_add_image(scene->writer, &(struct trace_image){.path = paths[i % 2]});
		uint32_t stack = i < 2 ? python_line(scene, start, "/src/shop.py", "Shop.load", 6) : start;
		for (uint32_t k = 0; k < 2; k++)
			stack = writer_intern_node(scene->writer, stack,
						   writer_intern_frame(scene->writer, image, 0x5000 + 0x1000 * k));
		scene->stack = stack;
		scene_alloc(scene, thread, 1000 * (i + 1), 0x7f0000000010 + (uint64_t)i * 0x10000, 100U << i);
	}
}

/* A function of Python's library, called by a line of the program, by a file of the same name, and by nobody else. */
static void python_library(struct scene *scene)
{
	static const char decoder[] = "/usr/lib/python3.11/json/decoder.py";
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t start = scene_stack(scene, 0x1000, 0);
	scene->stack = python_line(scene, python_line(scene, start, "/src/shop.py", "<module>", 9), decoder,
				   "JSONDecoder.decode", 353);
	scene_alloc(scene, thread, 1000, 0x7f0000000010, 4000);
	scene->stack = python_line(scene, start, "/src/decoder.py", "JSONDecoder.decode", 7);
	scene_alloc(scene, thread, 2000, 0x7f0000010010, 2000);
	scene->stack = python_line(scene, python_line(scene, start, "<frozen runpy>", "_run_code", 88), decoder,
				   "JSONDecoder.decode", 353);
	scene_alloc(scene, thread, 3000, 0x7f0000020010, 1000);
}

/* A line that needed two arenas, another one that needed a third, and one with a large object. */
static void python_arenas(struct scene *scene)
{
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t start = scene_stack(scene, 0x1000, 0);
	scene->function = FUNCTION_ARENA_ALLOC;
	for (uint32_t i = 0; i < 3; i++) {
		scene->stack = python_line(scene, start, "/src/shop.py", i < 2 ? "Shop.load" : "Shop.sort", 6 + i / 2);
		scene_alloc(scene, thread, 1000 * (int64_t)(i + 1), 0x7f0000000000 + (uint64_t)i * 0x100000, 0x100000);
	}
	scene->function = FUNCTION_COUNT;
	scene->stack = python_line(scene, start, "/src/shop.py", "Shop.read", 9);
	scene_alloc(scene, thread, 5000, 0x7f0000400010, 1500000);
}

/* A Python program that was attached to: of its memory one new arena is known. */
static void python_attached(struct scene *scene)
{
	enum { MIB = 1 << 20 };
	const struct trace_resident_part parts[] = {
		{TRACE_MAPPING_ANONYMOUS, 0x7e0000000000, 0x7e0004000000, 64 * MIB, ""},
		{TRACE_MAPPING_ANONYMOUS, 0x7f0000000000, 0x7f0000100000, MIB, ""}};
	const struct trace_resident row = {
		.time_ns = 5000, .bytes = {[TRACE_MAPPING_ANONYMOUS] = 65 * MIB}, .mapping_count = 2, .spread = 2};
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t interpreter = writer_add_image(scene->writer, &(struct trace_image){.path = "/usr/bin/python3.11"});
	writer_add_mapping(scene->writer, &(struct trace_mapping){.process = process,
								  .image = interpreter,
								  .base = 0x600000,
								  .end = 0x700000,
								  .unload_ns = INT64_MAX});
	writer_add_option(scene->writer, "attached", "yes");
	scene->function = FUNCTION_ARENA_ALLOC;
	scene->stack = python_line(scene, scene_stack(scene, 0x1000, 0), "/src/shop.py", "Shop.load", 6);
	scene_alloc(scene, thread, 1000, 0x7f0000000000, MIB);
	writer_add_sample(scene->writer, &(struct trace_sample){process, 5000, 65 * MIB});
	writer_add_resident(scene->writer, &row, parts);
}

/* Arenas that are needed all the time, now by this function, now by that one, and never returned. */
static void python_spread(struct scene *scene)
{
	enum { FUNCTIONS = 14, ARENAS = 96 };
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t start = scene_stack(scene, 0x1000, 0);
	scene->function = FUNCTION_ARENA_ALLOC;
	for (uint32_t i = 0; i < ARENAS; i++) {
		char name[] = "Shop.abcdefghijklmn";
		name[6 + i * 5 % FUNCTIONS] = 0;
		scene->stack = python_line(scene, start, "/src/shop.py", name, 1);
		scene_alloc(scene, thread, 200000000 * (int64_t)(i + 1), 0x7f0000000000 + (uint64_t)i * 0x100000,
			    0x100000);
	}
}

/* Two arenas that one line needed, most of whose objects another one made. */
static void python_objects(struct scene *scene)
{
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t start = scene_stack(scene, 0x1000, 0),
		 load = python_line(scene, start, "/src/shop.py", "Shop.load", 6),
		 keep = python_line(scene, start, "/src/shop.py", "Shop.keep", 9);
	writer_add_entry(scene->writer, &(struct trace_entry){scene->library, FUNCTION_HEAP_ALLOC, "_PyObject_Malloc"});
	uint32_t objects = writer_add_heap(
			 scene->writer,
			 &(struct trace_heap){.process = process, .handle = 0x5000, .name = "python objects"}),
		 heap = scene->heap;
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t arena = 0x7f0000000000 + (uint64_t)i * 0x100000;
		scene->heap = heap;
		scene->function = FUNCTION_ARENA_ALLOC;
		scene->stack = load;
		scene_alloc(scene, thread, 1000000 * (int64_t)(i + 1), arena, 0x100000);
		scene->heap = objects;
		scene->function = FUNCTION_HEAP_ALLOC;
		for (uint32_t k = 0; k < 2000; k++) {
			scene->stack = k % 10 ? keep : load;
			scene_alloc(scene, thread, 1000000 * (int64_t)(i + 1) + 100 * (k + 1), arena + k * 512, 512);
		}
	}
	scene->heap = heap;
	scene->function = FUNCTION_COUNT;
	scene_alloc(scene, scene_thread(scene, scene_process(scene, 200, process, 0), 200), 1000, 0x7e0000000010, 100);
}

/* A function that a runtime compiled. */
static uint32_t compiled(struct scene *scene, uint32_t stack, const char *function)
{
	uint32_t frame = writer_intern_frame(scene->writer, TRACE_NONE, (uint64_t)strlen(function) << 12);
	writer_name_frame(scene->writer, frame, &(struct trace_function){function, "", NULL, 0, false}, 1);
	return writer_intern_node(scene->writer, stack, frame);
}

/* A method of a JVM that is first interpreted, as its callers are, and then compiled. */
static void interpreted(struct scene *scene)
{
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t runtime = writer_add_image(scene->writer, &(struct trace_image){.path = "/usr/lib/jvm/libjvm.so"});
	uint32_t start = writer_intern_node(scene->writer, 0, writer_intern_frame(scene->writer, runtime, 0x1000)),
		 malloc = writer_intern_frame(scene->writer, runtime, 0x2000),
		 main = compiled(scene, compiled(scene, start, "StubRoutines (1)"), "Interpreter"),
		 called = compiled(scene, compiled(scene, main, "Interpreter"), "Interpreter"),
		 taken = compiled(scene, called, "jdk.internal.misc.Unsafe.allocateMemory0(long)"),
		 load = compiled(scene, main, "Shop.load(int)"),
		 loaded = compiled(scene, compiled(scene, load, "Interpreter"),
				   "jdk.internal.misc.Unsafe.allocateMemory0(long)");
	const uint32_t stacks[] = {start, called, taken, load, loaded};
	for (int i = 0; i < 5; i++) {
		scene->stack = writer_intern_node(scene->writer, stacks[i], malloc);
		scene_alloc(scene, thread, 1000 + i, 0x7f0000000000 + (uint64_t)i * 0x10000, 1000 << i);
	}
}

/* A library's function below a native method, called by the JVM and by `caller`. */
static uint32_t library_call(struct scene *scene, uint32_t caller, const char *method)
{
	uint32_t zip = writer_add_image(scene->writer, &(struct trace_image){.path = "/usr/lib/jvm/libzip.so"}),
		 library = writer_add_image(scene->writer, &(struct trace_image){.path = "/usr/lib/libz.so.1.2.13"}),
		 native = writer_intern_frame(scene->writer, zip, (uint64_t)strlen(method) << 12),
		 called = writer_intern_frame(scene->writer, library, 0x3000);
	writer_name_frame_late(scene->writer, native, &(struct trace_function){method, "", "", 0, false}, 1);
	writer_name_frame_late(scene->writer, called, &(struct trace_function){"deflateInit2_", "", "", 0, false}, 1);
	return writer_intern_node(scene->writer, writer_intern_node(scene->writer, caller, native), called);
}

/* A library's code below native methods: of Java's own packages with a user's method around, with one that calls back,
   with an interpreted one, and with none; of a program; and of the loader of libraries. */
static void java_natives(struct scene *scene)
{
	static const char own[] = "Java_java_util_zip_Deflater_init";
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t start = compiled(scene, 0, "StubRoutines (1)"),
		 load = compiled(scene, compiled(scene, start, "Shop.main(java.lang.String[])"), "Shop.load(int)"),
		 init = compiled(scene, load, "java.util.zip.Deflater.init(int, int, boolean)"),
		 code = compiled(scene, library_call(scene, init, own), "Shop.taken(int)"),
		 loader = compiled(scene, load, "jdk.internal.loader.NativeLibraries.load(java.lang.String)");
	const uint32_t stacks[] = {
		library_call(scene, init, own),
		library_call(scene, compiled(scene, load, "Interpreter"), own),
		library_call(scene, compiled(scene, start, "Interpreter"), own),
		library_call(scene, compiled(scene, start, "java.util.zip.Deflater.init(int, int, boolean)"), own),
		library_call(scene, load, "Java_Shop_pack"),
		library_call(scene, loader, "Java_jdk_internal_loader_NativeLibraries_load"),
		library_call(scene, code, "Java_com_example_Shop_pack"),
	};
	for (int i = 0; i < 7; i++) {
		scene->stack = stacks[i];
		scene_alloc(scene, thread, 1000 + i, 0x7f0000000000 + (uint64_t)i * 0x10000, 1000 << i);
	}
}

/* The same where an agent has named what was put into methods: one method is inside of another. */
static void java_agent(struct scene *scene)
{
	const struct trace_function functions[] = {{"Shop.take(int)", "", "", 0, true},
						   {"Shop.serve(int)", "", "", 0, false}};
	uint32_t frame = writer_intern_frame(scene->writer, TRACE_NONE, TRACE_FRAME_NAMED | 1), thread = 0;
	java_natives(scene);
	writer_name_frame(scene->writer, frame, functions, 2);
	scene->stack = writer_intern_node(scene->writer, 0, frame);
	scene->stack = compiled(scene, scene->stack, "java.util.zip.Deflater.init(int, int, boolean)");
	scene->stack = library_call(scene, scene->stack, "Java_java_util_zip_Deflater_init");
	scene_alloc(scene, thread, 2000, 0x7f0000100000, 10000);
}

/* A block of a native function that code of a runtime calls, directly or by the glue of interpreted code. */
static void native_alloc(struct scene *scene, uint32_t thread, int64_t now, uint32_t caller, bool has_glue)
{
	static uint64_t address = 0x7f0000000000;
	uint32_t runtime = writer_add_image(scene->writer, &(struct trace_image){.path = "/usr/bin/node"});
	uint32_t glue = writer_intern_frame(scene->writer, runtime, 0x4000),
		 create = writer_intern_frame(scene->writer, runtime, 0x3000),
		 malloc = writer_intern_frame(scene->writer, runtime, 0x2000),
		 outer = has_glue ? writer_intern_node(scene->writer, caller, glue)
				  : compiled(scene, caller, "Builtin:CallApi");
	scene->stack = writer_intern_node(scene->writer, writer_intern_node(scene->writer, outer, create), malloc);
	scene_alloc(scene, thread, now, address, 1000);
	address += 4096;
}

/* A function whose blocks are those of its caller later on, since a compiler has put it there, and then of the caller's
   caller; and one that goes on to make blocks, as its caller does. */
static void put_in(struct scene *scene)
{
	enum { STEP_NS = 20000000, STEPS = 1500, FIRST = 250, SECOND = 750 };
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t start = compiled(scene, 0, "main"), serve = compiled(scene, start, "serve"),
		 remember = compiled(scene, serve, "remember"), picture = compiled(scene, remember, "take.picture"),
		 poll = compiled(scene, start, "poll.all.of.it"), load = compiled(scene, poll, "load.this.one");
	for (int i = 0; i < STEPS; i++) {
		int64_t now = 10000 + (int64_t)i * STEP_NS;
		native_alloc(scene, thread, now, i < FIRST ? picture : i < SECOND ? serve : start, i < FIRST);
		if (i % 4 == 0) {
			native_alloc(scene, thread, now + 2000, poll, false);
			native_alloc(scene, thread, now + 4000, load, true);
		}
	}
}

/* A JVM that was attached to: most bytes are of code without a name, and much else is not known, too. */
static void nameless(struct scene *scene)
{
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t runtime = writer_add_image(scene->writer, &(struct trace_image){.path = "/usr/lib/jvm/libjvm.so"}),
		 start = writer_intern_node(scene->writer, 0, writer_intern_frame(scene->writer, runtime, 0x1000)),
		 code = writer_intern_node(scene->writer, start,
					   writer_intern_frame(scene->writer, TRACE_NONE, 0x7f0080001000));
	writer_add_option(scene->writer, "attached", "100");
	scene_earlier(scene, thread, 100, 0x7e0000000010, 70);
	scene_free(scene, thread, 500, 0x7d0000000010);
	scene->stack = writer_intern_node(scene->writer, code, writer_intern_frame(scene->writer, runtime, 0x2000));
	scene_alloc(scene, thread, 1000, 0x7f0000000010, 9000);
	scene->stack = scene_stack(scene, 0x1000, 0x2000, 0);
	scene_alloc(scene, thread, 2000, 0x7f0000010010, 1000);
	scene_alloc(scene, thread, 3000, 0x7f0000010010, 1000);
}

/* An interpreter that the recorder left alone. */
static void unknown_python(struct scene *scene)
{
	uint32_t process = scene_process(scene, 100, TRACE_NONE, 0), thread = scene_thread(scene, process, 100);
	uint32_t interpreter =
		writer_add_image(scene->writer, &(struct trace_image){.path = "/lib/libpython3.14t.so.1"});
	scene->stack = writer_intern_node(scene->writer, scene_stack(scene, 0x1000, 0),
					  writer_intern_frame(scene->writer, interpreter, 0x2000));
	scene_alloc(scene, thread, 1000, 0x7f0000100010, 100);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*make)(struct scene *);
	} scenes[] = {{"plain", plain},
		      {"forks", forks},
		      {"losses", losses},
		      {"earlier", earlier},
		      {"untraced", untraced},
		      {"circular", circular},
		      {"growing", growing},
		      {"cleaned", cleaned},
		      {"idle", idle},
		      {"growths", growths},
		      {"limited", limited},
		      {"exited", exited},
		      {"resident", resident},
		      {"ended", ended},
		      {"actions", actions},
		      {"sampled", sampled},
		      {"together", together},
		      {"huge", huge},
		      {"python", python},
		      {"unknown_python", unknown_python},
		      {"turns", turns},
		      {"interpreted", interpreted},
		      {"java_natives", java_natives},
		      {"java_agent", java_agent},
		      {"put_in", put_in},
		      {"nameless", nameless},
		      {"python_extensions", python_extensions},
		      {"python_library", python_library},
		      {"python_spread", python_spread},
		      {"python_objects", python_objects},
		      {"python_attached", python_attached},
		      {"python_arenas", python_arenas}};
	static const struct writer_options round = {
		.mode = WRITER_CIRCULAR, .max_file_bytes = 16 << 10, .segment_bytes = 2 << 10};
	struct scene scene;
	if (argc < 3) {
		fputs("usage: make_trace "
		      "plain|forks|together|losses|earlier|untraced|circular|resident|random|nested|growing|cleaned|idle|growths|"
		      "turns|interpreted|java_natives|java_agent|put_in|nameless|"
		      "limited|exited|ended|"
		      "actions|sampled|huge|python|python_extensions|python_library|python_spread|python_objects|"
		      "python_arenas|python_attached|"
		      "unknown_python "
		      "FILE [SEED "
		      "[CALLS]]\n",
		      stderr);
		return 2;
	}
	scene_open_as(&scene, argv[2], strcmp(argv[1], "circular") ? NULL : &round);
	for (unsigned i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
		if (!strcmp(argv[1], scenes[i].name))
			scenes[i].make(&scene);
	uint32_t seed = argc > 3 ? (uint32_t)atoi(argv[3]) : 1;
	if (!strcmp(argv[1], "random"))
		random_calls(&scene, seed, argc > 4 ? atoi(argv[4]) : 40000);
	if (!strcmp(argv[1], "nested"))
		nested_calls(&scene, seed, argc > 4 ? atoi(argv[4]) : 1000);
	scene_close(&scene);
	return 0;
}
