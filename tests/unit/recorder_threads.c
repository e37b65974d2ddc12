/* SPDX-License-Identifier: MIT */
/*
 * The recorder's code in threads of this program, and the logger's drain in another, over one region. Each call of a
 * thread has to arrive, once. In a build with ThreadSanitizer no word that two threads share may be accessed without an
 * order (src/region/atomic.h).
 *
 * The allocator beneath gives addresses that name their thread and call, and no memory: nothing reads a block.
 */
#include "recorder/hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/clock.h"
#include "region/region.h"
#include "rounds.h"
#include "session/drain/drain.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum {
	THREADS = 4,
	ENTRY_MALLOC = 0,
	ENTRY_FREE,
	DEPTH_MAX = 12,
	HANDLE = 0x400000,
	CALL_SHIFT = 4,
	THREAD_SHIFT = 40
};

HOOK hook_malloc(PARAMETERS);
HOOK hook_free(PARAMETERS);

struct worker {
	pthread_t thread;
	uint32_t number;
	uint64_t calls;
};

static struct scene {
	char region_path[64], trace_path[64];
	struct region region;
	struct recorder *recorder;
	struct hook_context allocate, give_back;
	struct writer *writer;
	struct drain *drain;
	struct drain_region *drained;
	uint32_t working; /* threads that have not ended */
	uint32_t generation;
	struct diag diag;
} scene;

/* It belongs to the linker script: no frame of these tests is the recorder's own. */
struct unwind_tables frames_tables(void)
{
	return (struct unwind_tables){0, 0, 0, 0};
}

/* Of the blocks of this thread. */
static __thread uint64_t base;

/* The size of a block is the number of its call, from 1 on. */
static uint64_t no_allocator(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	(void)b, (void)c, (void)d;
	return base | a << CALL_SHIFT;
}

static __attribute__((noinline)) uint64_t call_from(uint32_t depth, uint64_t size)
{
	if (depth > 0) {
		uint64_t result = call_from(depth - 1, size);
		__asm__ volatile("" : "+r"(result));
		return result;
	}
	uint64_t block = hook_malloc(size, 0, 0, 0, &scene.allocate);
	return hook_free(block, 0, 0, 0, &scene.give_back);
}

