/* SPDX-License-Identifier: MIT */
#include "session/drain/drain_state.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cmocka.h>

#include "producer.h"
#include "session/drain/drain_notes.h"
#include "session/drain/drain_valid.h"
#include "trace/code_rows.h"
#include "trace/gap_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/reopen.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum { FIRST_TID = 5000000 /* above any pid */ };
enum { ENTRY_MALLOC, ENTRY_FREE, ENTRY_REALLOC, ENTRY_CALLOC, ENTRY_POSIX_MEMALIGN, ENTRY_FREE_SIZED, PC = PC_FIRST };

/* A region, the drain of it and the trace that comes out. */
struct bed {
	char region_path[64], trace_path[64];
	struct region region;
	struct writer *writer;
	struct writer_clock clock;
	struct drain *drain;
	struct drain_region *drained;
	struct drain_image image;
	struct diag diag;
	int error;
	struct trace *trace;
	const struct trace_dictionary *dictionary;
};

/* An event as it is read back. */
struct seen {
	uint32_t process, thread, heap, stack;
	uint8_t kind, flags;
	uint16_t entry;
	int64_t time_ns, duration_ns;
	uint64_t address, previous, size, usable, argument, argument2;
	int32_t result;
};

static void region_rows(struct region *region)
{
	static const struct {
		uint8_t function;
		const char *name;
	} functions[] = {{FUNCTION_MALLOC, "malloc"},
			 {FUNCTION_FREE, "free"},
			 {FUNCTION_REALLOC, "realloc"},
			 {FUNCTION_CALLOC, "calloc"},
			 {FUNCTION_POSIX_MEMALIGN, "posix_memalign"},
			 {FUNCTION_FREE_SIZED, "free_sized"}};
	struct region_image image = {.base = 0x400000, .end = 0x500000, .bias = 0x3ff000};
	struct region_file file = {
		.first = 0x1000, .build_id_size = 4, .build_id = {1, 2, 3, 4}, .path = "/usr/lib/libc.so.6"};
	region_add_image(region, &image, &file);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		struct region_entry entry = {.address = 0x400100 + 16 * i, .function = functions[i].function};
		snprintf(entry.name, sizeof(entry.name), "%s", functions[i].name);
		region_add_entry(region, &entry);
	}
	*region_heap(region, 0) = (struct region_heap){.handle = 0x400000, .kind = HEAP_GLIBC_MAIN};
	*region_heap(region, 1) = (struct region_heap){.handle = 0x7f0000000000, .kind = HEAP_GLIBC_ARENA};
	region->header->heap_count = 2;
	for (uint32_t i = PC; i < PC + 1000; i++)
		region_pc(region, i)->key = region_pc_key(0, 0x1000 + 16 * (uint64_t)i);
	/* Code of no image. */
	region_pc(region, PC + 900)->key = region_pc_key_outside(0x401000 + 16 * (PC + 900));
	region_pc(region, PC + 901)->key = region_pc_key_outside(0x900000);
	region->header->pc_count = PC + 1000;
	*region_process(region, 0) = (struct region_process){
		.state = PROCESS_LIVE, .pid = (uint32_t)getpid(), .parent = UINT32_MAX, .start_ticks = __rdtsc()};
}

static void bed_begin(struct bed *bed)
{
	struct writer_options options = {0};
	bed->clock = (struct writer_clock){.name = "tsc", .start_ticks = __rdtsc(), .mult = 1, .shift = 0};
	assert_int_equal(writer_open(&bed->writer, bed->trace_path, &options, &bed->diag), 0);
	writer_set_clock(bed->writer, &bed->clock);
	bed->drain = drain_new(bed->writer);
	bed->image = (struct drain_image){.pid = (uint32_t)getpid(),
					  .parent = TRACE_NONE,
					  .image = "/bin/program",
					  .command = "program -x",
					  .start_ticks = region_process(&bed->region, 0)->start_ticks,
					  .first_tid = FIRST_TID,
					  .first_name = "a name of sixte"};
	bed->drained = drain_add(bed->drain, &bed->region, &bed->image);
	assert_non_null(bed->drained);
}

/* A region that no logger has yet. */
static int bed_make_region(void **state)
{
	static struct bed bed;
	struct region_config config = {.buffer_size = 8192,
				       .buffer_min = 32,
				       .buffer_max = 64,
				       .slot_max = 256,
				       .pc_max = 20000,
				       .options = OPTION_ENABLED | OPTION_WAIT};
	bed = (struct bed){.error = 0};
	snprintf(bed.region_path, sizeof(bed.region_path), "/dev/shm/xheap-test-drain-%d", (int)getpid());
	snprintf(bed.trace_path, sizeof(bed.trace_path), "/dev/shm/xheap-test-drain-%d.xht", (int)getpid());
	unlink(bed.region_path);
	unlink(bed.trace_path);
	if (region_create(&bed.region, AT_FDCWD, bed.region_path, bed.region_path, &config, &bed.diag) != 0)
		return -1;
	region_rows(&bed.region);
	*state = &bed;
	return 0;
}

static int bed_make(void **state)
{
	if (bed_make_region(state) != 0)
		return -1;
	bed_begin(*state);
	return 0;
}

static int bed_remove(void **state)
{
	struct bed *bed = *state;
	if (bed->trace)
		trace_close(bed->trace);
	bed->trace = NULL;
	region_close(&bed->region);
	unlink(bed->region_path);
	unlink(bed->trace_path);
	return 0;
}

static void bed_poll(struct bed *bed, bool flush)
{
	drain_poll(bed->drained, flush, &bed->error, &bed->diag);
	assert_int_equal(bed->error, 0);
	assert_true(drain_is_valid(bed->drain));
}

/* End the process, the region and the trace, and read it. */
static void bed_finish(struct bed *bed)
{
	struct trace_statistics statistics = {0};
	if (bed->drained)
		drain_remove(bed->drained, &bed->error, &bed->diag);
	drain_free(bed->drain);
	assert_int_equal(writer_close(bed->writer, &statistics, &bed->diag), 0);
	assert_int_equal(trace_open(&bed->trace, bed->trace_path, &bed->diag), 0);
	bed->dictionary = trace_dictionary(bed->trace);
	assert_int_equal(bed->error, 0);
}

static struct drain_totals bed_totals(struct bed *bed)
{
	struct drain_totals totals;
	drain_totals(bed->drain, &totals);
	return totals;
}

/* All events, block by block; *count of them. Owned by the caller. */
static struct seen *read_events(struct bed *bed, size_t *count)
{
	struct trace_cursor *cursor = trace_cursor_new(bed->trace);
	struct seen *all = NULL;
	*count = 0;
	for (uint32_t i = 0; i < trace_block_count(bed->trace); i++) {
		struct trace_block b;
		assert_int_equal(trace_cursor_read(cursor, i, &b, &bed->diag), 0);
		all = realloc(all, (*count + b.count) * sizeof(*all));
		for (uint32_t k = 0; k < b.count; k++)
			all[(*count)++] = (struct seen){b.process,        b.thread,      b.heap[k],      b.stack[k],
							b.kind[k],        b.flags[k],    b.entry[k],     b.time_ns[k],
							b.duration_ns[k], b.address[k],  b.previous[k],  b.size[k],
							b.usable[k],      b.argument[k], b.argument2[k], b.result[k]};
	}
	trace_cursor_free(cursor);
	return all;
}

static void assert_stack(const struct bed *bed, uint32_t node, const uint32_t *ids, uint32_t depth)
{
	while (depth-- > 0) {
		assert_int_not_equal(node, 0);
		const struct trace_frame *frame = &bed->dictionary->frames[bed->dictionary->nodes[node].frame];
		uint64_t pc = 0x401000 + 16 * (uint64_t)ids[depth];
		assert_int_equal(frame->offset, pc - 0x3ff000);
		assert_string_equal(bed->dictionary->images[frame->image].path, "/usr/lib/libc.so.6");
		node = bed->dictionary->nodes[node].parent;
	}
	assert_int_equal(node, 0);
}

