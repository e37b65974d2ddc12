/* SPDX-License-Identifier: MIT */
/*
 * A region is written by processes that may do anything to it. The input is a list of what they do: fill buffers,
 * change words anywhere, end.
 *
 *     'B' slot sequence size16 BYTES   a full buffer with these records
 *     'R' slot sequence size16 BYTES   likewise, behind a RECORD_BEGIN that makes sense
 *     'O' slot sequence size16 BYTES   likewise, but it is the one that the slot is filling
 *     'W' offset32 value64             a word of anything but the buffers' bytes
 *     'P' flush                        the logger polls
 *     'T' slot   'E' process           a thread, a process has ended
 *     'A'                              the logger dies; another adopts the region
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#include "replay.h"
#include "session/drain/drain.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/reopen.h"
#include "trace/row_ids.h"
#include "trace/trace.h"

enum { PC_COUNT = 40, CODE_COUNT = 8, STROKES_MAX = 200, ADOPTIONS_MAX = 4 };

struct bench {
	char region_path[64], trace_path[64];
	struct region made, region; /* as it was made, and as it is used now (perhaps adopted: another mapping) */
	uint8_t *clean;             /* the region as it is made */
	struct writer *writer;
	struct drain *drain;
	struct drain_region *drained;
	uint64_t taken_bytes; /* that buffers have held */
	unsigned adoptions;   /* each reads the whole trace, so that inputs of nothing else only take time */
	struct diag diag;
};

struct input {
	const uint8_t *at, *end;
};

static uint64_t take(struct input *input, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes && input->at < input->end; i++)
		value |= (uint64_t)*input->at++ << (8 * i);
	return value;
}

static void region_rows(struct region *region)
{
	static const uint8_t functions[] = {FUNCTION_MALLOC,      FUNCTION_FREE,           FUNCTION_REALLOC,
					    FUNCTION_CALLOC,      FUNCTION_POSIX_MEMALIGN, FUNCTION_HEAP_CREATE,
					    FUNCTION_HEAP_ALLOC,  FUNCTION_HEAP_REALLOC,   FUNCTION_HEAP_FREE,
					    FUNCTION_HEAP_DESTROY};
	struct region_image image = {.base = 0x400000, .end = 0x500000, .bias = 0x400000};
	struct region_file file = {.path = "/usr/lib/libc.so.6"};
	region_add_image(region, &image, &file);
	for (size_t i = 0; i < sizeof(functions); i++) {
		struct region_entry entry = {.address = 0x400100, .function = functions[i], .name = "function"};
		region_add_entry(region, &entry);
	}
	*region_heap(region, 0) = (struct region_heap){.handle = 0x400000, .kind = HEAP_GLIBC_MAIN};
	*region_heap(region, 1) =
		(struct region_heap){.handle = 0x450000, .kind = HEAP_ANNOTATED, .entry = 5, .name = 1};
	*region_heap_name(region, 1) = (struct region_heap_name){"pool"};
	for (uint32_t i = PC_FIRST; i < PC_COUNT; i++)
		region_pc(region, i)->key = i % 8 == 0   ? region_pc_key_outside(0x401000 + 16 * i)
					    : i % 8 == 7 ? region_pc_key_python(i / 8, i)
							 : region_pc_key(0, 0x1000 + 16 * i);
	for (uint32_t i = 0; i < CODE_COUNT; i++)
		*region_code(region, i) =
			(struct region_code){.key = i + 1, .file_bytes = 7, .name_bytes = 4, .text = "shop.pyload"};
	region->header->pc_count = PC_COUNT;
	for (uint32_t i = 0; i < 4; i++)
		*region_slot(region, i) = (struct region_slot){.state = SLOT_LIVE,
							       .tid = 10 + i,
							       .serial = i,
							       .buffer = UINT32_MAX,
							       .signal_buffer = UINT32_MAX};
	*region_process(region, 0) =
		(struct region_process){.state = PROCESS_LIVE, .pid = 1, .parent = UINT32_MAX, .start_ticks = 1000};
	*region_process(region, 1) =
		(struct region_process){.state = PROCESS_LIVE, .pid = 2, .parent = 0, .start_ticks = 2000};
}