static void *work(void *cookie)
{
	const struct worker *worker = cookie;
	base = (uint64_t)(worker->number + 1) << THREAD_SHIFT;
	for (uint64_t i = 0; i < worker->calls; i++)
		call_from((uint32_t)(i * 7 % DEPTH_MAX), i + 1);
	__atomic_fetch_sub(&scene.working, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- the region and the recorder ---- */

static int image_add(struct dl_phdr_info *info, size_t size, void *cookie)
{
	struct recorder *recorder = cookie;
	struct region_image row = {.base = UINT64_MAX};
	struct region_file file = {0};
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uint64_t low = info->dlpi_addr + header->p_vaddr, high = low + header->p_memsz;
		if (header->p_type == PT_LOAD && low < row.base)
			row.base = low;
		if (header->p_type == PT_LOAD && high > row.end)
			row.end = high;
		if (header->p_type == PT_GNU_EH_FRAME) {
			row.eh_frame_header = low;
			row.eh_frame_header_bytes = header->p_memsz;
		}
	}
	if (row.base == UINT64_MAX)
		return 0;
	snprintf(file.path, sizeof(file.path), "%s", info->dlpi_name[0] ? info->dlpi_name : "/bin/program");
	const struct region_image *added = region_image(&scene.region, region_add_image(&scene.region, &row, &file));
	recorder->image[recorder->image_count++] = (struct recorder_image){
		row.base, row.end, row.eh_frame_header, row.eh_frame_header_bytes, added->number, added->file};
	return 0;
}

static void *memory_new(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(memory != MAP_FAILED);
	return memory;
}

static void entry_add(const char *name, enum heap_function function)
{
	struct region_entry entry = {.address = HANDLE, .function = (uint8_t)function};
	snprintf(entry.name, sizeof(entry.name), "%s", name);
	region_add_entry(&scene.region, &entry);
}

static struct hook_context context_of(uint8_t entry)
{
	return (struct hook_context){.recorder = scene.recorder,
				     .original = (uint64_t)no_allocator,
				     .allocator_base = HANDLE,
				     .entry = entry,
				     .chunk = CHUNK_NONE,
				     .call_entry = entry + 1u,
				     .heap_key = HANDLE | (uint64_t)HEAP_ALLOCATOR << RECORDER_HEAP_KEY_KIND};
}

/* Where the C library keeps a thread's id: by it the recorder knows a new thread from a dead one that had its
   memory. */
static uint32_t tid_offset_find(void)
{
	enum { CONTROL_BLOCK_BYTES = 0x800 };
	for (uint32_t at = sizeof(uint32_t); at < CONTROL_BLOCK_BYTES; at += sizeof(uint32_t))
		if (*(const uint32_t *)(cpu_thread_pointer() + at) == (uint32_t)gettid())
			return at;
	return 0;
}

static void recorder_begin(void)
{
	struct recorder *recorder = scene.recorder = memory_new(sizeof(struct recorder));
	recorder->region = scene.region.header;
	recorder->limits = scene.region.limits;
	recorder->fork_wiped = memory_new(sizeof(struct fork_wiped));
	recorder->fork_wiped->process = recorder->fork_wiped->is_alive = 1;
	recorder->fork_wiped->pid = (uint32_t)getpid();
	recorder->options_mask = UINT32_MAX;
	recorder->tid_offset = tid_offset_find();
	assert_true(recorder->tid_offset > 0);
	/* Nobody waits in vain, however busy the machine is. */
	recorder->ticks_per_ms = 100000000;
	recorder->wait_limit_ms = 3600 * 1000;
	dl_iterate_phdr(image_add, recorder);
	scene.allocate = context_of(ENTRY_MALLOC);
	scene.give_back = context_of(ENTRY_FREE);
}

static void scene_begin(uint32_t options, uint32_t buffers)
{
	const struct region_config config = {.buffer_size = 8192,
					     .buffer_min = buffers,
					     .buffer_max = buffers,
					     .slot_max = 64,
					     .pc_max = 65536,
					     .options = OPTION_ENABLED | options};
	const struct writer_options writing = {0};
	memset(&scene, 0, sizeof(scene));
	snprintf(scene.region_path, sizeof(scene.region_path), "/dev/shm/xheap-test-threads-%d", (int)getpid());
	snprintf(scene.trace_path, sizeof(scene.trace_path), "/dev/shm/xheap-test-threads-%d.xht", (int)getpid());
	unlink(scene.region_path);
	unlink(scene.trace_path);
	assert_int_equal(
		region_create(&scene.region, AT_FDCWD, scene.region_path, scene.region_path, &config, &scene.diag), 0);
	entry_add("malloc", FUNCTION_MALLOC);
	entry_add("free", FUNCTION_FREE);
	recorder_begin();
	*region_process(&scene.region, 0) = (struct region_process){.state = PROCESS_LIVE,
								    .pid = (uint32_t)getpid(),
								    .parent = REGION_NONE,
								    .start_ticks = clock_ticks_of(false)};
	__atomic_store_n(&scene.region.header->state, REGION_LIVE, __ATOMIC_RELEASE);
	const struct writer_clock clock = {
		.name = "tsc", .start_ticks = region_process(&scene.region, 0)->start_ticks, .mult = 1, .shift = 0};
	const struct drain_image image = {.pid = (uint32_t)getpid(),
					  .parent = TRACE_NONE,
					  .image = "/bin/program",
					  .command = "program",
					  .start_ticks = clock.start_ticks};
	assert_int_equal(writer_open(&scene.writer, scene.trace_path, &writing, &scene.diag), 0);
	writer_set_clock(scene.writer, &clock);
	scene.drain = drain_new(scene.writer);
	scene.drained = drain_add(scene.drain, &scene.region, &image);
}

/* ---- the logger ---- */

static void thread_note(void *cookie, const struct drain_thread *thread)
{
	*(uint64_t *)cookie += thread->events;
}

/* Do the logger's work until all threads have ended. */
static void log_until_done(void)
{
	struct drain_totals totals;
	uint64_t events = 0;
	int error = 0;
	for (uint32_t round = 0; __atomic_load_n(&scene.working, __ATOMIC_ACQUIRE) > 0; round++) {
		__atomic_fetch_add(&scene.region.header->heartbeat, 1, __ATOMIC_RELAXED);
		drain_poll(scene.drained, round % 8 == 0, &error, &scene.diag);
		region_grow(&scene.region);
		drain_region_totals(scene.drained, &totals);
		drain_each_thread(scene.drained, scene.recorder->ticks_per_ms, thread_note, &events);
		sched_yield();
	}
	assert_int_equal(error, 0);
}

/* So many threads that make so many calls each, and the logger beside them. */
static void workers_run(struct worker worker[THREADS], uint64_t calls)
{
	__atomic_store_n(&scene.working, THREADS, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < THREADS; i++) {
		worker[i] = (struct worker){.number = scene.generation * THREADS + i, .calls = calls};
		assert_int_equal(pthread_create(&worker[i].thread, NULL, work, &worker[i]), 0);
	}
	log_until_done();
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(worker[i].thread, NULL);
	scene.generation++;
}

/* End the process, and read the trace: *totals, and how often each block came and went. The caller frees `times`. */
static uint8_t *scene_end(struct drain_totals *totals, uint64_t calls, uint64_t *events)
{
	struct trace_statistics statistics = {0};
	struct trace_block block;
	struct trace *trace;
	int error = 0;
	uint8_t *times = calloc(scene.generation * THREADS * calls, 1);
	drain_end_process(scene.drained, 0, TRACE_END_EXIT, 0, 0);
	drain_remove(scene.drained, &error, &scene.diag);
	drain_totals(scene.drain, totals);
	drain_free(scene.drain);
	assert_int_equal(error, 0);
	assert_int_equal(writer_close(scene.writer, &statistics, &scene.diag), 0);
	assert_int_equal(trace_open(&trace, scene.trace_path, &scene.diag), 0);
	struct trace_cursor *cursor = trace_cursor_new(trace);
	for (uint32_t i = 0; i < trace_block_count(trace); i++) {
		assert_int_equal(trace_cursor_read(cursor, i, &block, &scene.diag), 0);
		for (uint32_t k = 0; k < block.count; k++) {
			uint64_t worker = (block.address[k] >> THREAD_SHIFT) - 1,
				 call = ((block.address[k] & ((1ull << THREAD_SHIFT) - 1)) >> CALL_SHIFT) - 1;
			assert_true(worker < scene.generation * THREADS && call < calls);
			assert_true(block.kind[k] == EVENT_ALLOC || block.kind[k] == EVENT_FREE);
			if (block.kind[k] == EVENT_ALLOC)
				assert_int_equal(block.size[k], call + 1);
			/* 1: an Alloc, 16: a Free. */
			times[worker * calls + call] += block.kind[k] == EVENT_ALLOC ? 1 : 16;
		}
		*events += block.count;
	}
	trace_cursor_free(cursor);
	trace_close(trace);
	assert_int_equal(scene.region.header->untraced_calls, 0);
	for (struct recorder_pool *pool = scene.recorder->pool, *next; pool; pool = next) {
		next = pool->next;
		munmap(pool, pool->bytes);
	}
	munmap(scene.recorder->fork_wiped, sizeof(struct fork_wiped));
	munmap(scene.recorder, sizeof(struct recorder));
	region_close(&scene.region);
	unlink(scene.region_path);
	unlink(scene.trace_path);
	return times;
}

/* ---- tests ---- */

/* Threads wait for room: nothing is lost. Threads of the second round get the stacks, and so the slots, of the
   first. */
static void each_call_arrives_once(void **state)
{
	struct worker worker[THREADS];
	struct drain_totals totals;
	const uint64_t calls = rounds(8000);
	uint64_t events = 0;
	(void)state;
	scene_begin(OPTION_WAIT | OPTION_DURATION | OPTION_STACK_ALLOC | OPTION_STACK_FREE, 8);
	for (int generation = 0; generation < 3; generation++) {
		workers_run(worker, calls);
		/* The logger finds the threads dead, or not before others have their slots. */
		for (uint32_t slot = 0; generation == 1 && slot < THREADS; slot += 2)
			drain_end_thread(scene.drained, slot);
	}
	uint8_t *times = scene_end(&totals, calls, &events);
	assert_int_equal(totals.lost, 0);
	assert_int_equal(totals.damaged_buffers, 0);
	assert_int_equal(events, 2 * 3 * THREADS * calls);
	assert_int_equal(totals.events, events);
	for (uint64_t i = 0; i < 3 * THREADS * calls; i++)
		assert_int_equal(times[i], 17);
	free(times);
}

/* Threads go on where there is no room: what did not arrive is counted, to the call. */
static void each_call_arrives_or_is_counted(void **state)
{
	struct worker worker[THREADS];
	struct drain_totals totals;
	const uint64_t calls = rounds(30000);
	uint64_t events = 0;
	(void)state;
	scene_begin(OPTION_DURATION | OPTION_STACK_ALLOC, 4);
	workers_run(worker, calls);
	uint8_t *times = scene_end(&totals, calls, &events);
	assert_int_equal(totals.damaged_buffers, 0);
	assert_int_equal(totals.events, events);
	assert_int_equal(totals.events + totals.lost, 2 * THREADS * calls);
	for (uint64_t i = 0; i < THREADS * calls; i++)
		assert_true(!(times[i] & ~17));
	free(times);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_arrives_once),
		cmocka_unit_test(each_call_arrives_or_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