static void every_number_of_an_event_arrives(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, (uint32_t)getpid());
	const uint32_t stack[] = {PC, PC + 1, PC + 2, PC + 3}, other[] = {PC, PC + 1, PC + 7};
	uint64_t t = __rdtsc();
	size_t count;

	struct produced alloc = {
		.entry = ENTRY_MALLOC, .ticks = t, .address = 0x1000, .size = 100, .usable = 104, .duration = 77};
	struct produced array = {.entry = ENTRY_CALLOC,
				 .flags = RECORD_ARGUMENT,
				 .ticks = t + 10,
				 .address = 0x2000,
				 .size = 200,
				 .argument = 50,
				 .duration = region_duration_encode(5000)};
	struct produced resize = {.entry = ENTRY_REALLOC,
				  .flags = RECORD_REALLOC,
				  .ticks = t + 30,
				  .address = 0x3000,
				  .previous = 0x1000,
				  .size = 300,
				  .usable = 300,
				  .heap = 1,
				  .duration = RECORD_NO_DURATION,
				  .exact = 12};
	struct produced aligned = {.entry = ENTRY_POSIX_MEMALIGN,
				   .flags = RECORD_ARGUMENT | RECORD_ARGUMENT2,
				   .ticks = t + 40,
				   .address = 0x4000,
				   .size = 5ull << 32,
				   .usable = (5ull << 32) + 4096,
				   .argument = 64,
				   .argument2 = 0x7ffc0000};
	struct produced failed = {
		.entry = ENTRY_MALLOC, .flags = RECORD_FAILED, .ticks = t + 50, .size = 1ull << 40, .error = 12};
	struct produced freed = {.entry = ENTRY_FREE_SIZED,
				 .flags = RECORD_FREE,
				 .ticks = t + 60,
				 .address = 0x2000,
				 .size = 200,
				 .duration = 3};
	struct produced bare = {
		.entry = ENTRY_FREE, .flags = RECORD_FREE | RECORD_NO_STACK, .ticks = t + 70, .address = 0x3000};
	assert_true(producer_event(&p, &alloc, stack, 4, 0));
	assert_true(producer_event(&p, &array, stack, 4, 4));
	assert_true(producer_event(&p, &resize, other, 3, 2));
	assert_true(producer_event(&p, &aligned, stack, 4, 2));
	assert_true(producer_event(&p, &failed, stack, 4, 4));
	assert_true(producer_event(&p, &freed, other, 3, 2));
	assert_true(producer_event(&p, &bare, NULL, 0, 0));
	freed.ticks = t + 80;
	assert_true(producer_event(&p, &freed, other, 3, 3));
	producer_finish(&p);
	bed_poll(bed, false);
	drain_end_process(bed->drained, 0, TRACE_END_EXIT, 3, t + 1000);
	assert_int_equal(bed_totals(bed).events, 8);
	bed_finish(bed);

	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, 8);
	int64_t start = (int64_t)(t - bed->clock.start_ticks);
	assert_int_equal(e[0].kind, EVENT_ALLOC);
	assert_int_equal(e[0].time_ns, start);
	assert_int_equal(e[0].duration_ns, 77);
	assert_int_equal(e[0].address, 0x1000);
	assert_int_equal(e[0].size, 100);
	assert_int_equal(e[0].usable, 104);
	assert_int_equal(e[0].flags, 0);
	assert_string_equal(bed->dictionary->entries[e[0].entry].name, "malloc");
	assert_string_equal(bed->dictionary->heaps[e[0].heap].name, "libc.so.6 main arena");
	assert_stack(bed, e[0].stack, stack, 4);
	assert_int_equal(e[1].argument, 50);
	assert_int_equal(e[1].usable, 0);
	assert_int_equal(e[1].duration_ns, region_duration_decode(region_duration_encode(5000)));
	assert_int_equal(e[1].stack, e[0].stack);
	assert_int_equal(e[2].kind, EVENT_REALLOC);
	assert_int_equal(e[2].previous, 0x1000);
	assert_int_equal(e[2].duration_ns, 12);
	assert_int_equal(e[2].flags, 0);
	assert_string_equal(bed->dictionary->heaps[e[2].heap].name, "libc.so.6 arena");
	assert_stack(bed, e[2].stack, other, 3);
	assert_int_equal(e[3].size, 5ull << 32);
	assert_int_equal(e[3].usable, (5ull << 32) + 4096);
	assert_int_equal(e[3].argument, 64);
	assert_int_equal(e[3].argument2, 0x7ffc0000);
	assert_int_equal(e[4].flags, EVENT_FAILED);
	assert_int_equal(e[4].result, 12);
	assert_int_equal(e[4].size, 1ull << 40);
	assert_int_equal(e[4].heap, TRACE_NONE);
	assert_int_equal(e[5].kind, EVENT_FREE);
	assert_int_equal(e[5].size, 200);
	assert_int_equal(e[6].flags, EVENT_NO_STACK);
	assert_int_equal(e[6].stack, 0);
	assert_stack(bed, e[7].stack, other, 3);
	assert_int_equal(bed->dictionary->process_count, 1);
	assert_int_equal(bed->dictionary->processes[0].end, TRACE_END_EXIT);
	assert_int_equal(bed->dictionary->processes[0].end_status, 3);
	assert_string_equal(bed->dictionary->processes[0].command, "program -x");
	assert_int_equal(bed->dictionary->thread_count, 1);
	assert_true(bed->dictionary->threads[0].name[0] != 0);
	assert_int_equal(bed->dictionary->threads[0].start_ns, start);
	assert_int_equal(bed->dictionary->threads[0].end_ns, start + 80);
	free(e);
}

static void the_outcome_tells_what_a_realloc_was(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 7);
	uint64_t t = __rdtsc();
	size_t count;
	struct produced event = {
		.entry = ENTRY_REALLOC, .flags = RECORD_REALLOC, .ticks = t, .address = 0x1000, .size = 10, .exact = 5};

	producer_event(&p, &event, NULL, 0, 0);
	event = (struct produced){
		.entry = ENTRY_REALLOC, .flags = RECORD_REALLOC, .ticks = t + 20, .previous = 0x1000, .exact = 6};
	producer_event(&p, &event, NULL, 0, 0);
	event.flags |= RECORD_FAILED;
	event.error = 12;
	event.size = 99;
	event.ticks = t + 40;
	producer_event(&p, &event, NULL, 0, 0);
	event.previous = 0;
	event.ticks = t + 60;
	producer_event(&p, &event, NULL, 0, 0);
	producer_finish(&p);
	bed_finish(bed);

	struct seen *e = read_events(bed, &count);
	int64_t start = (int64_t)(t - bed->clock.start_ticks);
	assert_int_equal(count, 4);
	assert_int_equal(e[0].kind, EVENT_ALLOC);
	assert_int_equal(e[0].time_ns, start);
	/* A Free's point is its entry. */
	assert_int_equal(e[1].kind, EVENT_FREE);
	assert_int_equal(e[1].address, 0x1000);
	assert_int_equal(e[1].previous, 0);
	assert_int_equal(e[1].time_ns, start + 20 - 6);
	assert_int_equal(e[1].duration_ns, 6);
	assert_int_equal(e[2].kind, EVENT_REALLOC);
	assert_int_equal(e[2].flags, EVENT_FAILED);
	assert_int_equal(e[2].previous, 0x1000);
	assert_true(e[2].heap != TRACE_NONE);
	assert_int_equal(e[3].kind, EVENT_REALLOC);
	assert_int_equal(e[3].flags, EVENT_FAILED);
	assert_int_equal(e[3].heap, TRACE_NONE);
	free(e);
}

static void frames_without_an_image_and_cut_stacks_are_told(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 7);
	const uint32_t stack[] = {PC_TRUNCATED, PC + 900, PC + 901, PC + 5};
	const uint32_t whole[] = {PC + 5}, unwindless[] = {PC_UNWINDLESS, PC + 5};
	struct produced event = {.entry = ENTRY_MALLOC, .ticks = __rdtsc(), .address = 0x1000, .size = 10};
	size_t count;

	producer_event(&p, &event, stack, 4, 0);
	producer_event(&p, &event, stack, 3, 3);
	producer_event(&p, &event, whole, 1, 0);
	producer_event(&p, &event, unwindless, 2, 0);
	producer_finish(&p);
	bed_poll(bed, true);
	struct stack_ends ends = bed_totals(bed).ends;
	assert_int_equal(ends.truncated, 2);
	assert_int_equal(ends.unwindless, 1);
	assert_int_equal(ends.whole, 1);
	bed_finish(bed);

	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, 4);
	const struct trace_dictionary *d = bed->dictionary;
	assert_int_equal(d->ends.truncated, 2);
	assert_int_equal(d->ends.unwindless, 1);
	assert_true(d->is_whole_known);
	assert_int_equal(d->ends.whole, 1);
	assert_int_equal(d->stack_ends[e[0].stack], TRACE_STACK_TRUNCATED);
	assert_int_equal(d->stack_ends[e[2].stack], TRACE_STACK_WHOLE);
	assert_int_equal(d->stack_ends[e[3].stack], TRACE_STACK_UNWINDLESS);
	uint32_t node = d->nodes[e[0].stack].parent;
	assert_int_equal(d->frames[d->nodes[node].frame].image, TRACE_NONE);
	assert_int_equal(d->frames[d->nodes[node].frame].offset, 0x900000);
	node = d->nodes[node].parent;
	assert_int_equal(d->frames[d->nodes[node].frame].image, TRACE_NONE);
	assert_int_equal(d->frames[d->nodes[node].frame].offset, 0x401000 + 16 * (PC + 900));
	node = d->nodes[node].parent;
	assert_int_equal(d->frames[d->nodes[node].frame].offset, TRACE_FRAME_TRUNCATED);
	assert_int_equal(e[0].flags, EVENT_TRUNCATED);
	assert_int_equal(e[1].flags, EVENT_TRUNCATED);
	assert_int_equal(e[2].flags, 0);
	assert_int_equal(e[3].flags, 0);
	assert_int_equal(d->frames[d->nodes[d->nodes[e[3].stack].parent].frame].offset, TRACE_FRAME_UNWINDLESS);
	free(e);
}

static void python_code_put(struct bed *bed, uint32_t place, uint64_t key, const char *file, const char *name)
{
	struct region_code *row = region_code(&bed->region, place);
	row->file_bytes = (uint16_t)strlen(file);
	row->name_bytes = (uint16_t)strlen(name);
	snprintf((char *)row + offsetof(struct region_code, text), 2 * sizeof(*row), "%s%s", file, name);
	row->key = key;
}