/* Once for all inputs; each begins with a clean copy. */
static void bench_make(struct bench *bench)
{
	struct region_config config = {.buffer_size = 4096,
				       .buffer_min = 8,
				       .buffer_max = 8,
				       .slot_max = 8,
				       .pc_max = 64,
				       .code_max = CODE_COUNT,
				       .file_max = 4,
				       .image_max = 4,
				       .options = OPTION_ENABLED};
	snprintf(bench->region_path, sizeof(bench->region_path), "/dev/shm/xheap-fuzz-%d", (int)getpid());
	snprintf(bench->trace_path, sizeof(bench->trace_path), "/dev/shm/xheap-fuzz-%d.xht", (int)getpid());
	unlink(bench->region_path);
	if (region_create(&bench->made, AT_FDCWD, bench->region_path, bench->region_path, &config, &bench->diag) != 0) {
		fprintf(stderr, "region_fuzz: %s\n", bench->diag.text);
		exit(2);
	}
	region_rows(&bench->made);
	bench->clean = malloc(bench->made.bytes);
	if (!bench->clean)
		exit(2);
	memcpy(bench->clean, bench->made.header, bench->made.bytes);
}

static void drain_begin(struct bench *bench, const struct drain_known *known)
{
	struct drain_image image = {
		.pid = 1, .parent = TRACE_NONE, .image = "program", .command = "program", .start_ticks = 1000};
	bench->drain = drain_new(bench->writer);
	bench->drained = bench->drain ? drain_adopt(bench->drain, &bench->region, &image, known) : NULL;
	if (!bench->drained)
		exit(2);
}

static void bench_begin(struct bench *bench)
{
	struct writer_options options = {0};
	struct writer_clock clock = {.name = "tsc", .start_ticks = 1000, .mult = 1, .shift = 1};
	unlink(bench->trace_path);
	bench->taken_bytes = 0;
	bench->adoptions = 0;
	memcpy(bench->made.header, bench->clean, bench->made.bytes);
	bench->region = bench->made;
	bench->region.image_number[1] = 1;
	if (writer_open(&bench->writer, bench->trace_path, &options, &bench->diag) != 0)
		exit(2);
	writer_set_clock(bench->writer, &clock);
	drain_begin(bench, NULL);
}

/* Nothing is held back, and nothing made up. */
static void bench_check(struct bench *bench)
{
	struct drain_totals totals;
	drain_totals(bench->drain, &totals);
	if (totals.events > bench->taken_bytes / 24 + 2 * STROKES_MAX)
		abort();
	for (uint32_t i = 0; i < bench->region.buffer_ready; i++)
		if (region_buffer(&bench->region, i)->state == BUFFER_FULL)
			abort();
}

static void bench_end(struct bench *bench)
{
	struct trace_statistics statistics = {0};
	int error = 0;
	drain_end_process(bench->drained, 0, TRACE_END_SIGNAL, 9, 0);
	drain_remove(bench->drained, &error, &bench->diag);
	bench_check(bench);
	drain_free(bench->drain);
	writer_close(bench->writer, &statistics, &bench->diag);
	if (bench->region.header != bench->made.header)
		region_close(&bench->region);
	unlink(bench->trace_path);
}

static void fill_buffer(struct bench *bench, struct input *input, char kind)
{
	struct region *region = &bench->region;
	uint32_t slot = (uint32_t)take(input, 1), sequence = (uint32_t)take(input, 1), size = (uint32_t)take(input, 2),
		 index = 0, begin = 0;
	uint32_t limit = region->limits.buffer_size;
	while (index < region->buffer_ready && region_buffer(region, index)->state != BUFFER_FREE)
		index++;
	if (index == region->buffer_ready)
		return;
	struct region_buffer *head = region_buffer(region, index);
	uint8_t *bytes = region_buffer_bytes(region, index);
	if (kind != 'B') {
		uint64_t word[3] = {RECORD_BEGIN | 3 << 8 | (uint64_t)(slot + 10) << 32, __rdtsc() - 10000000,
				    slot | (uint64_t)(slot & 1) << 32};
		memcpy(bytes, word, sizeof(word));
		begin = sizeof(word);
	}
	size = size > limit - begin ? limit - begin : size;
	size = (uint64_t)(input->end - input->at) < size ? (uint32_t)(input->end - input->at) : size;
	memcpy(bytes + begin, input->at, size);
	input->at += size;
	*head = (struct region_buffer){
		.slot = slot, .committed = begin + size, .sequence = (sequence & 0x7f) | (sequence & 0x80) << 24};
	head->state = kind == 'O' ? BUFFER_OWNED : BUFFER_FULL;
	if (kind == 'O' && slot < region->slot_ready)
		*(sequence & 0x80 ? &region_slot(region, slot)->signal_buffer : &region_slot(region, slot)->buffer) =
			index;
	bench->taken_bytes += limit;
}