static void a_line_of_python_is_a_frame_with_a_name(void **state)
{
	enum { LOAD = 0, KEY = 3, DAMAGED = 6 };
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 7);
	const uint32_t stack[] = {PC + 5, PC + 902, PC + 903}, same[] = {PC + 5, PC + 902, PC + 902},
		       damaged[] = {PC + 5, PC + 904};
	struct produced event = {.entry = ENTRY_MALLOC, .ticks = __rdtsc(), .address = 0x1000, .size = 10};
	size_t count;

	python_code_put(bed, LOAD, UINT64_C(0x123456789abcdef0), "/app/shop.py",
			"Shop.load.<locals>.a_long_name_of_it");
	python_code_put(bed, KEY, UINT64_C(0x2345678900000000), "/app/shop.py", "key\n");
	*region_code(&bed->region, DAMAGED) =
		(struct region_code){.key = 7, .file_bytes = 0xffff, .name_bytes = 0xffff};
	region_pc(&bed->region, PC + 902)->key = region_pc_key_python(LOAD, 41);
	region_pc(&bed->region, PC + 903)->key = region_pc_key_python(KEY, 1 << 24);
	region_pc(&bed->region, PC + 904)->key = region_pc_key_python(DAMAGED, 1);
	producer_event(&p, &event, stack, 3, 0);
	producer_event(&p, &event, same, 3, 0);
	producer_finish(&p);
	p = producer_new(&bed->region, 1, 8);
	producer_event(&p, &event, damaged, 2, 0);
	producer_finish(&p);
	bed->region.header->python_failures = 1;
	bed_poll(bed, true);
	assert_int_equal(bed_totals(bed).pythonless, 1);
	bed_finish(bed);

	struct seen *e = read_events(bed, &count);
	const struct trace_dictionary *d = bed->dictionary;
	assert_int_equal(count, 2);
	uint32_t key = d->nodes[e[0].stack].frame, load = d->nodes[d->nodes[e[0].stack].parent].frame;
	assert_string_equal(d->images[d->frames[load].image].path, "/app/shop.py");
	assert_int_equal(d->frames[key].image, d->frames[load].image);
	assert_int_equal(d->frames[load].offset, UINT64_C(0x123456789a000000) + 41);
	assert_int_equal(d->frames[key].offset, UINT64_C(0x2345678900000000));
	assert_int_equal(d->nodes[e[1].stack].frame, load);
	assert_int_equal(d->symbol_count, 2);
	for (uint32_t i = 0; i < d->symbol_count; i++) {
		const struct trace_function *function = &d->functions[d->symbols[i].first];
		int is_load = d->symbols[i].frame == load;
		assert_int_equal(d->symbols[i].count, 1);
		assert_string_equal(function->function, is_load ? "Shop.load.<locals>.a_long_name_of_it" : "key?");
		assert_string_equal(function->file, "/app/shop.py");
		assert_int_equal(function->line, is_load ? 41 : 0);
	}
	assert_int_equal(d->named_count, 1);
	assert_int_equal(d->nameds[0].image, d->frames[load].image);
	assert_int_equal(d->nameds[0].by, TRACE_NAMED_BY_PYTHON);
	free(e);
}

static uint32_t in_state(const struct bed *bed, uint32_t state)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < bed->region.buffer_ready; i++)
		count += region_buffer(&bed->region, i)->state == state;
	return count;
}

static void deep_stacks_and_many_buffers_arrive_in_order(void **state)
{
	struct bed *bed = *state;
	enum { EVENTS = 20000, THREADS = 3 };
	struct producer p[THREADS];
	static uint32_t stack[600];
	uint64_t begin = __rdtsc();
	size_t count;
	for (uint32_t i = 0; i < THREADS; i++)
		p[i] = producer_new(&bed->region, 0, 100 + i);
	for (uint32_t d = 0; d < 600; d++)
		stack[d] = PC + d;
	for (uint32_t i = 0; i < EVENTS; i++) {
		/* Depths around the limits of the short form. */
		uint32_t depth = 1 + (i * 7919) % 600, common = (i * 31) % depth;
		if (i % 16)
			depth = common = 3;
		if (i % 16 == 0)
			common = 0;
		for (uint32_t d = common; d < depth; d++)
			stack[d] = PC + (d + i) % 800;
		struct produced event = {
			.entry = ENTRY_MALLOC, .ticks = begin + i, .address = 0x1000 + i, .size = depth};
		struct producer *producer = &p[i / 64 % THREADS];
		while (!producer_event(producer, &event, stack, depth, 0))
			bed_poll(bed, false);
		if (i % 500 == 0) {
			region_grow(&bed->region);
			bed_poll(bed, i % 1500 == 0);
		}
	}
	assert_true(in_state(bed, BUFFER_FREE) > 0);
	drain_end_process(bed->drained, 0, TRACE_END_SIGNAL, 9, __rdtsc());
	assert_int_equal(in_state(bed, BUFFER_FREE), bed->region.buffer_ready);
	for (uint32_t i = 0; i < 256 && i < bed->region.slot_ready; i++)
		assert_int_equal(region_slot(&bed->region, i)->state, SLOT_FREE);
	assert_int_equal(bed_totals(bed).damaged_buffers, 0);
	bed_finish(bed);

	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, EVENTS);
	int64_t last[THREADS] = {0};
	uint64_t sum = 0;
	for (size_t i = 0; i < count; i++) {
		assert_true(e[i].thread < THREADS);
		assert_true(e[i].time_ns >= last[e[i].thread]);
		last[e[i].thread] = e[i].time_ns;
		uint32_t depth = 0;
		for (uint32_t node = e[i].stack; node; node = bed->dictionary->nodes[node].parent)
			depth++;
		assert_int_equal(depth, e[i].size);
		sum += e[i].address - 0x1000;
	}
	assert_int_equal(sum, (uint64_t)EVENTS * (EVENTS - 1) / 2);
	assert_int_equal(bed->dictionary->thread_count, THREADS);
	free(e);
}

/* Events whose addresses are first, first + 1, ... */
static void produce_ahead(struct producer *p, uint64_t first, uint32_t count, uint64_t ticks)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t stack[] = {PC, PC + 1 + i % 7};
		struct produced event = {
			.entry = ENTRY_MALLOC, .ticks = __rdtsc() + ticks, .address = first + i, .size = 1};
		assert_true(producer_event(p, &event, stack, 2, i ? 1 : 0));
	}
}

static void produce(struct producer *p, uint64_t first, uint32_t count)
{
	produce_ahead(p, first, count, 0);
}

/* The context of the event with an address: each lasts for some events, and every third is none. */
static struct thread_context context_of(uint64_t address)
{
	const uint64_t number = address / 5 % 3 ? address / 5 + 1 : 0;
	return (struct thread_context){{number, number << 32}, ~number & -(uint64_t)(number != 0)};
}

/* As produce_ahead(), with contexts: a new buffer begins with none. */
static void produce_contexts(struct producer *p, uint64_t first, uint32_t count, uint64_t ticks,
			     struct thread_context *known)
{
	enum { EVENT_BYTES_MAX = 64 };
	static const struct thread_context none;
	for (uint64_t address = first; address < first + count; address++) {
		const struct thread_context context = context_of(address);
		if (p->buffer == REGION_NONE || p->limit - p->write < RECORD_CONTEXT_BYTES + EVENT_BYTES_MAX)
			assert_true(producer_next(p, __rdtsc() + ticks));
		if (p->write == p->start + RECORD_BEGIN_BYTES)
			*known = none;
		if (!thread_context_is_same(known, &context)) {
			record_put_context((uint64_t *)p->write, &context);
			p->write += RECORD_CONTEXT_BYTES;
			producer_commit(p);
			*known = context;
		}
		produce_ahead(p, address, 1, ticks);
	}
}

/* Also if a flush takes a part of a buffer, and leaves events behind it to the next one. */
static void contexts_stay_with_their_events(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 1000);
	struct thread_context known = {{0, 0}, 0};
	uint64_t first = 1;
	for (uint32_t round = 0; round < 20; round++) {
		produce_contexts(&p, first, 90, 0, &known);
		produce_contexts(&p, first + 90, 10, SLACK_TICKS / 2, &known);
		first += 100;
		bed_poll(bed, round % 3 == 0);
		while (__rdtsc() < p.ticks)
			;
	}
	/* Another thread has none of it. */
	producer_inherit(&p, 1001, __rdtsc());
	produce(&p, first, 10);
	drain_end_process(bed->drained, 0, TRACE_END_EXIT, 0, __rdtsc());
	bed_finish(bed);
	uint64_t address = 1;
	struct trace_cursor *cursor = trace_cursor_new(bed->trace);
	for (uint32_t i = 0; i < trace_block_count(bed->trace); i++) {
		struct trace_block block;
		assert_int_equal(trace_cursor_read(cursor, i, &block, &bed->diag), 0);
		for (uint32_t row = 0; row < block.count; row++, address++) {
			const struct thread_context none = {{0, 0}, 0},
						    wanted = address < first ? context_of(address) : none;
			const struct thread_context *found = trace_block_context(&block, row);
			assert_int_equal(block.address[row], address);
			assert_true(thread_context_is_same(found ? found : &none, &wanted));
		}
	}
	assert_int_equal(address, first + 10);
	trace_cursor_free(cursor);
}

static void a_slot_passed_on_with_its_buffer_has_all_its_threads(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 1000);
	size_t count;

	produce(&p, 1, 20);
	for (uint32_t i = 1; i < 50; i++) {
		producer_inherit(&p, 1000 + i, __rdtsc());
		produce(&p, 1 + i * 20, 20);
		if (i % 20 == 0)
			bed_poll(bed, true);
	}
	drain_end_process(bed->drained, 0, TRACE_END_EXIT, 0, __rdtsc());
	bed_finish(bed);
	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, 1000);
	assert_int_equal(bed->dictionary->thread_count, 50);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(bed->dictionary->threads[e[i].thread].tid, 1000 + (e[i].address - 1) / 20);
	free(e);
}

/* A flush takes the beginning of the second thread; its events come later, or have times behind the flush. */
static void a_thread_of_which_a_flush_takes_the_beginning_alone_is_one(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 1000), q = producer_new(&bed->region, 0, 2000);
	size_t count;

	produce(&p, 1, 20);
	producer_inherit(&p, 1001, __rdtsc());
	bed_poll(bed, true);
	produce(&p, 21, 20);
	bed_poll(bed, true);
	produce(&q, 41, 20);
	producer_inherit(&q, 2001, __rdtsc());
	produce_ahead(&q, 61, 40, SLACK_TICKS / 2);
	bed_poll(bed, true);
	while (__rdtsc() < q.ticks)
		;
	bed_poll(bed, true);
	drain_end_process(bed->drained, 0, TRACE_END_EXIT, 0, __rdtsc());
	bed_finish(bed);
	free(read_events(bed, &count));
	assert_int_equal(count, 100);
	assert_int_equal(bed->dictionary->thread_count, 4);
}

static void a_dead_threads_slot_is_drained_and_free(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 50), q;
	size_t count;

	produce(&p, 1, 10);
	/* Not the thread that was found dead: another has taken over. */
	drain_end_tid(bed->drained, p.slot, 49);
	assert_int_equal(region_slot(&bed->region, p.slot)->state, SLOT_LIVE);
	drain_end_tid(bed->drained, p.slot, 50);
	assert_int_equal(region_slot(&bed->region, p.slot)->state, SLOT_FREE);
	assert_int_equal(in_state(bed, BUFFER_FREE), bed->region.buffer_ready);
	q = producer_new(&bed->region, 0, 51);
	assert_int_equal(q.slot, p.slot);
	produce(&q, 11, 10);
	drain_end_thread(bed->drained, q.slot);
	bed_finish(bed);
	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, 20);
	assert_int_equal(bed->dictionary->thread_count, 2);
	assert_int_equal(e[19].address, 20);
	assert_int_equal(bed->dictionary->threads[e[19].thread].tid, 51);
	free(e);
}

/* This process has no thread of such a number: what is known of the first one is what the image began with. */
static void the_first_thread_has_a_name_after_its_end(void **state)
{
	struct bed *bed = *state;
	struct producer first = producer_new(&bed->region, 0, FIRST_TID), other = producer_new(&bed->region, 0, 50);
	size_t count;

	produce(&first, 1, 10);
	produce(&other, 11, 10);
	drain_end_process(bed->drained, 0, TRACE_END_EXIT, 0, __rdtsc());
	bed_finish(bed);
	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, 20);
	for (size_t i = 0; i < count; i++) {
		const struct trace_thread *thread = &bed->dictionary->threads[e[i].thread];
		assert_string_equal(thread->name, thread->tid == FIRST_TID ? "a name of sixte" : "");
	}
	free(e);
}

static void calls_of_signal_handlers_are_a_thread_of_their_own(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 60), side = producer_side(&p);
	size_t count;
	const uint32_t stack[] = {PC};
	struct produced event = {
		.entry = ENTRY_MALLOC, .flags = RECORD_IN_SIGNAL, .ticks = __rdtsc(), .address = 0x99, .size = 1};

	produce(&p, 1, 10);
	assert_true(producer_event(&side, &event, stack, 1, 0));
	produce(&p, 11, 10);
	drain_end_process(bed->drained, 0, TRACE_END_EXIT, 0, __rdtsc());
	bed_finish(bed);
	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, 21);
	assert_int_equal(bed->dictionary->thread_count, 2);
	unsigned signals = 0;
	for (size_t i = 0; i < count; i++) {
		const struct trace_thread *thread = &bed->dictionary->threads[e[i].thread];
		assert_int_equal(thread->tid, 60);
		assert_int_equal(strstr(thread->name, "(signal)") != NULL, (e[i].flags & EVENT_IN_SIGNAL) != 0);
		signals += (e[i].flags & EVENT_IN_SIGNAL) != 0;
	}
	assert_int_equal(signals, 1);
	free(e);
}

static void calls_that_never_returned_are_named(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 70), q = producer_new(&bed->region, 0, 71),
			r = producer_new(&bed->region, 0, 72), s = producer_new(&bed->region, 0, 73),
			u = producer_new(&bed->region, 0, 74), v = producer_new(&bed->region, 0, 75),
			w = producer_new(&bed->region, 0, 76), x = producer_new(&bed->region, 0, 77),
			y = producer_new(&bed->region, 0, 78), z = producer_new(&bed->region, 0, 79);
	size_t count;
	const uint32_t stack[] = {PC, PC + 1};

	/* In a free: its record lies behind what was committed. */
	produce(&p, 0x100, 5);
	struct produced freed = {.entry = ENTRY_FREE,
				 .flags = RECORD_FREE,
				 .ticks = __rdtsc(),
				 .address = 0x102,
				 .duration = RECORD_NO_DURATION};
	struct region_slot *slot = region_slot(&bed->region, p.slot);
	slot->pending = producer_write(&p, &freed, 0, NULL, 0);
	slot->call_entry = ENTRY_FREE + 1;
	slot->call_ticks = freed.ticks;
	/* In a malloc. */
	produce(&q, 0x200, 5);
	slot = region_slot(&bed->region, q.slot);
	slot->call_entry = ENTRY_MALLOC + 1;
	slot->call_ticks = __rdtsc();
	slot->call_subject = 4711;
	/* In the first call of all. */
	slot = region_slot(&bed->region, r.slot);
	slot->call_entry = ENTRY_CALLOC + 1;
	slot->call_ticks = __rdtsc();
	slot->call_subject = 4712;
	/* Dead after the commit, before the mark was taken away: the call is there already. */
	produce(&s, 0x300, 5);
	slot = region_slot(&bed->region, s.slot);
	slot->call_entry = ENTRY_MALLOC + 1;
	slot->call_ticks = s.ticks - 3;
	/* Likewise a free, with an old record behind it. */
	produce(&u, 0x400, 5);
	freed.ticks = u.ticks + 500;
	freed.address = 0x666;
	slot = region_slot(&bed->region, u.slot);
	slot->pending = producer_write(&u, &freed, 0, stack, 2);
	slot->call_entry = ENTRY_FREE + 1;
	slot->call_ticks = u.ticks + 200;
	/* In a free that ended before its record was written, and in one that found no buffer. */
	slot = region_slot(&bed->region, v.slot);
	slot->call_entry = ENTRY_FREE + 1;
	slot->call_ticks = __rdtsc();
	slot->call_subject = 0x777;
	slot = region_slot(&bed->region, w.slot);
	slot->call_entry = ENTRY_FREE + 1;
	slot->call_ticks = slot->gap_last_ticks = __rdtsc();
	slot->call_subject = 0x888;
	/* In reallocs: of bytes that are known, of too many, and by a recorder that told the size only. */
	const struct producer *resizing[] = {&x, &y, &z};
	for (unsigned i = 0; i < 3; i++) {
		slot = region_slot(&bed->region, resizing[i]->slot);
		slot->call_entry = ENTRY_REALLOC + 1;
		slot->call_ticks = __rdtsc();
		slot->call_subject = 0x999;
		slot->call_bytes = i == 0 ? 1 : i == 1 ? UINT32_MAX : 0;
	}

	drain_end_process(bed->drained, 0, TRACE_END_SIGNAL, 6, __rdtsc());
	assert_int_equal(bed_totals(bed).in_flight, 7);
	bed_finish(bed);
	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, 4 * 5 + 7);
	unsigned found = 0;
	for (size_t i = 0; i < count; i++) {
		assert_true(e[i].address != 0x666);
		if (!(e[i].flags & EVENT_IN_FLIGHT))
			continue;
		found++;
		uint32_t tid = bed->dictionary->threads[e[i].thread].tid;
		if (tid == 70) {
			assert_int_equal(e[i].kind, EVENT_FREE);
			assert_int_equal(e[i].address, 0x102);
		} else if (tid == 71) {
			assert_int_equal(e[i].kind, EVENT_ALLOC);
			assert_int_equal(e[i].size, 4711);
		} else if (tid == 75) {
			assert_int_equal(e[i].kind, EVENT_FREE);
			assert_int_equal(e[i].address, 0x777);
		} else if (tid >= 77) {
			assert_int_equal(e[i].kind, EVENT_REALLOC);
			assert_int_equal(e[i].previous, tid == 79 ? 0 : 0x999);
			assert_int_equal(e[i].size, tid == 77 ? 0 : tid == 78 ? UINT32_MAX - 1 : 0x999);
		} else {
			assert_int_equal(tid, 72);
			assert_string_equal(bed->dictionary->entries[e[i].entry].name, "calloc");
		}
	}
	assert_int_equal(found, 7);
	free(e);
}