static void write_word(struct bench *bench, struct input *input)
{
	uint64_t offset = take(input, 4), value = take(input, 8);
	offset = offset % (bench->region.limits.buffer_offset - 8) & ~3ull;
	memcpy((uint8_t *)bench->region.header + offset, &value, sizeof(value));
	/* A wild write can hand any buffer over, again and again. */
	bench->taken_bytes += (uint64_t)bench->region.limits.buffer_size * bench->region.limits.buffer_max;
}

/* What the first logger had in memory is gone; the trace has what it wrote. */
static void adopt(struct bench *bench)
{
	struct trace_statistics statistics = {0};
	struct writer_options options = {0};
	struct region adopted;
	struct trace *trace;
	struct drain_known known = {.clock = {.name = "tsc", .start_ticks = 1000, .mult = 1, .shift = 1}};
	writer_close(bench->writer, &statistics, &bench->diag);
	if (trace_open(&trace, bench->trace_path, &bench->diag) != 0 ||
	    writer_reopen(&bench->writer, bench->trace_path, &options, &bench->diag) != 0)
		abort(); /* whatever the region was, what we wrote can be read */
	known.dictionary = trace_dictionary(trace);
	/* Nothing but what fits the file is opened; a spoiled header is refused. */
	if (region_open(&adopted, bench->region_path, &bench->diag) != 0) {
		memcpy(bench->region.header, bench->clean, REGION_HEADER_BYTES);
		if (region_open(&adopted, bench->region_path, &bench->diag) != 0)
			abort();
	}
	if (bench->region.header != bench->made.header)
		region_close(&bench->region);
	drain_free(bench->drain);
	bench->region = adopted;
	bench->taken_bytes *= 2; /* what was not written is taken again */
	drain_begin(bench, &known);
	int error = 0;
	drain_poll(bench->drained, true, &error, &bench->diag);
	drain_remove(bench->drained, &error, &bench->diag);
	trace_close(trace);
	/* The dictionary is gone now; from here on as a region that was just added. */
	drain_free(bench->drain);
	drain_begin(bench, NULL);
}

static void stroke(struct bench *bench, struct input *input)
{
	int error = 0;
	char kind = (char)take(input, 1);
	switch (kind) {
	case 'B':
	case 'R':
	case 'O':
		fill_buffer(bench, input, kind);
		break;
	case 'W':
		write_word(bench, input);
		break;
	case 'P':
		drain_poll(bench->drained, take(input, 1) & 1, &error, &bench->diag);
		region_grow(&bench->region);
		break;
	case 'T':
		drain_end_thread(bench->drained, (uint32_t)take(input, 1));
		break;
	case 'E':
		drain_end_process(bench->drained, (uint32_t)take(input, 1), TRACE_END_EXIT, 0, __rdtsc());
		break;
	case 'A':
		if (bench->adoptions++ < ADOPTIONS_MAX)
			adopt(bench);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct bench bench;
	struct input input = {data, data + size};
	if (!bench.clean)
		bench_make(&bench);
	bench_begin(&bench);
	for (int i = 0; i < STROKES_MAX && input.at < input.end; i++)
		stroke(&bench, &input);
	bench_end(&bench);
	return 0;
}

static void file_remove(void)
{
	char path[64];
	snprintf(path, sizeof(path), "/dev/shm/xheap-fuzz-%d", (int)getpid());
	unlink(path);
}

const struct replay replay = {.bytes_max = 1 << 16, .cuts = 50, .flip_rounds = 300, .end = file_remove};