static void forked_processes_have_parents_and_places_are_used_again(void **state)
{
	struct bed *bed = *state;
	enum { PROCESSES = 1300 };
	size_t count;
	for (uint32_t i = 0; i < PROCESSES; i++) {
		uint32_t index = 1;
		region_grow(&bed->region);
		while (index < bed->region.process_ready && region_process(&bed->region, index)->state != PROCESS_FREE)
			index++;
		assert_true(index < bed->region.process_ready);
		/* Late, but then: the child of one that has ended names it as its parent. */
		assert_int_equal(index, i < 512 ? 1 + i : index);
		*region_process(&bed->region, index) = (struct region_process){.state = PROCESS_LIVE,
									       .pid = 5000 + i,
									       .parent = index > 1 ? index - 1 : 0,
									       .start_ticks = __rdtsc()};
		struct producer p = producer_new(&bed->region, index, 5000 + i);
		produce(&p, 1 + i, 1);
		if (i % 3 == 0)
			bed_poll(bed, false);
		drain_end_process(bed->drained, index, TRACE_END_EXIT, (int32_t)i, __rdtsc());
		assert_int_equal(drain_process(bed->drained, index), 1 + i);
	}
	assert_int_equal(bed_totals(bed).processes, 1 + PROCESSES);
	bed_finish(bed);
	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, PROCESSES);
	assert_int_equal(bed->dictionary->process_count, 1 + PROCESSES);
	for (size_t i = 0; i < count; i++) {
		const struct trace_process *process = &bed->dictionary->processes[e[i].process];
		assert_int_equal(process->pid, 5000 + e[i].address - 1);
		if (i < 512)
			assert_int_equal(process->forked_from, e[i].process - 1);
		assert_int_equal(process->parent, process->forked_from);
		assert_int_equal(process->end_status, e[i].address - 1);
		assert_string_equal(process->image, "/bin/program");
		/* Its heap is its own, though it has its parent's place and address. */
		assert_int_equal(bed->dictionary->heaps[e[i].heap].process, e[i].process);
	}
	free(e);
}

static void counts_that_cannot_be_true_stay_out_of_the_sums(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 80), honest = producer_new(&bed->region, 0, 81);
	struct region_slot *slot = region_slot(&bed->region, p.slot), *other = region_slot(&bed->region, honest.slot);
	bool is_told = false;

	produce(&p, 1, 3);
	produce(&honest, 1, 3);
	slot->gap_first_ticks = slot->gap_last_ticks = other->gap_first_ticks = other->gap_last_ticks = __rdtsc();
	slot->gap_count[0] = UINT64_C(1) << 62;
	slot->wait_ticks = UINT64_MAX / 2;
	other->gap_count[0] = 5;
	other->waits = 2;
	bed->region.header->untraced_calls = UINT64_MAX - 1;
	bed_poll(bed, true);
	assert_int_equal(bed_totals(bed).lost, 5);
	assert_int_equal(bed_totals(bed).waits, 2);
	assert_int_equal(bed_totals(bed).wait_ticks, 0);
	assert_int_equal(bed_totals(bed).untraced_calls, 0);
	drain_end_process(bed->drained, 0, TRACE_END_EXIT, 0, __rdtsc());
	bed_finish(bed);
	assert_int_equal(bed->dictionary->gap_count, 1);
	for (uint32_t i = 0; i < bed->dictionary->option_count; i++)
		is_told |= !strcmp(bed->dictionary->options[i].name, TRACE_OPTION_DAMAGED);
	assert_true(is_told);
}

static void gaps_are_told_once_and_in_parts(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 80);
	struct region_slot *slot = region_slot(&bed->region, p.slot);
	uint64_t t = __rdtsc();

	produce(&p, 1, 3);
	slot->gap_first_ticks = t;
	slot->gap_last_ticks = t + 50;
	slot->gap_count[0] = 10;
	slot->gap_bytes[0] = 1000;
	slot->gap_count[2] = 4;
	bed_poll(bed, true);
	bed_poll(bed, true);
	assert_int_equal(slot->gap_first_ticks, 0);
	assert_int_equal(slot->taken_count[0], 10);
	slot->gap_first_ticks = t + 70;
	slot->gap_last_ticks = t + 90;
	slot->gap_count[1] = 1;
	slot->gap_stacks = 6;
	drain_end_process(bed->drained, 0, TRACE_END_EXIT, 0, __rdtsc());
	assert_int_equal(bed_totals(bed).lost, 15);
	bed_finish(bed);
	const struct trace_gap *gap = bed->dictionary->gaps;
	int64_t start = (int64_t)(t - bed->clock.start_ticks);
	assert_int_equal(bed->dictionary->gap_count, 2);
	assert_int_equal(gap[0].count[EVENT_ALLOC], 10);
	assert_int_equal(gap[0].bytes[EVENT_ALLOC], 1000);
	assert_int_equal(gap[0].count[EVENT_FREE], 4);
	assert_int_equal(gap[0].from_ns, start);
	assert_int_equal(gap[0].to_ns, start + 50);
	assert_int_equal(gap[1].count[EVENT_ALLOC], 0);
	assert_int_equal(gap[1].count[EVENT_REALLOC], 1);
	assert_int_equal(gap[1].stacks, 6);
	assert_int_equal(gap[1].from_ns, start + 70);
}

static void buffers_are_kept_until_their_events_are_written(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 90);

	produce(&p, 1, 1000);
	producer_finish(&p);
	uint32_t full = in_state(bed, BUFFER_FULL);
	assert_true(full >= 4 && full < 8);
	bed_poll(bed, false);
	assert_int_equal(in_state(bed, BUFFER_FULL), full);
	assert_int_equal(writer_event_count(bed->writer), 0);
	bed_poll(bed, true);
	assert_int_equal(in_state(bed, BUFFER_FULL), 0);
	assert_int_equal(writer_event_count(bed->writer), 1000);
	/* More than half of them held: written without being told to. */
	produce(&p, 1001, 5000);
	bed_poll(bed, false);
	assert_int_equal(writer_event_count(bed->writer) > 2000, 1);
	bed_finish(bed);
}

static void count_call(void *count)
{
	++*(uint32_t *)count;
}

/* A round may be long: whoever waits for the logger is to know after each buffer that it goes on. */
static void a_round_calls_back_after_each_buffer(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 90);
	uint32_t calls = 0;

	drain_while_taking(bed->drain, count_call, &calls);
	produce(&p, 1, 1000);
	producer_finish(&p);
	uint32_t full = in_state(bed, BUFFER_FULL);
	assert_true(full >= 4);
	bed_poll(bed, false);
	assert_int_equal(calls, full);
	bed_finish(bed);
	assert_int_equal(calls, full);
}

#define assert_noticed(field, wrong) \
	do { \
		__typeof__(field) kept_ = (field); \
		(field) = (__typeof__(field))(wrong); \
		assert_false(drain_is_valid(bed->drain)); \
		(field) = kept_; \
		assert_true(drain_is_valid(bed->drain)); \
	} while (0)

/* Owners of streams, lists of buffers that are held: one field is wrong for a moment. */
static void a_broken_drain_is_not_valid(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 90);
	produce(&p, 1, 1000);
	producer_finish(&p);
	bed_poll(bed, false);
	struct drain_region *region = bed->drained;
	struct stream *stream = &region->stream[0][p.slot];
	assert_true(region->held_count > 2 && stream->events->count > 0);
	uint32_t first = stream->held, second = region->next_held[first];
	assert_noticed(region->held_count, region->held_count + 1);
	assert_noticed(region->is_taken[second], 0);
	assert_noticed(region->next_held[second], first);
	assert_noticed(region->next_held[first], REGION_NONE);
	assert_noticed(region->written, second);
	assert_noticed(region->slot_count, region->shared->slot_ready + 1);
	assert_noticed(stream->key, stream->key ^ REGION_SIGNAL);
	assert_noticed(stream->sequence, stream->sequence + 1);
	assert_noticed(stream->completed_first, stream->completed_last + 1);
	assert_noticed(stream->owner.is_open, false);
	assert_noticed(stream->owner.id, TRACE_NONE);
	assert_noticed(stream->owner.first, 1);
	assert_noticed(stream->events->count, stream->events->capacity + 1);
	bed_finish(bed);
}

/* Every record that makes no sense ends its buffer, and the loss is told. */
static void damage_ends_a_buffer_and_is_counted(void **state)
{
	struct bed *bed = *state;
	static const struct {
		uint32_t at;
		uint64_t value;
		const char *what;
	} damage[] = {
		{24 + 0, 200, "function"},
		{24 + 0, ENTRY_MALLOC | (uint64_t)RECORD_FREE << 8, "kind"},
		{24 + 0, ENTRY_MALLOC | 3ull << 16, "popped"},
		{24 + 0, ENTRY_MALLOC | 200ull << 24 | 100ull << 32, "program counter"},
		{24 + 0, ENTRY_MALLOC | 255ull << 16, "popped"},
		{24 + 24, 0xf1 | 250 << 8, "program counter"},
		{24 + 0, 0xf7 | 1 << 8, "control"},
		{24 + 0, 0xf1 | 0 << 8, "control"},
		{24 + 0, 0xf0 | 2 << 8, "begin"},
		{24 + 0, 0xf2 | 3 << 8, "context"},
		{0, ENTRY_MALLOC, "no thread"},
		{8, 1, "time"},
		{8, UINT64_MAX, "time"},
		{16, 77ull << 32, "process"},
		{24 + 24, 5 | 6ull << 32, "program counter"},
		{24 + 24, 19999 | 6ull << 32, "program counter"},
	};
	uint64_t events = 0;
	for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
		struct producer p = producer_new(&bed->region, 0, 200 + (uint32_t)i);
		produce(&p, 1, 100);
		memcpy(p.start + damage[i].at, &damage[i].value, 8);
		producer_finish(&p);
		bed_poll(bed, true);
		if (bed_totals(bed).damaged_buffers != i + 1)
			fail_msg("not noticed: %s", damage[i].what);
		drain_end_thread(bed->drained, p.slot);
	}
	events = bed_totals(bed).events;
	assert_int_equal(in_state(bed, BUFFER_FREE), bed->region.buffer_ready);
	assert_true(bed_totals(bed).lost > 100);
	bed_finish(bed);
	assert_true(events < 100);
	assert_true(bed->dictionary->gap_count > 0);
	for (size_t k = 0; k < sizeof(damage) / sizeof(damage[0]); k++) {
		bool is_told = false;
		for (size_t i = 0; i < bed->dictionary->option_count && !is_told; i++)
			is_told = !strcmp(bed->dictionary->options[i].name, "damaged-buffer") &&
				  strstr(bed->dictionary->options[i].value, damage[k].what) != NULL;
		if (!is_told)
			fail_msg("nothing tells of: %s", damage[k].what);
	}
}

static void heads_that_make_no_sense_do_no_harm(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 300);
	produce(&p, 1, 10);
	region_buffer(&bed->region, p.buffer)->committed = UINT32_MAX;
	struct region_buffer *head = region_buffer(&bed->region, 5);
	*head = (struct region_buffer){.state = BUFFER_FULL, .slot = 4000000000u, .committed = 64};
	head = region_buffer(&bed->region, 6);
	*head = (struct region_buffer){.state = BUFFER_FULL, .slot = 9, .committed = 8189, .sequence = UINT32_MAX};
	head = region_buffer(&bed->region, 7);
	*head = (struct region_buffer){.state = BUFFER_FULL, .slot = 9, .committed = 0, .sequence = 0};
	struct region_slot *slot = region_slot(&bed->region, 12);
	*slot = (struct region_slot){.state = SLOT_LIVE,
				     .process = 3000000000u,
				     .buffer = 77777,
				     .signal_buffer = 5,
				     .call_entry = 255,
				     .pending = UINT32_MAX,
				     .gap_sequence = 1,
				     .gap_count = {UINT64_MAX, 1, 1}};
	bed_poll(bed, true);
	drain_end_thread(bed->drained, 12);
	drain_end_process(bed->drained, 0, TRACE_END_SIGNAL, 11, __rdtsc());
	drain_end_process(bed->drained, 1000, TRACE_END_SIGNAL, 11, __rdtsc());
	assert_int_equal(in_state(bed, BUFFER_FREE), bed->region.buffer_ready);
	bed_finish(bed);
}

/* Another logger goes on with the region and the trace, as a dead one left them, to their ends. */
static void bed_recover(struct bed *bed)
{
	struct writer_options options = {0};
	struct region abandoned = bed->region;
	region_close(&abandoned);
	assert_int_equal(region_open(&bed->region, bed->region_path, &bed->diag), 0);

	struct trace *before;
	if (trace_open(&before, bed->trace_path, &bed->diag) != 0)
		fail_msg("%s", bed->diag.text);
	struct drain_known known = {.dictionary = trace_dictionary(before), .clock = bed->clock};
	assert_int_equal(writer_reopen(&bed->writer, bed->trace_path, &options, &bed->diag), 0);
	bed->drain = drain_new(bed->writer);
	bed->drained = drain_adopt(bed->drain, &bed->region, &bed->image, &known);
	assert_non_null(bed->drained);
	drain_end_process(bed->drained, 1, TRACE_END_UNKNOWN, 0, __rdtsc());
	drain_end_process(bed->drained, 0, TRACE_END_UNKNOWN, 0, __rdtsc());
	drain_remove(bed->drained, &bed->error, &bed->diag);
	bed->drained = NULL;
	bed_finish(bed);
	trace_close(before);
}

/* A logger dies at some moment; another one goes on with the region and the trace. */
static void another_logger_goes_on_without_loss_or_repetition(void **state)
{
	struct bed *bed = *state;
	size_t count;
	*region_process(&bed->region, 1) =
		(struct region_process){.state = PROCESS_LIVE, .pid = 6000, .parent = 0, .start_ticks = __rdtsc()};
	struct producer p = producer_new(&bed->region, 0, 400), q = producer_new(&bed->region, 1, 6000),
			r = producer_new(&bed->region, 0, 401);
	for (uint32_t i = 0; i < 3; i++) {
		produce(&p, 1 + i * 700, 700);
		produce(&q, 10001 + i * 700, 700);
		for (uint32_t k = 0; k < 35; k++) {
			producer_inherit(&r, 500 + i * 35 + k, __rdtsc());
			produce(&r, 20001 + i * 700 + k * 20, 20);
		}
		bed_poll(bed, i == 1);
	}
	region_slot(&bed->region, p.slot)->gap_count[1] = 5;
	bed_poll(bed, true);
	/* It dies here: what it had in memory is gone. */
	drain_free(bed->drain);
	struct trace_statistics statistics = {0};
	assert_int_equal(writer_close(bed->writer, &statistics, &bed->diag), 0);
	bed_recover(bed);

	struct seen *e = read_events(bed, &count);
	static unsigned times[30001];
	memset(times, 0, sizeof(times));
	for (size_t i = 0; i < count; i++) {
		assert_true(e[i].address <= 30000);
		times[e[i].address]++;
		uint32_t tid = bed->dictionary->threads[e[i].thread].tid;
		assert_int_equal(tid, e[i].address > 20000   ? 500 + (e[i].address - 20001) / 20
				      : e[i].address > 10000 ? 6000
							     : 400);
	}
	for (uint32_t i = 0; i < 2100; i++) {
		assert_int_equal(times[1 + i], 1);
		assert_int_equal(times[10001 + i], 1);
		assert_int_equal(times[20001 + i], 1);
	}
	assert_int_equal(count, 3 * 2100);
	assert_int_equal(bed->dictionary->process_count, 2);
	assert_int_equal(bed->dictionary->thread_count, 2 + 105);
	assert_int_equal(bed->dictionary->gap_count, 1);
	assert_int_equal(bed->dictionary->processes[0].end, TRACE_END_UNKNOWN);
	free(e);
}

/* The logger dies when a gap is in the trace and not yet noted in its slot; the thread loses something more then, or
   not. */
static void gap_is_told_once(struct bed *bed, bool is_more_lost)
{
	struct producer p = producer_new(&bed->region, 0, 400);
	struct region_slot *slot = region_slot(&bed->region, p.slot);
	uint64_t lost = 0;
	produce(&p, 1, 10);
	slot->gap_count[0] = 3;
	slot->gap_bytes[0] = 99;
	slot->gap_first_ticks = slot->gap_last_ticks = __rdtsc();
	bed_poll(bed, true);
	assert_int_equal(slot->taken_count[0], 3);
	if (is_more_lost) {
		slot->gap_count[2] = 1;
		slot->gap_last_ticks = __rdtsc();
	} else {
		memset(slot->taken_count, 0, sizeof(slot->taken_count));
		memset(slot->taken_bytes, 0, sizeof(slot->taken_bytes));
	}
	drain_free(bed->drain);
	struct trace_statistics statistics = {0};
	assert_int_equal(writer_close(bed->writer, &statistics, &bed->diag), 0);
	bed_recover(bed);
	for (uint32_t i = 0; i < bed->dictionary->gap_count; i++)
		lost += bed->dictionary->gaps[i].count[EVENT_ALLOC] + bed->dictionary->gaps[i].count[EVENT_FREE];
	assert_int_equal(bed->dictionary->gap_count, is_more_lost ? 2 : 1);
	assert_int_equal(lost, is_more_lost ? 4 : 3);
}

static void a_gap_that_was_not_noted_is_told_once(void **state)
{
	gap_is_told_once(*state, false);
}
static void a_gap_after_a_noted_one_is_told(void **state)
{
	gap_is_told_once(*state, true);
}

/* The trace drops all that it had, as one does that keeps only the newest. */
static void bed_drop_past(struct bed *bed)
{
	struct trace_statistics statistics = {0};
	assert_int_equal(writer_close(bed->writer, &statistics, &bed->diag), 0);
	unlink(bed->trace_path);
	assert_int_equal(writer_open(&bed->writer, bed->trace_path, &(struct writer_options){0}, &bed->diag), 0);
	writer_set_clock(bed->writer, &bed->clock);
	assert_int_equal(writer_flush(bed->writer, &bed->diag), 0);
}

/* A logger that read buffers in part dies when the trace has dropped what it had of them: only what was not read comes
   again. */
static void what_was_read_and_dropped_stays_dropped(void **state)
{
	struct bed *bed = *state;
	struct trace_statistics statistics = {0};
	size_t count;
	struct producer p = producer_new(&bed->region, 0, 400), side = producer_side(&p),
			r = producer_new(&bed->region, 0, 500);
	struct producer idle = producer_new(&bed->region, 0, 600), heir = producer_new(&bed->region, 0, 700);
	produce(&heir, 401, 50);
	producer_inherit(&heir, 701, __rdtsc());
	produce(&p, 1, 50);
	produce(&side, 101, 50);
	produce(&r, 201, 50);
	/* Slots that another thread has by now, which did nothing yet, or did something. */
	producer_inherit(&r, 501, __rdtsc());
	produce(&idle, 301, 50);
	producer_inherit(&idle, 601, __rdtsc());
	produce(&idle, 351, 1);
	bed_poll(bed, true);
	producer_inherit(&idle, 602, __rdtsc());
	bed_poll(bed, true);
	/* It goes on reading in part, and some is still to be read when it dies. */
	produce(&p, 51, 10);
	produce(&r, 251, 10);
	bed_poll(bed, true);
	produce(&p, 1001, 5);
	produce(&side, 1101, 5);
	drain_free(bed->drain);
	bed_drop_past(bed);
	assert_int_equal(writer_close(bed->writer, &statistics, &bed->diag), 0);
	bed_recover(bed);
	struct seen *e = read_events(bed, &count);
	for (size_t i = 0; i < count; i++)
		if (e[i].address <= 1000)
			fail_msg("what was read is there again: %u", (unsigned)e[i].address);
	assert_int_equal(count, 10);
	free(e);
}

enum { EACH = 40, DIED = 9 };

static int writes_left = -1;

/* The C library's, but it dies in the middle of the one that is the last. */
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset)
{
	bool is_last = writes_left > 0 && --writes_left == 0;
	ssize_t written = syscall(SYS_pwrite64, fd, bytes, is_last ? count / 2 : count, offset);
	if (is_last)
		_exit(DIED);
	return written;
}

/* A logger that sees two threads and a forked process begin and end, and dies in its `writes`-th write behind the
   file's header. */
static void log_until(struct bed *bed, int writes)
{
	bed_begin(bed);
	writes_left = writes;
	*region_process(&bed->region, 1) =
		(struct region_process){.state = PROCESS_LIVE, .pid = 6000, .start_ticks = __rdtsc()};
	struct producer p = producer_new(&bed->region, 0, 400), q = producer_new(&bed->region, 1, 6000),
			r = producer_new(&bed->region, 0, 401);
	produce(&p, 1, EACH);
	produce(&q, 1 + EACH, EACH);
	produce(&r, 1 + 2 * EACH, EACH);
	bed_poll(bed, true);
	drain_end_thread(bed->drained, r.slot);
	drain_end_process(bed->drained, 1, TRACE_END_EXIT, 0, __rdtsc());
	drain_end_process(bed->drained, 0, TRACE_END_EXIT, 0, __rdtsc());
	writer_flush(bed->writer, &bed->diag);
	_exit(0);
}

static bool logger_dies(struct bed *bed, int writes)
{
	int status;
	/* No child gets a region unless it is said. */
	assert_int_equal(madvise(bed->region.header, bed->region.bytes, MADV_DOFORK), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		log_until(bed, writes);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == DIED));
	return WEXITSTATUS(status) == DIED;
}

static void who_ends_while_the_logger_dies_is_in_the_trace(void **state)
{
	struct bed *bed = *state;
	int writes = 1;
	bool has_died = true;
	for (; has_died; writes++) {
		bool is_seen[3 * EACH + 1] = {false};
		size_t count;
		has_died = logger_dies(bed, writes);
		bed->clock = (struct writer_clock){.name = "tsc",
						   .start_ticks = region_process(&bed->region, 0)->start_ticks,
						   .mult = 1,
						   .shift = 0};
		bed_recover(bed);
		struct seen *e = read_events(bed, &count);
		assert_int_equal(count, 3 * EACH);
		for (size_t i = 0; i < count; i++) {
			assert_false(is_seen[e[i].address]);
			is_seen[e[i].address] = true;
		}
		free(e);
		bed_remove(state);
		assert_int_equal(bed_make_region(state), 0);
	}
	/* A thread's end and two processes' are a write each, at least. */
	assert_true(writes > 3);
}

/* A thread that takes the buffer again which it filled before is stopped after it named its next use, before it said
   that nothing is in it. */
static void what_lies_in_a_buffer_from_before_is_not_read_again(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 7);
	struct region_slot *slot = region_slot(&bed->region, p.slot);
	struct produced event = {.entry = ENTRY_MALLOC, .ticks = __rdtsc(), .address = 0x1000, .size = 10};

	for (int i = 0; i < 3; i++, event.ticks++)
		assert_true(producer_event(&p, &event, NULL, 0, 0));
	uint32_t buffer = p.buffer;
	struct region_buffer *head = region_buffer(&bed->region, buffer);
	producer_finish(&p);
	bed_poll(bed, true);
	assert_int_equal(bed_totals(bed).events, 3);
	assert_int_equal(head->state, BUFFER_FREE);
	/* The next one has to know that nothing is in it, whatever a recorder has come to. */
	assert_int_equal(head->committed, 0);
	head->state = BUFFER_OWNED;
	head->slot = p.slot;
	head->sequence = ++slot->sequence;
	assert_int_equal(slot->buffer, buffer);
	bed_poll(bed, true);
	assert_int_equal(bed_totals(bed).events, 3);
	/* Even if all of it was there: its records name another use of the buffer. */
	head->committed = (uint32_t)(p.write - p.start);
	bed_poll(bed, true);
	assert_int_equal(bed_totals(bed).events, 3);
	head->state = BUFFER_FULL;
	bed_poll(bed, true);
	assert_int_equal(bed_totals(bed).events, 3);
	assert_int_equal(bed_totals(bed).damaged_buffers, 1);
	bed_finish(bed);
}

/* A child that was forked by a signal handler in the midst of a record goes on with it, late: it commits what was whole
   then. */
static void what_was_handed_over_counts(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 7);
	struct produced event = {.entry = ENTRY_MALLOC, .ticks = __rdtsc(), .address = 0x1000, .size = 10};
	for (uint32_t use = 1; use <= 2; use++) {
		assert_true(producer_event(&p, &event, NULL, 0, 0));
		uint32_t early = (uint32_t)(p.write - p.start);
		assert_true(producer_event(&p, &event, NULL, 0, 0));
		assert_true(producer_event(&p, &event, NULL, 0, 0));
		struct region_buffer *head = region_buffer(&bed->region, p.buffer);
		head->handed_over = (uint64_t)head->sequence << 32 | (uint32_t)(p.write - p.start);
		producer_finish(&p);
		head->committed = early;
		bed_poll(bed, true);
		assert_int_equal(bed_totals(bed).events, 3 * use);
	}
	/* What was said of another use counts for nothing. */
	assert_true(producer_event(&p, &event, NULL, 0, 0));
	assert_true(region_buffer(&bed->region, p.buffer)->handed_over != 0);
	producer_finish(&p);
	bed_poll(bed, true);
	assert_int_equal(bed_totals(bed).events, 7);
	assert_int_equal(bed_totals(bed).damaged_buffers, 0);
	bed_finish(bed);
}

/* A thread fills its slot's first buffer and takes the second while the logger is between looking for full buffers and
   for those being filled. */
static void the_first_buffer_of_a_slot_comes_before_the_second(void **state)
{
	struct bed *bed = *state;
	struct producer p = producer_new(&bed->region, 0, 7);
	uint64_t address = 4;
	size_t count;

	produce(&p, 1, 3);
	const uint32_t first = p.buffer;
	bed_poll(bed, true);
	assert_int_equal(bed_totals(bed).events, 3);
	for (; p.buffer == first; address++)
		produce(&p, address, 1);
	struct region_buffer *head = region_buffer(&bed->region, first);
	assert_int_equal(head->state, BUFFER_FULL);
	head->state = BUFFER_OWNED;
	bed_poll(bed, true);
	assert_int_equal(bed_totals(bed).events, 3);
	head->state = BUFFER_FULL;
	bed_poll(bed, true);
	drain_end_process(bed->drained, 0, TRACE_END_EXIT, 0, __rdtsc());
	bed_finish(bed);
	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, address - 1);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(e[i].address, i + 1);
	free(e);
}

/* ---- limits of what is kept ---- */

/* A program that makes up a stack for each call, and one that does not. */
static void stacks_beyond_a_limit_are_cut_and_others_are_not(void **state)
{
	struct bed *bed = *state;
	enum { LIMIT = 300, CALLS = 3000, DEPTH = 6 };
	const struct keep_limits limits = {.nodes = LIMIT, .rows = 1000, .stack_bytes = 1 << 30, .row_bytes = 1 << 30};
	struct region_config config = {.buffer_size = 8192,
				       .buffer_min = 8,
				       .buffer_max = 8,
				       .slot_max = 16,
				       .pc_max = 20000,
				       .options = OPTION_ENABLED};
	struct region other;
	char path[80];
	size_t count;

	bed->drain->limits = limits;
	snprintf(path, sizeof(path), "%s-other", bed->region_path);
	unlink(path);
	assert_int_equal(region_create(&other, AT_FDCWD, path, path, &config, &bed->diag), 0);
	unlink(path);
	region_rows(&other);
	struct drain_image image = {.pid = 1,
				    .parent = TRACE_NONE,
				    .image = "/bin/other",
				    .command = "other",
				    .start_ticks = region_process(&other, 0)->start_ticks};
	struct drain_region *other_drained = drain_add(bed->drain, &other, &image);
	assert_non_null(other_drained);

	struct producer p = producer_new(&bed->region, 0, 7), honest = producer_new(&other, 0, 8);
	const uint32_t known[DEPTH] = {PC, PC + 1, PC + 2, PC + 3, PC + 4, PC + 5},
		       own[DEPTH] = {PC + 9, PC + 8, PC + 7, PC + 6, PC + 5, PC + 4};
	struct produced event = {.entry = ENTRY_MALLOC, .ticks = __rdtsc(), .address = 1, .size = 1};
	assert_true(producer_event(&p, &event, known, DEPTH, 0));
	for (uint32_t i = 0; i < CALLS; i++) {
		uint32_t stack[DEPTH];
		for (uint32_t k = 0; k < DEPTH; k++)
			stack[k] = PC + 10 + (i * 7919 + k * (i + 31)) % 900;
		event.address = 2 + i;
		assert_true(producer_event(&p, &event, stack, DEPTH, 0));
		if (i % 200 == 0)
			bed_poll(bed, true);
	}
	/* What is kept already is still found. */
	event.address = 2 + CALLS;
	assert_true(producer_event(&p, &event, known, DEPTH, 0));
	producer_finish(&p);
	bed_poll(bed, true);
	event.address = 3 + CALLS;
	assert_true(producer_event(&honest, &event, own, DEPTH, 0));
	producer_finish(&honest);
	drain_poll(other_drained, true, &bed->error, &bed->diag);

	char text[300];
	assert_true(drain_take_limit_note(bed->drained, text, sizeof(text)));
	assert_non_null(strstr(text, "more different stacks than can be kept"));
	assert_false(drain_take_limit_note(bed->drained, text, sizeof(text)));
	assert_false(drain_take_limit_note(other_drained, text, sizeof(text)));
	assert_true(drain_is_limited(bed->drained));
	assert_false(drain_is_limited(other_drained));
	struct stack_ends ends = bed_totals(bed).ends;
	assert_int_equal(ends.truncated + ends.whole, 3 + CALLS);
	assert_true(ends.truncated > CALLS - LIMIT);
	assert_int_equal(bed_totals(bed).lost, 0);
	assert_true(writer_kept(bed->writer).nodes <= 2 + LIMIT + DEPTH);
	drain_remove(other_drained, &bed->error, &bed->diag);
	region_close(&other);
	bed_finish(bed);

	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, 3 + CALLS);
	assert_int_equal(bed->dictionary->ends.truncated, ends.truncated);
	uint64_t cut = 0;
	for (size_t i = 0; i < count; i++) {
		bool is_cut = e[i].flags & EVENT_TRUNCATED;
		cut += is_cut;
		if (is_cut)
			assert_int_equal(bed->dictionary->stack_ends[e[i].stack], TRACE_STACK_TRUNCATED);
		if (e[i].address == 1 || e[i].address == 2 + CALLS)
			assert_stack(bed, e[i].stack, known, DEPTH);
		if (e[i].address == 3 + CALLS)
			assert_stack(bed, e[i].stack, own, DEPTH);
	}
	assert_int_equal(cut, ends.truncated);
	free(e);
}

/* The same where all together have as many as may be: frames, too, are no more. */
static void stacks_beyond_the_sessions_limit_are_cut(void **state)
{
	struct bed *bed = *state;
	const struct keep_limits limits = {.nodes = 1 << 20,
					   .rows = 1000,
					   .stack_bytes = writer_kept(bed->writer).stack_bytes,
					   .row_bytes = 1 << 30};
	struct producer p = producer_new(&bed->region, 0, 7);
	size_t count;
	bed->drain->limits = limits;
	produce(&p, 1, 20);
	producer_finish(&p);
	bed_poll(bed, true);
	assert_int_equal(bed_totals(bed).ends.truncated, 20);
	bed_finish(bed);
	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, 20);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(bed->dictionary->stack_ends[e[i].stack], TRACE_STACK_TRUNCATED);
	free(e);
}

static uint32_t count_options(const struct bed *bed, const char *name)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < bed->dictionary->option_count; i++)
		count += !strcmp(bed->dictionary->options[i].name, name);
	return count;
}

/* Records name another thread each. */
static void threads_beyond_a_limit_are_lost_and_counted(void **state)
{
	struct bed *bed = *state;
	enum { THREADS = 500, LIMIT = 40 };
	const struct keep_limits limits = {.nodes = 1000, .rows = LIMIT, .stack_bytes = 1 << 30, .row_bytes = 1 << 30};
	struct producer p = producer_new(&bed->region, 0, 7);
	size_t count;
	bed->drain->limits = limits;
	for (uint32_t i = 0; i < THREADS; i++) {
		producer_inherit(&p, 100 + i, __rdtsc());
		produce(&p, 1 + i, 1);
		producer_finish(&p);
		bed_poll(bed, i % 50 == 0);
	}
	bed_poll(bed, true);
	struct drain_totals totals = bed_totals(bed);
	assert_true(totals.events < THREADS);
	assert_true(totals.events >= LIMIT - 5);
	assert_true(totals.lost >= THREADS - totals.events);
	bed_finish(bed);
	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, totals.events);
	assert_true(bed->dictionary->thread_count <= LIMIT);
	assert_int_equal(count_options(bed, TRACE_OPTION_LIMITED), 1);
	free(e);
}

/* A process says that it is another one, again and again, and that its heap is another one. */
static void processes_and_heaps_beyond_a_limit_take_no_room(void **state)
{
	struct bed *bed = *state;
	enum { ROUNDS = 3000, LIMIT = 60, FAKE = 3 };
	const struct keep_limits limits = {.nodes = 1000, .rows = LIMIT, .stack_bytes = 1 << 30, .row_bytes = 1 << 30};
	struct region_process *fake = region_process(&bed->region, FAKE);
	size_t count;
	bed->drain->limits = limits;
	struct producer p[2] = {producer_new(&bed->region, 0, 7), producer_new(&bed->region, 1, 8)};
	*region_process(&bed->region, 1) =
		(struct region_process){.state = PROCESS_LIVE, .pid = 2, .start_ticks = __rdtsc()};
	*region_process(&bed->region, 2) = *region_process(&bed->region, 1);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		/* One event of each of two processes, of a heap of which both say that it is theirs. */
		region_heap(&bed->region, 1)->handle = 0x7f0000000000 + i;
		struct produced event = {
			.entry = ENTRY_MALLOC, .ticks = __rdtsc(), .address = 1 + i, .size = 1, .heap = 1};
		assert_true(producer_event(&p[i % 2], &event, NULL, 0, 0));
		producer_finish(&p[i % 2]);
		*fake = (struct region_process){.state = PROCESS_LIVE, .pid = 3, .start_ticks = __rdtsc()};
		bed_poll(bed, false);
		drain_end_process(bed->drained, FAKE, TRACE_END_EXIT, 0, __rdtsc());
		/* Its place is free for another one. */
		assert_int_not_equal(fake->state, PROCESS_LIVE);
	}
	bed_poll(bed, true);
	assert_int_equal(bed_totals(bed).events, ROUNDS);
	assert_int_equal(bed_totals(bed).lost, 0);
	assert_true(writer_kept(bed->writer).rows < LIMIT + 40);
	bed_finish(bed);
	struct seen *e = read_events(bed, &count);
	assert_int_equal(count, ROUNDS);
	for (size_t i = 0; i < count; i++)
		if (e[i].address == ROUNDS)
			assert_int_equal(e[i].heap, TRACE_NONE);
	assert_true(bed->dictionary->heap_count + bed->dictionary->process_count <= LIMIT);
	free(e);
}

/* Each is one more option in each segment. */
static void notes_are_no_more_than_some(void **state)
{
	struct bed *bed = *state;
	char text[40];
	for (uint32_t i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "note %u", i);
		drain_add_note(bed->drain, TRACE_OPTION_UNHOOKED, text);
	}
	drain_add_note(bed->drain, TRACE_OPTION_DAMAGED, "one of another kind");
	bed_finish(bed);
	assert_int_equal(count_options(bed, TRACE_OPTION_UNHOOKED), 1001);
	assert_int_equal(count_options(bed, TRACE_OPTION_DAMAGED), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_make, bed_remove)
	const struct CMUnitTest tests[] = {
		TEST(every_number_of_an_event_arrives),
		TEST(the_outcome_tells_what_a_realloc_was),
		TEST(frames_without_an_image_and_cut_stacks_are_told),
		TEST(a_line_of_python_is_a_frame_with_a_name),
		TEST(deep_stacks_and_many_buffers_arrive_in_order),
		TEST(contexts_stay_with_their_events),
		TEST(a_slot_passed_on_with_its_buffer_has_all_its_threads),
		TEST(a_thread_of_which_a_flush_takes_the_beginning_alone_is_one),
		TEST(a_dead_threads_slot_is_drained_and_free),
		TEST(calls_of_signal_handlers_are_a_thread_of_their_own),
		TEST(calls_that_never_returned_are_named),
		TEST(forked_processes_have_parents_and_places_are_used_again),
		TEST(counts_that_cannot_be_true_stay_out_of_the_sums),
		TEST(gaps_are_told_once_and_in_parts),
		TEST(buffers_are_kept_until_their_events_are_written),
		TEST(a_round_calls_back_after_each_buffer),
		TEST(a_broken_drain_is_not_valid),
		TEST(damage_ends_a_buffer_and_is_counted),
		TEST(heads_that_make_no_sense_do_no_harm),
		TEST(another_logger_goes_on_without_loss_or_repetition),
		TEST(a_gap_that_was_not_noted_is_told_once),
		TEST(a_gap_after_a_noted_one_is_told),
		TEST(what_was_read_and_dropped_stays_dropped),
		TEST(what_lies_in_a_buffer_from_before_is_not_read_again),
		TEST(what_was_handed_over_counts),
		TEST(the_first_buffer_of_a_slot_comes_before_the_second),
		TEST(the_first_thread_has_a_name_after_its_end),
		TEST(stacks_beyond_a_limit_are_cut_and_others_are_not),
		TEST(stacks_beyond_the_sessions_limit_are_cut),
		TEST(threads_beyond_a_limit_are_lost_and_counted),
		TEST(processes_and_heaps_beyond_a_limit_take_no_room),
		TEST(notes_are_no_more_than_some),
		cmocka_unit_test_setup_teardown(who_ends_while_the_logger_dies_is_in_the_trace, bed_make_region,
						bed_remove),
	};
#undef TEST
	return cmocka_run_group_tests(tests, NULL, NULL);
}
