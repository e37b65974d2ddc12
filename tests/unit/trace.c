/* SPDX-License-Identifier: MIT */
/* The trace file: what is written is read, however the file is cut or damaged. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>
#include <xxhash.h>

#include "rounds.h"
#include "trace/code_rows.h"
#include "trace/format.h"
#include "trace/gap_rows.h"
#include "trace/memory_rows.h"
#include "trace/merge.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/reopen.h"
#include "trace/row_ids.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"
#include "trace/writer.h"

/* clang-format off */
#define COLUMNS(X) \
	X(kind) X(flags) X(entry) X(heap) X(stack) X(time) X(duration) X(address) \
	X(previous) X(size) X(usable) X(argument) \
	X(argument2) X(result)
/* clang-format on */

static char path[64];

static uint64_t seed = 1;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Small, large or extreme. */
static uint64_t any(void)
{
	static const uint64_t extremes[] = {
		0, 1, 127, 128, UINT32_MAX, UINT64_MAX, UINT64_MAX - 1, (uint64_t)1 << 63, INT64_MAX};
	switch (next() % 4) {
	case 0:
		return extremes[next() % (sizeof(extremes) / sizeof(extremes[0]))];
	case 1:
		return next();
	default:
		return next() % 1000;
	}
}

static struct writer *open_writer(const struct writer_options *options)
{
	struct diag diag = {""};
	struct writer *writer;
	struct writer_clock clock = {.name = "tsc", .start_ticks = 1000, .mult = 1, .start_realtime_ns = 42};
	assert_int_equal(writer_open(&writer, path, options, &diag), 0);
	writer_set_clock(writer, &clock);
	writer_set_host(writer, "host");
	writer_add_option(writer, "stackwalk", "all");
	return writer;
}

/* Ids of the rows that every test has. */
struct rows {
	uint32_t process, thread, image, entry, heap;
};

static struct rows add_rows(struct writer *writer, uint32_t pid)
{
	struct rows rows;
	rows.process = writer_add_process(writer, &(struct trace_process){.pid = pid,
									  .parent = TRACE_NONE,
									  .forked_from = TRACE_NONE,
									  .start_ns = 1100,
									  .end_ns = INT64_MAX,
									  .image = "/bin/program",
									  .command = "program argument",
									  .note = ""});
	rows.thread = writer_add_thread(
		writer,
		&(struct trace_thread){.process = rows.process, .tid = pid, .end_ns = INT64_MAX, .name = "main"});
	rows.image = writer_add_image(writer, &(struct trace_image){"/lib/libc.so.6", (const uint8_t *)"abcdefgh", 8});
	rows.entry = writer_add_entry(writer, &(struct trace_entry){rows.image, FUNCTION_MALLOC, "malloc"});
	rows.heap = writer_add_heap(writer, &(struct trace_heap){rows.process, 0x7f0000000000, "main arena"});
	writer_add_mapping(writer,
			   &(struct trace_mapping){rows.process, rows.image, 0x1000, 0x2000, 0x1000, 1100, INT64_MAX});
	return rows;
}

static uint32_t add_stack(struct writer *writer, const struct rows *rows, uint64_t first, int depth)
{
	uint32_t node = 0;
	for (int i = 0; i < depth; i++)
		node = writer_intern_node(writer, node,
					  writer_intern_frame(writer, rows->image, first + (uint64_t)i * 16));
	return node;
}

static uint32_t event_add(struct writer_events *events, const struct rows *rows, uint8_t kind, uint64_t time)
{
	assert_int_equal(writer_events_reserve(events, 1), 0);
	uint32_t i = events->count++;
	events->process = rows->process;
	events->thread = rows->thread;
#define X(column) events->column[i] = 0;
	COLUMNS(X)
#undef X
	events->kind[i] = kind;
	events->entry[i] = (uint16_t)rows->entry;
	events->heap[i] = rows->heap;
	events->time[i] = time;
	events->first_sequence = 1;
	return i;
}

static void write_all(struct writer *writer, const struct writer_events *events)
{
	struct diag diag = {""};
	int error = writer_write_events(writer, events, &diag);
	if (error)
		print_message("%s\n", diag.text);
	assert_int_equal(error, 0);
}

static struct trace *open_trace(void)
{
	struct diag diag = {""};
	struct trace *trace = NULL;
	int error = trace_open(&trace, path, &diag);
	if (error)
		print_message("%s\n", diag.text);
	assert_int_equal(error, 0);
	return trace;
}

/* The rows of two writers' events are those of the trace: the ids of single-segment tests are the same. */
static void compare_block(const struct trace_block *block, const struct writer_events *events, uint32_t from)
{
	assert_int_equal(block->process, events->process);
	assert_int_equal(block->thread, events->thread);
	for (uint32_t i = 0; i < block->count; i++) {
		uint32_t at = from + i;
		assert_int_equal(block->kind[i], events->kind[at]);
		assert_int_equal(block->flags[i], events->flags[at]);
		assert_int_equal(block->entry[i], events->entry[at]);
		assert_int_equal(block->heap[i], events->heap[at]);
		assert_true(block->address[i] == events->address[at]);
		assert_true(block->previous[i] == events->previous[at]);
		assert_true(block->size[i] == events->size[at]);
		assert_true(block->usable[i] == events->usable[at]);
		assert_true(block->argument[i] == events->argument[at]);
		assert_true(block->argument2[i] == events->argument2[at]);
		assert_int_equal(block->result[i], events->result[at]);
		if (events->time[at] < (uint64_t)1 << 62)
			assert_true(block->time_ns[i] == (int64_t)(events->time[at] - 1000));
		if (events->kind[at] == EVENT_REALLOC && events->time[at] < (uint64_t)1 << 62)
			assert_true(block->duration_ns[i] == (int64_t)events->duration[at]);
	}
}

static void test_random_columns(void **state)
{
	(void)state;
	for (int compression = -1; compression <= 3; compression += 2) {
		struct writer *writer = open_writer(&(struct writer_options){.compression = compression});
		struct rows rows = add_rows(writer, 10);
		uint32_t other = writer_add_entry(writer, &(struct trace_entry){TRACE_NONE, FUNCTION_FREE, "free"}),
			 stacks[40];
		for (int i = 0; i < 40; i++)
			stacks[i] = add_stack(writer, &rows, next() % 5 * 16, (int)(next() % 30));
		struct writer_events events[8] = {{0}};
		for (int block = 0; block < 8; block++) {
			uint32_t count = block == 7 ? 65536 : block ? (uint32_t)next() % 3000 + 1 : 1;
			uint64_t time = block == 6 ? UINT64_MAX / 2 : 5000;
			for (uint32_t i = 0; i < count; i++) {
				uint32_t at =
					event_add(&events[block], &rows, (uint8_t)(next() % EVENT_KIND_COUNT), time);
				struct writer_events *own = &events[block];
				own->flags[at] = (uint8_t)next();
				own->entry[at] = (uint16_t)(next() & 1 ? rows.entry : other);
				own->heap[at] = next() & 1 ? rows.heap : TRACE_NONE;
				own->stack[at] = stacks[next() % 40];
				own->duration[at] = own->kind[at] == EVENT_REALLOC ? next() % 4000 : any();
				own->address[at] = any();
				own->previous[at] = any();
				own->size[at] = any();
				own->usable[at] = any();
				own->argument[at] = any();
				own->argument2[at] = any();
				own->result[at] = (int32_t)any();
				/* Mostly on, at times back. */
				time += next() % 10 ? next() % 3000 : 0 - next() % 10;
			}
			write_all(writer, &events[block]);
		}
		struct diag diag = {""};
		struct trace_statistics statistics = {.waits = 7, .suppressed = UINT64_MAX};
		assert_int_equal(writer_close(writer, &statistics, &diag), 0);
		struct trace *trace = open_trace();
		const struct trace_dictionary *dictionary = trace_dictionary(trace);
		assert_true(dictionary->is_complete);
		assert_true(dictionary->statistics.suppressed == UINT64_MAX && dictionary->statistics.waits == 7);
		assert_int_equal(trace_block_count(trace), 8);
		struct trace_cursor *cursor = trace_cursor_new(trace);
		uint64_t counted = 0;
		for (uint32_t i = 0; i < 8; i++) {
			struct trace_block block;
			assert_int_equal(trace_cursor_read(cursor, i, &block, &diag), 0);
			assert_int_equal(block.count, events[i].count);
			compare_block(&block, &events[i], 0);
			counted += block.count;
			writer_events_fini(&events[i]);
		}
		uint64_t known = dictionary->failed_count + dictionary->in_flight_count;
		for (int kind = 0; kind < EVENT_KIND_COUNT; kind++)
			known += dictionary->kind_count[kind];
		assert_true(dictionary->event_count == counted && known == counted);
		trace_cursor_free(cursor);
		trace_close(trace);
	}
}

/* The frames of a node, innermost first, as one number. */
static uint64_t stack_hash(const struct trace_dictionary *dictionary, uint32_t node)
{
	uint64_t hash = 0;
	for (; node; node = dictionary->nodes[node].parent) {
		const struct trace_frame *frame = &dictionary->frames[dictionary->nodes[node].frame];
		assert_true(dictionary->nodes[node].parent < node);
		hash = (hash ^ frame->offset ^ ((uint64_t)frame->image << 40)) * 0x9e3779b97f4a7c15u + 1;
	}
	return hash;
}

/* Many segments: each is complete by itself, and together their rows are one. */
static void test_segments(void **state)
{
	(void)state;
	struct writer *writer = open_writer(&(struct writer_options){.segment_bytes = 1});
	struct rows rows[3];
	uint64_t expected[300];
	for (uint32_t i = 0; i < 3; i++)
		rows[i] = add_rows(writer, 100 + i);
	assert_int_equal(rows[0].image, rows[2].image);
	assert_int_equal(rows[0].entry, rows[2].entry);
	assert_int_not_equal(rows[0].heap, rows[2].heap);
	for (uint32_t i = 0; i < 300; i++) {
		struct writer_events events = {0};
		uint32_t depth = i % 20, event = event_add(&events, &rows[i % 3], EVENT_ALLOC, 2000 + i);
		events.stack[event] = add_stack(writer, &rows[0], (i % 7) * 1000, (int)depth);
		expected[i] = 0;
		for (uint32_t at = depth; at-- > 0;)
			expected[i] = (expected[i] ^ (i % 7 * 1000 + at * 16) ^ ((uint64_t)rows[0].image << 40)) *
					      0x9e3779b97f4a7c15u +
				      1;
		write_all(writer, &events);
		writer_events_fini(&events);
	}
	struct trace_gap gap = {
		.process = rows[1].process, .thread = rows[1].thread, .from_ns = 1500, .to_ns = 1600, .stacks = 3};
	gap.count[EVENT_FREE] = 9;
	writer_add_gap(writer, &gap);
	writer_add_sample(writer, &(struct trace_sample){.process = 1, .time_ns = 1700, .resident_bytes = 1 << 20});
	const struct trace_resident_part parts[] = {{TRACE_MAPPING_BREAK, 0x5000, 0x9000, 8192, ""},
						    {200, 0x9000, 0xa000, 4096, "a kind of later versions"}};
	for (uint32_t spread = 0; spread <= 2; spread++)
		writer_add_resident(
			writer,
			&(struct trace_resident){.process = 1,
						 .time_ns = 1700,
						 .bytes = {[TRACE_MAPPING_BREAK] = 8192, [TRACE_MAPPING_UNREAD] = 4096},
						 .mapping_count = 5,
						 .spread = spread},
			parts);
	const struct trace_page_run runs[] = {{5, 2, TRACE_MAPPING_BREAK, false}, {3, 1, 200, true}};
	for (uint32_t spread = 0; spread <= 2; spread++)
		writer_add_pages(writer,
				 &(struct trace_pages){.process = 1,
						       .time_ns = 1700,
						       .huge_bytes = TRACE_HUGE_UNKNOWN,
						       .swapped_bytes = 4096,
						       .spread = spread},
				 runs);
	writer_update_process(writer, rows[2].process,
			      &(struct trace_process){.pid = 102,
						      .parent = rows[0].process,
						      .forked_from = TRACE_NONE,
						      .start_ns = 1100,
						      .end_ns = 9000,
						      .end = TRACE_END_SIGNAL,
						      .end_status = 9,
						      .image = "/bin/other",
						      .command = "other",
						      .note = "why"});
	struct diag diag = {""};
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	struct trace *trace = open_trace();
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	assert_true(dictionary->is_complete);
	assert_int_equal(dictionary->process_count, 3);
	assert_int_equal(dictionary->thread_count, 3);
	assert_int_equal(dictionary->mapping_count, 3);
	assert_int_equal(dictionary->image_count, 1);
	assert_int_equal(dictionary->heap_count, 3);
	assert_int_equal(dictionary->gap_count, 1);
	assert_int_equal(dictionary->option_count, 1);
	assert_int_equal(dictionary->gaps[0].count[EVENT_FREE], 9);
	assert_int_equal(dictionary->gaps[0].from_ns, 500);
	assert_int_equal(dictionary->sample_count, 1);
	assert_int_equal(dictionary->samples[0].process, 1);
	assert_int_equal(dictionary->samples[0].time_ns, 700);
	assert_int_equal(dictionary->samples[0].resident_bytes, 1 << 20);
	assert_int_equal(dictionary->resident_count, 3);
	assert_int_equal(dictionary->resident_part_count, 3);
	assert_int_equal(dictionary->residents[0].process, 1);
	assert_int_equal(dictionary->residents[0].spread, 0);
	assert_int_equal(dictionary->residents[2].time_ns, 700);
	assert_int_equal(dictionary->residents[2].first, 1);
	assert_int_equal(dictionary->residents[2].bytes[TRACE_MAPPING_UNREAD], 4096);
	assert_int_equal(dictionary->residents[2].mapping_count, 5);
	assert_int_equal(dictionary->resident_parts[1].end, 0x9000);
	assert_int_equal(dictionary->resident_parts[2].kind, TRACE_MAPPING_OTHER);
	assert_string_equal(dictionary->resident_parts[2].name, "a kind of later versions");
	assert_int_equal(dictionary->pages_count, 3);
	assert_int_equal(dictionary->page_run_count, 3);
	assert_int_equal(dictionary->pages[2].time_ns, 700);
	assert_int_equal(dictionary->pages[2].first, 1);
	assert_int_equal(dictionary->pages[2].huge_bytes, TRACE_HUGE_UNKNOWN);
	assert_int_equal(dictionary->page_runs[1].skipped, 5);
	assert_int_equal(dictionary->page_runs[2].kind, TRACE_MAPPING_OTHER);
	assert_true(dictionary->page_runs[2].is_next);
	assert_int_equal(dictionary->processes[2].end_status, 9);
	assert_int_equal(dictionary->processes[2].parent, 0);
	assert_int_equal(dictionary->processes[2].end_ns, 8000);
	assert_string_equal(dictionary->processes[2].note, "why");
	assert_int_equal(dictionary->start_realtime_ns, 42);
	assert_int_equal(dictionary->duration_ns, 8000);
	assert_int_equal(dictionary->threads[1].start_ns, 1001);
	assert_int_equal(dictionary->threads[1].end_ns, 1298);
	assert_memory_equal(dictionary->images[0].build_id, "abcdefgh", 8);
	struct trace_cursor *cursor = trace_cursor_new(trace);
	assert_int_equal(trace_block_count(trace), 300);
	for (uint32_t i = 0; i < 300; i++) {
		struct trace_block block;
		assert_int_equal(trace_cursor_read(cursor, i, &block, &diag), 0);
		assert_int_equal(block.process, i % 3);
		assert_int_equal(block.heap[0], rows[i % 3].heap);
		assert_true(stack_hash(dictionary, block.stack[0]) == expected[i]);
	}
	trace_cursor_free(cursor);
	trace_close(trace);
}

/* ---- damage ---- */

static uint8_t *read_file(size_t *size)
{
	FILE *file = fopen(path, "rb");
	struct stat status;
	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &status), 0);
	uint8_t *data = malloc((size_t)status.st_size + 1);
	*size = fread(data, 1, (size_t)status.st_size, file);
	fclose(file);
	return data;
}

static void put_file(const uint8_t *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_true(size == 0 || write(fd, data, size) == (ssize_t)size);
	close(fd);
}

enum { SMALL_BLOCKS = 12 };

/* A trace of some blocks over two segments; ends[i] is where the file ended after block i. */
static void write_small(uint64_t *ends, int compression)
{
	struct writer *writer =
		open_writer(&(struct writer_options){.segment_bytes = 2500, .compression = compression});
	struct rows rows = add_rows(writer, 10);
	uint64_t time = 2000;
	for (uint32_t block = 0; block < SMALL_BLOCKS; block++) {
		struct writer_events events = {0};
		for (uint32_t i = 0; i < 10 + block; i++) {
			uint32_t event = event_add(&events, &rows,
						   i % 3 == 2 ? EVENT_REALLOC
						   : i % 2    ? EVENT_FREE
							      : EVENT_ALLOC,
						   time += 100 + next() % 99);
			events.address[event] = 0x7f0000001000 + i % 4 * 32;
			events.size[event] = i % 2 ? 0 : 24 + block;
			events.duration[event] = 30 + next() % 20;
			events.stack[event] = add_stack(writer, &rows, block * 256, (int)(i % 5));
		}
		events.region = 77;
		events.slot = 3;
		events.first_sequence = events.last_sequence = block;
		write_all(writer, &events);
		writer_events_fini(&events);
		ends[block] = writer_size_bytes(writer);
	}
	struct diag diag = {""};
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
}

/* Open what is there and read all of it: how many blocks could be; errors must name an offset. */
static uint32_t read_damaged(bool *is_complete)
{
	struct diag diag = {""};
	struct trace *trace = NULL;
	uint32_t whole = 0;
	*is_complete = false;
	if (trace_open(&trace, path, &diag)) {
		assert_string_not_equal(diag.text, "");
		return 0;
	}
	*is_complete = trace_dictionary(trace)->is_complete;
	if (!*is_complete)
		assert_non_null(strstr(trace_dictionary(trace)->cut_reason, "offset"));
	struct trace_cursor *cursor = trace_cursor_new(trace);
	for (uint32_t i = 0; i < trace_block_count(trace); i++) {
		struct trace_block block;
		diag.text[0] = 0;
		if (trace_cursor_read(cursor, i, &block, &diag) == 0)
			whole++;
		else
			assert_non_null(strstr(diag.text, "offset"));
	}
	trace_cursor_free(cursor);
	trace_close(trace);
	return whole;
}

static void test_cut_anywhere(void **state)
{
	uint64_t ends[SMALL_BLOCKS];
	size_t size;
	bool is_complete;
	(void)state;
	write_small(ends, 1);
	uint8_t *data = read_file(&size);
	for (size_t cut = 0; cut <= size; cut++) {
		put_file(data, cut);
		uint32_t whole = 0;
		while (whole < SMALL_BLOCKS && ends[whole] <= cut)
			whole++;
		assert_int_equal(read_damaged(&is_complete), whole);
		assert_int_equal(is_complete, cut == size);
	}
	free(data);
}

/* A flipped bit is seen, and costs what hangs on it: at most the rest of its segment. */
static void test_flipped_bits(void **state)
{
	uint64_t ends[SMALL_BLOCKS];
	size_t size;
	(void)state;
	for (int compression = -1; compression < 2; compression += 2) {
		write_small(ends, compression);
		uint8_t *data = read_file(&size);
		for (size_t bit = 0; bit < size * 8; bit += rounds_step() * (1 + next() % 7)) {
			bool is_complete;
			data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			put_file(data, size);
			uint32_t whole = read_damaged(&is_complete);
			/* Only the zeros between blocks are not covered by a checksum. */
			if (is_complete && whole == SMALL_BLOCKS)
				assert_int_equal(data[bit / 8] & ~(1 << bit % 8), 0);
			data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		free(data);
	}
}

/* The second segment of a file whose first is ruined can be read. */
static void test_later_segment_survives(void **state)
{
	uint64_t ends[SMALL_BLOCKS];
	size_t size;
	bool is_complete;
	(void)state;
	write_small(ends, 1);
	uint8_t *data = read_file(&size);
	memset(data + 200, 0x55, 100);
	put_file(data, size);
	uint32_t whole = read_damaged(&is_complete);
	assert_false(is_complete);
	assert_true(whole > 0 && whole < SMALL_BLOCKS);
	free(data);
}

/* ---- going on ---- */

static void test_reopen(void **state)
{
	uint64_t ends[SMALL_BLOCKS];
	size_t size;
	(void)state;
	write_small(ends, 1);
	uint8_t *data = read_file(&size);
	for (uint32_t block = 1; block < SMALL_BLOCKS; block++) {
		struct diag diag = {""};
		struct writer *writer;
		/* Torn in the block behind it. */
		put_file(data, (size_t)ends[block] - 5);
		assert_int_equal(writer_reopen(&writer, path, NULL, &diag), 0);
		assert_non_null(strstr(diag.text, "cut"));
		assert_int_equal(writer_last_sequence(writer, 77, 3), block - 1);
		assert_int_equal(writer_last_sequence(writer, 77, 4), UINT32_MAX);
		assert_int_equal(writer_size_bytes(writer) <= ends[block] - 5, true);
		struct rows rows = add_rows(writer, 20);
		assert_int_equal(rows.process, 1);
		assert_int_equal(rows.image, 0);
		assert_int_equal(rows.entry, 0);
		struct writer_events events = {.region = 78, .slot = 1};
		uint32_t event = event_add(&events, &rows, EVENT_ALLOC, 50000);
		events.stack[event] = add_stack(writer, &rows, 0, 3);
		events.last_sequence = 0;
		events.part_sequence = 5;
		events.part_events = 6;
		write_all(writer, &events);
		writer_events_fini(&events);
		assert_int_equal(writer_last_part(writer, 78, 1, 5), 6);
		assert_int_equal(writer_last_part(writer, 78, 1, 4), 0);
		assert_int_equal(writer_close(writer, NULL, &diag), 0);
		struct trace *trace = open_trace();
		assert_true(trace_dictionary(trace)->is_complete);
		assert_int_equal(trace_dictionary(trace)->process_count, 2);
		assert_int_equal(trace_block_count(trace), block + 1);
		trace_close(trace);
	}
	/* A finished one goes on, too; its newest footer counts. */
	struct diag diag = {""};
	struct writer *writer;
	put_file(data, size);
	assert_int_equal(writer_reopen(&writer, path, NULL, &diag), 0);
	assert_string_equal(diag.text, "");
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	struct trace *trace = open_trace();
	assert_true(trace_dictionary(trace)->is_complete);
	assert_int_equal(trace_block_count(trace), SMALL_BLOCKS);
	trace_close(trace);
	free(data);
}

/* What did not fit stays known when the trace is gone on with. */
static void test_reopen_keeps_what_is_missing(void **state)
{
	(void)state;
	struct diag diag = {""};
	struct writer *writer = open_writer(&(struct writer_options){.max_file_bytes = 20000});
	struct rows rows = add_rows(writer, 10);
	struct writer_events events = {.region = 77, .slot = 3};
	int error = 0;
	uint64_t blocks = 0;
	for (uint32_t block = 0; !error; block++, blocks++) {
		events.count = 0;
		for (uint32_t i = 0; i < 500; i++)
			event_add(&events, &rows, EVENT_ALLOC, 1000 + block * 500 + i);
		events.first_sequence = events.last_sequence = block;
		error = writer_write_events(writer, &events, &diag);
	}
	writer_events_fini(&events);
	assert_int_equal(error, -EFBIG);
	uint64_t written = writer_event_count(writer);
	assert_true(written >= blocks * 500 - 500 && written < blocks * 500);
	writer_close(writer, NULL, &diag);
	for (int round = 0; round < 3; round++) {
		struct trace *trace = open_trace();
		const struct trace_dictionary *dictionary = trace_dictionary(trace);
		assert_true(dictionary->event_count == written);
		assert_true(dictionary->early_end_count == 2 && dictionary->early_ends[1].process == TRACE_NONE);
		assert_true(dictionary->early_ends[0].process == 0 &&
			    dictionary->early_ends[0].calls == blocks * 500 - written);
		trace_close(trace);
		diag = (struct diag){""};
		assert_int_equal(writer_reopen(&writer, path, NULL, &diag), 0);
		assert_int_equal(writer_close(writer, NULL, &diag), 0);
	}
}

/* A session measures its clock's rate anew. Half a day after the boot, an error of a thousandth is more than the slack. */
static void test_rates_that_differ_are_one_boot(void **state)
{
	(void)state;
	enum { RATE = 1 << 30, SECOND = 1000000000 };
	struct diag diag = {""};
	struct writer *writer;
	struct writer_clock own, first = {.name = "tsc", .mult = RATE, .shift = 30};
	first.start_ticks = UINT64_C(43200) * SECOND;
	first.start_realtime_ns = INT64_C(1700000000) * SECOND;
	assert_int_equal(writer_open(&writer, path, NULL, &diag), 0);
	writer_set_clock(writer, &first);
	struct writer_clock later = first;
	later.mult += RATE / 1000;
	later.start_ticks += UINT64_C(60) * SECOND;
	later.start_realtime_ns += INT64_C(60) * SECOND;
	assert_true(writer_has_clock(writer, &later, &own));
	/* Its ticks begin elsewhere. */
	later.start_ticks -= UINT64_C(6) * SECOND;
	assert_false(writer_has_clock(writer, &later, &own));
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
}

static void test_two_writers_are_refused(void **state)
{
	(void)state;
	struct diag diag = {""};
	struct writer *writer = open_writer(NULL), *other;
	assert_int_equal(writer_open(&other, path, NULL, &diag), -EBUSY);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
}

/* Reading while it is written: whatever was flushed is there. */
static void test_read_while_written(void **state)
{
	(void)state;
	struct diag diag = {""};
	struct writer *writer = open_writer(NULL);
	struct rows rows = add_rows(writer, 10);
	assert_int_equal(writer_flush(writer, &diag), 0);
	for (uint32_t i = 0; i < 20; i++) {
		struct writer_events events = {0};
		event_add(&events, &rows, EVENT_FREE, 3000 + i);
		write_all(writer, &events);
		writer_events_fini(&events);
		struct trace *trace = open_trace();
		assert_int_equal(trace_block_count(trace), i + 1);
		assert_int_equal(trace_dictionary(trace)->process_count, 1);
		assert_false(trace_dictionary(trace)->is_complete);
		trace_close(trace);
	}
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
}

/* ---- a file that may not grow ---- */

/* *given: events that the writer was given. How many of them it has written. */
static uint64_t fill(struct writer *writer, const struct rows *rows, uint64_t *given, int *error)
{
	*given = 0;
	*error = 0;
	for (uint32_t block = 0; block < 4000 && !*error; block++) {
		struct diag diag = {""};
		struct writer_events events = {0};
		for (uint32_t i = 0; i < 200; i++) {
			uint32_t event = event_add(&events, rows, EVENT_ALLOC, 5000 + block * 1000 + i);
			events.address[event] = next();
		}
		*error = writer_write_events(writer, &events, &diag);
		*given += 200;
		if (*error)
			assert_string_not_equal(diag.text, "");
		writer_events_fini(&events);
	}
	return writer_event_count(writer);
}

/* What the trace says of the end of recording: the time of the first event that is missing, and who called how often
   since. */
static void check_early_end(const struct trace_dictionary *dictionary, uint64_t after, uint64_t more_after)
{
	const struct trace_early_end *ends = dictionary->early_ends;
	assert_int_equal(dictionary->early_end_count, 3);
	assert_true(ends[0].process == 0 && ends[0].calls == after);
	assert_true(ends[1].process == 1 && ends[1].calls == more_after);
	assert_true(ends[2].process == TRACE_NONE && ends[2].calls == 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ends[i].time_ns, ends[2].time_ns);
	assert_string_not_equal(ends[2].reason, "");
}

static void check_full(struct writer *writer, const struct rows *rows, int expected, uint64_t limit)
{
	struct diag diag = {""};
	int error;
	uint64_t given, written = fill(writer, rows, &given, &error);
	assert_int_equal(error, expected);
	/* Later rows do no harm. */
	struct rows more = add_rows(writer, 99);
	struct writer_events events = {0};
	event_add(&events, rows, EVENT_FREE, 6000);
	assert_int_equal(writer_write_events(writer, &events, &diag), expected);
	writer_events_fini(&events);
	writer_update_process(writer, rows->process,
			      &(struct trace_process){.pid = 10,
						      .parent = TRACE_NONE,
						      .forked_from = TRACE_NONE,
						      .start_ns = 1100,
						      .end_ns = 9000,
						      .end = TRACE_END_EXIT,
						      .image = "/bin/program",
						      .command = "program argument",
						      .note = ""});
	writer_add_gap(
		writer,
		&(struct trace_gap){
			.process = more.process, .thread = more.thread, .from_ns = 5500, .to_ns = 5600, .stacks = 1});
	writer_count_after(writer, more.process, 7, 6001);
	assert_true(writer_has_ended(writer));
	diag.text[0] = 0;
	int close_error = writer_close(writer, NULL, &diag);
	if (close_error)
		print_message("%s\n", diag.text);
	assert_int_equal(close_error, 0);
	struct trace *trace = open_trace();
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	assert_true(dictionary->is_complete);
	assert_true(dictionary->event_count == written);
	assert_true(written > 0);
	assert_true(dictionary->unwritten_events == 0);
	check_early_end(dictionary, given + 1 - written, 7);
	assert_int_equal(dictionary->processes[0].end, TRACE_END_EXIT);
	assert_int_equal(dictionary->gap_count, 1);
	assert_true(dictionary->size_bytes <= limit);
	if (expected == -EFBIG)
		assert_true(limit - dictionary->size_bytes <= 4096);
	trace_close(trace);
}

static void test_max_file(void **state)
{
	(void)state;
	for (uint64_t limit = 40000; limit < 200000; limit += 30011) {
		struct writer *writer =
			open_writer(&(struct writer_options){.max_file_bytes = limit, .segment_bytes = 30000});
		struct rows rows = add_rows(writer, 10);
		check_full(writer, &rows, -EFBIG, limit);
	}
}

/* ---- files that drop their past ---- */

static void write_numbered(struct writer *writer, const struct rows *rows, uint32_t number, uint32_t count)
{
	struct writer_events events = {.region = 77, .slot = 3};
	for (uint32_t i = 0; i < count; i++) {
		uint32_t event = event_add(&events, rows, EVENT_ALLOC, 5000 + (uint64_t)number * 1000 + i);
		events.address[event] = next();
		events.size[event] = number;
		events.stack[event] = add_stack(writer, rows, number % 50 * 256, 6);
	}
	events.first_sequence = events.last_sequence = number;
	write_all(writer, &events);
	writer_events_fini(&events);
}

/* The blocks that are there are the newest ones, in order, and what is not is told. One may be in parts, before and
   behind the end of a file or round. How many of the written blocks the file has. */
static uint32_t check_newest(const char *file, uint32_t blocks, uint64_t events, bool is_complete)
{
	struct diag diag = {""};
	struct trace *trace;
	assert_int_equal(trace_open(&trace, file, &diag), 0);
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	struct trace_cursor *cursor = trace_cursor_new(trace);
	uint32_t count = trace_block_count(trace);
	struct trace_block block;
	assert_string_equal(is_complete ? dictionary->cut_reason : "", "");
	assert_int_equal(dictionary->is_complete, is_complete);
	assert_true(dictionary->event_count + dictionary->dropped_events == events);
	uint64_t first = blocks, last = blocks - 1;
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(trace_cursor_read(cursor, i, &block, &diag), 0);
		first = i ? first : block.size[0];
		assert_in_range(block.size[0], i ? last : 0, i ? last + 1 : blocks - 1);
		last = block.size[0];
		assert_int_equal(trace_dictionary(trace)->processes[block.process].pid, 10);
	}
	assert_int_equal(last, blocks - 1);
	count = (uint32_t)(blocks - first);
	if (count && count < blocks) {
		assert_true(block.time_ns[0] > dictionary->dropped_until_ns);
		assert_true(dictionary->dropped_until_ns >= 4000 + (blocks - count - 1) * 1000);
	}
	trace_cursor_free(cursor);
	trace_close(trace);
	return count;
}

/* A circular file of this greatest size: read at times while it is written, at its end, and when it is gone on with. */
static void circle(uint64_t limit)
{
	struct diag diag = {""};
	struct writer *writer = open_writer(
		&(struct writer_options){.mode = WRITER_CIRCULAR, .max_file_bytes = limit, .segment_bytes = limit / 8});
	struct rows rows = add_rows(writer, 10);
	uint64_t events = 0, size = 0;
	struct stat status;
	uint32_t kept = 0;
	for (uint32_t block = 0; block < 300; block++) {
		uint32_t count = 1 + (uint32_t)(next() % 400);
		write_numbered(writer, &rows, block, count);
		events += count;
		assert_int_equal(stat(path, &status), 0);
		assert_true((uint64_t)status.st_size <= limit);
		size = (uint64_t)status.st_size > size ? (uint64_t)status.st_size : size;
		if (block % 19 == 0) {
			assert_int_equal(writer_flush(writer, &diag), 0);
			kept = check_newest(path, block + 1, events, false);
		}
	}
	assert_true(size > limit * 7 / 10);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	uint32_t last = check_newest(path, 300, events, true);
	assert_true(last > kept / 3 && last > 10);
	/* Gone on with, it has its ids. */
	assert_int_equal(writer_reopen(&writer, path, NULL, &diag), 0);
	assert_int_equal(writer_last_sequence(writer, 77, 3), 299);
	write_numbered(writer, &rows, 300, 3);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	check_newest(path, 301, events + 3, true);
}

enum { SEEDS = 16 };

static void test_circular(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < rounds(SEEDS / 4); i++) {
		seed = i + 1;
		for (uint64_t limit = 64 << 10; limit <= 512 << 10; limit *= 2)
			circle(limit);
	}
}

/* Rows with this number, one of each type that stands nowhere else. */
static void write_single_rows(struct writer *writer, uint32_t process, uint32_t number)
{
	const int64_t time_ns = 5000 + (int64_t)number * 1000;
	writer_add_gap(writer, &(struct trace_gap){.process = process,
						   .thread = TRACE_NONE,
						   .from_ns = time_ns,
						   .to_ns = time_ns,
						   .stacks = number});
	writer_add_sample(writer, &(struct trace_sample){process, time_ns, number});
	writer_add_resident(
		writer,
		&(struct trace_resident){.process = process, .time_ns = time_ns, .mapping_count = number, .spread = 1},
		&(struct trace_resident_part){.base = 0x1000, .end = 0x2000, .name = "/lib/libc.so.6"});
	writer_add_pages(
		writer,
		&(struct trace_pages){.process = process, .time_ns = time_ns, .swapped_bytes = number, .spread = 1},
		&(struct trace_page_run){.count = 1});
	writer_add_limit(writer, &(struct trace_limit){.process = process, .data_bytes = number});
	writer_add_cause(writer, &(struct trace_cause){.process = process, .cgroup_kills = number});
}

/* The rows are those of the newest segments: none is missing up to the last one. */
static void check_single_rows(const char *file, uint32_t last)
{
	struct diag diag = {""};
	struct trace *trace;
	assert_int_equal(trace_open(&trace, file, &diag), 0);
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
#define CHECK(rows, count, member) \
	do { \
		assert_true(dictionary->count > 5); \
		for (uint32_t i = 0; i < dictionary->count; i++) \
			assert_int_equal(dictionary->rows[i].member, last - dictionary->count + 1 + i); \
	} while (0)
	CHECK(gaps, gap_count, stacks);
	CHECK(samples, sample_count, resident_bytes);
	CHECK(residents, resident_count, mapping_count);
	CHECK(pages, pages_count, swapped_bytes);
	CHECK(limits, limit_count, data_bytes);
	CHECK(causes, cause_count, cgroup_kills);
#undef CHECK
	assert_int_equal(dictionary->resident_part_count, dictionary->resident_count);
	trace_close(trace);
}

/* Rows that wait where a circular file turns come behind the turn. */
static void test_circular_rows(void **state)
{
	enum { BLOCKS = 200 };
	struct diag diag = {""};
	(void)state;
	seed = 1;
	struct writer *writer = open_writer(
		&(struct writer_options){.mode = WRITER_CIRCULAR, .max_file_bytes = 64 << 10, .segment_bytes = 3000});
	struct rows rows = add_rows(writer, 10);
	for (uint32_t block = 0; block < BLOCKS; block++) {
		write_single_rows(writer, rows.process, block);
		write_numbered(writer, &rows, block, 1 + (uint32_t)(next() % 400));
	}
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	check_single_rows(path, BLOCKS - 1);
}

/* Wherever a circular file is ended, its footer lists what is there, and no segment that lay where the footer went. */
static void test_circular_ended_anywhere(void **state)
{
	(void)state;
	seed = 1;
	for (uint32_t blocks = 30; blocks < 150; blocks += rounds_step()) {
		struct diag diag = {""};
		struct writer *writer = open_writer(&(struct writer_options){
			.mode = WRITER_CIRCULAR, .max_file_bytes = 64 << 10, .segment_bytes = 3000});
		struct rows rows = add_rows(writer, 10);
		uint64_t events = 0;
		for (uint32_t block = 0; block < blocks; block++) {
			uint32_t count = 1 + (uint32_t)(next() % 400);
			write_numbered(writer, &rows, block, count);
			events += count;
		}
		assert_int_equal(writer_close(writer, NULL, &diag), 0);
		assert_true(check_newest(path, blocks, events, true) > 5);
	}
}

/* Go on with a file of which so many blocks were whole: those that are there can be read, and nothing else is believed
   to be there. */
static void check_mended(uint32_t whole, bool may_have_more)
{
	struct diag diag = {""};
	struct writer *writer;
	bool is_complete;
	assert_int_equal(writer_reopen(&writer, path, NULL, &diag), 0);
	uint32_t last = writer_last_sequence(writer, 77, 3);
	assert_true(last == whole - 1 || (may_have_more && last == whole));
	struct rows rows = add_rows(writer, 10);
	write_numbered(writer, &rows, 1000, 5);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	struct trace *trace = open_trace();
	assert_string_equal(trace_dictionary(trace)->cut_reason, "");
	assert_true(trace_dictionary(trace)->is_complete);
	uint32_t count = trace_block_count(trace);
	assert_true(count > 5);
	trace_close(trace);
	assert_int_equal(read_damaged(&is_complete), count);
}

/* A machine that stopped in the midst of a write: what is torn is led over when the file is gone on with. Of what the
 * write of this block changed, the file has so much. */
static void tear(uint32_t blocks, uint32_t percent)
{
	const uint64_t limit = 100000;
	struct diag diag = {""};
	struct writer *writer = open_writer(
		&(struct writer_options){.mode = WRITER_CIRCULAR, .max_file_bytes = limit, .segment_bytes = limit / 8});
	struct rows rows = add_rows(writer, 10);
	for (uint32_t block = 0; block < blocks; block++)
		write_numbered(writer, &rows, block, 300);
	size_t size;
	uint8_t *data = read_file(&size);
	write_numbered(writer, &rows, blocks, 300);
	size_t size_after;
	uint8_t *after = read_file(&size_after);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	size_t first = 0, last = size_after, common = size < size_after ? size : size_after;
	while (first < common && data[first] == after[first])
		first++;
	if (size == size_after)
		while (last > first && data[last - 1] == after[last - 1])
			last--;
	size_t middle = first + (last - first) * percent / 100;
	memcpy(after + middle, data + (middle < size ? middle : size), middle < size ? size - middle : 0);
	put_file(after, size > middle ? size : middle);
	check_mended(blocks, false);
	free(data);
	free(after);
}

static void test_circular_torn(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < rounds(SEEDS); i++) {
		seed = i + 1;
		for (uint32_t blocks = 20; blocks < 200; blocks += 29)
			tear(blocks, 10 + (uint32_t)(next() % 80));
	}
}

/* ---- whoever comes between two writes ---- */

/* What is done at each write to the file, by its number: `before` and behind it; of the one by which the writer is
   killed a part is written. */
static struct {
	void (*visit)(uint32_t number);
	uint32_t number, killed_at, killed_bytes;
	uint8_t *left; /* the file as a writer that was killed leaves it */
	size_t left_size;
	uint64_t events[2]; /* of blocks that are whole, without and with the one that is being written */
} visits;

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
	if (!visits.visit)
		return syscall(SYS_pwrite64, fd, data, size, offset);
	void (*visit)(uint32_t) = visits.visit;
	visits.visit = NULL;
	if (++visits.number == visits.killed_at) {
		uint32_t part = visits.killed_bytes < size ? visits.killed_bytes : (uint32_t)size;
		assert_int_equal(syscall(SYS_pwrite64, fd, data, part, offset), part);
	}
	visit(visits.number);
	visits.visit = visit;
	return syscall(SYS_pwrite64, fd, data, size, offset);
}

/* A reader finds whole blocks, the newest ones, and nothing that is damaged. */
static void visit_reader(uint32_t number)
{
	(void)number;
	struct trace *trace = open_trace();
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	uint64_t known = dictionary->event_count + dictionary->dropped_events;
	bool is_complete;
	if (!dictionary->is_complete)
		assert_non_null(strstr(dictionary->cut_reason, "without a footer"));
	assert_true(known == visits.events[0] || known == visits.events[1]);
	uint32_t count = trace_block_count(trace);
	trace_close(trace);
	assert_int_equal(read_damaged(&is_complete), count);
}

static void visit_killed(uint32_t number)
{
	if (number == visits.killed_at)
		visits.left = read_file(&visits.left_size);
}

/* Write blocks of several sizes to a file that is full, and end it. The number of its last block that is whole when the
   writer is killed. */
static uint32_t write_visited(void (*visit)(uint32_t), uint32_t blocks)
{
	struct diag diag = {""};
	struct writer *writer = open_writer(
		&(struct writer_options){.mode = WRITER_CIRCULAR, .max_file_bytes = 64 << 10, .segment_bytes = 6000});
	struct rows rows = add_rows(writer, 10);
	uint32_t whole = 0;
	visits.number = 0;
	visits.events[1] = 0;
	for (uint32_t block = 0; block < blocks; block++) {
		uint32_t count = 1 + (uint32_t)(next() % 400);
		visits.events[0] = visits.events[1];
		visits.events[1] += count;
		visits.visit = block >= 40 ? visit : NULL;
		write_numbered(writer, &rows, block, count);
		whole += !visits.left;
	}
	visits.events[0] = visits.events[1];
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	visits.visit = NULL;
	return whole;
}

static void test_circular_read_between_writes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < rounds(SEEDS / 4); i++) {
		seed = i + 1;
		write_visited(visit_reader, 120);
		assert_true(visits.number > 200);
	}
}

/* ---- a reader that the writer overtakes ---- */

/* What is written while a file is read: so many times, from this read on, more than the file takes; each copy is torn
   in its middle. */
static struct {
	struct writer *writer;
	struct rows rows;
	uint32_t block, reads, read_at, tears;
} race;

static void race_write(void)
{
	struct writer *writer = race.writer;
	race.writer = NULL;
	for (uint32_t i = 0; i < 30; i++)
		write_numbered(writer, &race.rows, race.block++, 1 + (uint32_t)(next() % 400));
	race.writer = writer;
}

ssize_t pread(int fd, void *to, size_t size, off_t offset)
{
	if (race.writer && ++race.reads == race.read_at)
		race_write();
	return syscall(SYS_pread64, fd, to, size, offset);
}

ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
	if (!race.writer || !race.tears)
		return syscall(SYS_sendfile, to, from, offset, size);
	race.tears--;
	ssize_t got = syscall(SYS_sendfile, to, from, offset, 10000 + next() % 40000);
	race_write();
	return got;
}

/* It finds blocks of one moment, and each can be read, however much is written by then. */
static void test_circular_overtaken(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < SEEDS * 8; i++) {
		seed = i + 1;
		struct diag diag = {""};
		struct writer *writer = open_writer(&(struct writer_options){
			.mode = WRITER_CIRCULAR, .max_file_bytes = 64 << 10, .segment_bytes = 6000});
		race.rows = add_rows(writer, 10);
		race.writer = writer;
		for (race.block = 0; race.block < 60 + i % 40;)
			write_numbered(writer, &race.rows, race.block++, 1 + (uint32_t)(next() % 400));
		race.reads = 0;
		race.read_at = 2 + (uint32_t)(next() % 60);
		race.tears = i % 8;
		struct trace *trace = open_trace();
		race_write();
		race.writer = NULL;
		struct trace_cursor *cursor = trace_cursor_new(trace);
		struct trace_block block;
		assert_non_null(strstr(trace_dictionary(trace)->cut_reason, "without a footer"));
		assert_true(trace_block_count(trace) > 10);
		for (uint32_t number = 0; number < trace_block_count(trace); number++)
			assert_int_equal(trace_cursor_read(cursor, number, &block, &diag), 0);
		trace_cursor_free(cursor);
		trace_close(trace);
		assert_int_equal(writer_close(writer, NULL, &diag), 0);
	}
}

/* A writer that is killed between two writes, or in the midst of one. */
static void test_circular_killed(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < SEEDS * 6; i += rounds_step()) {
		bool is_complete;
		seed = i + 1;
		visits.killed_at = 1 + i;
		visits.killed_bytes = i % 3 ? (uint32_t)(next() % 3000) : 0;
		uint32_t whole = write_visited(visit_killed, 70);
		assert_non_null(visits.left);
		put_file(visits.left, visits.left_size);
		free(visits.left);
		visits.left = NULL;
		read_damaged(&is_complete);
		check_mended(whole, true);
	}
}

struct pieces {
	uint32_t count;
	uint64_t bytes, events;
};

static int next_piece(void *cookie, uint64_t bytes, uint64_t events, char *next, size_t size, struct diag *diag)
{
	struct pieces *pieces = cookie;
	(void)diag;
	pieces->bytes += bytes;
	pieces->events += events;
	snprintf(next, size, "%s.%u", path, ++pieces->count);
	return 0;
}

/* Each piece is a trace by itself. */
static void test_pieces(void **state)
{
	(void)state;
	struct diag diag = {""};
	struct pieces pieces = {0};
	const uint64_t limit = 50000;
	struct writer *writer = open_writer(&(struct writer_options){
		.mode = WRITER_PIECES, .max_file_bytes = limit, .cookie = &pieces, .next = next_piece});
	struct rows rows = add_rows(writer, 10);
	uint32_t before = 0;
	for (uint32_t block = 0; block < 200; block++) {
		struct trace_gap gap = {
			.process = rows.process, .thread = rows.thread, .from_ns = 5000, .to_ns = 5100, .stacks = 1};
		writer_add_gap(writer, &gap);
		write_numbered(writer, &rows, block, 300);
	}
	assert_int_equal(writer_turn(writer, false, &diag), 0);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	assert_true(pieces.count > 5 && pieces.events == 200 * 300);
	uint32_t gaps = 0;
	char names[64][96];
	struct trace *trace;
	assert_true(pieces.count < 64);
	for (uint32_t piece = 0; piece <= pieces.count; piece++) {
		snprintf(names[piece], sizeof(names[piece]), piece ? "%s.%u" : "%s", path, piece);
		assert_int_equal(trace_open(&trace, names[piece], &diag), 0);
		const struct trace_dictionary *dictionary = trace_dictionary(trace);
		assert_true(dictionary->is_complete && dictionary->size_bytes <= limit);
		assert_int_equal(dictionary->process_count, 1);
		assert_true(dictionary->dropped_events == before * 300);
		gaps += dictionary->gap_count;
		before += trace_block_count(trace);
		trace_close(trace);
	}
	assert_int_equal(before, 200);
	assert_int_equal(gaps, 200);
	/* The newest of them make one. */
	const char *newest[64];
	for (uint32_t piece = 3; piece <= pieces.count; piece++)
		newest[piece - 3] = names[piece];
	assert_int_equal(trace_join(path, newest, pieces.count - 2, &(struct trace_statistics){.waits = 7}, &diag), 0);
	uint32_t kept = check_newest(path, 200, 200 * 300, true);
	assert_true(kept > 50 && kept < 200);
	trace = open_trace();
	assert_int_equal(trace_dictionary(trace)->statistics.waits, 7);
	trace_close(trace);
	for (uint32_t piece = 1; piece <= pieces.count; piece++)
		unlink(names[piece]);
}

/* Who ends without a further event ends in the next piece that is whole; what else comes without events waits for some. */
static void test_turn_at_end(void **state)
{
	(void)state;
	struct diag diag = {""};
	struct pieces pieces = {0};
	struct writer *writer =
		open_writer(&(struct writer_options){.mode = WRITER_PIECES, .cookie = &pieces, .next = next_piece});
	struct rows rows = add_rows(writer, 10);
	write_numbered(writer, &rows, 0, 10);
	assert_int_equal(writer_turn(writer, false, &diag), 0);
	assert_int_equal(pieces.count, 1);
	writer_add_resident(writer, &(struct trace_resident){.process = rows.process}, NULL);
	assert_int_equal(writer_turn(writer, false, &diag), 0);
	assert_int_equal(pieces.count, 1);
	writer_update_process(
		writer, rows.process,
		&(struct trace_process){.pid = 10, .end_ns = 8000, .end = TRACE_END_SIGNAL, .end_status = 9});
	assert_int_equal(writer_turn(writer, false, &diag), 0);
	assert_int_equal(pieces.count, 2);
	assert_int_equal(writer_turn(writer, false, &diag), 0);
	assert_int_equal(pieces.count, 2);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	char name[96];
	struct trace *trace;
	for (uint32_t piece = 1; piece <= 2; piece++) {
		snprintf(name, sizeof(name), "%s.%u", path, piece);
		assert_int_equal(trace_open(&trace, name, &diag), 0);
		if (piece == 1)
			assert_int_equal(trace_dictionary(trace)->processes[0].end, TRACE_END_SIGNAL);
		trace_close(trace);
		unlink(name);
	}
}

/* Whoever goes on with the newest piece gives no number that another one has, and learns how far threads that it does
   not name were taken. */
static void test_newest_piece(void **state)
{
	(void)state;
	struct diag diag = {""};
	struct pieces pieces = {0};
	struct writer *writer =
		open_writer(&(struct writer_options){.mode = WRITER_PIECES, .cookie = &pieces, .next = next_piece});
	struct rows rows = add_rows(writer, 10), other = rows;
	struct trace_thread thread = {.process = rows.process, .tid = 11, .end_ns = INT64_MAX, .name = "other"};
	other.thread = writer_add_thread(writer, &thread);
	for (uint32_t block = 0; block < 4; block++)
		write_numbered(writer, &rows, block, 10);
	for (uint32_t block = 0; block < 3; block++) {
		struct writer_events events = {
			.region = 77, .slot = 4, .first_sequence = block, .last_sequence = block};
		event_add(&events, &other, EVENT_ALLOC, 6000 + block);
		events.first_sequence = block;
		events.part_sequence = block ? block + 1 : 0;
		events.part_events = block ? block + 10 : 0;
		write_all(writer, &events);
		writer_events_fini(&events);
	}
	assert_int_equal(writer_turn(writer, true, &diag), 0);
	write_numbered(writer, &rows, 4, 10);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	char name[96];
	snprintf(name, sizeof(name), "%s.1", path);
	assert_int_equal(writer_reopen(&writer, name, NULL, &diag), 0);
	assert_int_equal(writer_last_sequence(writer, 77, 3), 4);
	assert_int_equal(writer_last_sequence(writer, 77, 4), UINT32_MAX);
	assert_int_equal(writer_learn(writer, path, &diag), 0);
	assert_int_equal(writer_last_sequence(writer, 77, 3), 4);
	assert_int_equal(writer_last_sequence(writer, 77, 4), 2);
	assert_int_equal(writer_last_part(writer, 77, 4, 3), 12);
	assert_int_equal(writer_last_part(writer, 77, 4, 2), 0);
	thread.tid = 12;
	assert_int_equal(writer_add_thread(writer, &thread), other.thread + 1);
	assert_int_equal(writer_learn(writer, "/nowhere", &diag), -ENOENT);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	unlink(name);
}

/* How far the slot of write_numbered() was taken, in the pieces up to this one. */
static void check_divided(uint32_t last_piece, uint32_t sequence, uint64_t behind)
{
	struct diag diag = {""};
	char names[64][96], joined[96];
	const char *all[64];
	struct writer *writer;
	for (uint32_t piece = 0; piece <= last_piece; piece++) {
		snprintf(names[piece], sizeof(names[piece]), piece ? "%s.%u" : "%s", path, piece);
		all[piece] = names[piece];
	}
	snprintf(joined, sizeof(joined), "%s.joined", path);
	assert_int_equal(trace_join(joined, all, last_piece + 1, NULL, &diag), 0);
	assert_int_equal(writer_reopen(&writer, joined, NULL, &diag), 0);
	assert_int_equal(writer_last_sequence(writer, 77, 3), sequence);
	assert_int_equal(writer_events_behind(writer, 77, 3), behind);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	/* Or by learning what the earlier ones have. */
	assert_int_equal(trace_join(joined, &all[last_piece], 1, NULL, &diag), 0);
	assert_int_equal(writer_reopen(&writer, joined, NULL, &diag), 0);
	for (uint32_t piece = last_piece; piece-- > 0;)
		assert_int_equal(writer_learn(writer, all[piece], &diag), 0);
	assert_int_equal(writer_last_sequence(writer, 77, 3), sequence);
	assert_int_equal(writer_events_behind(writer, 77, 3), behind);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	unlink(joined);
}

/* A block that is too large for any piece is spread over several. Whoever recovers those that are there knows how many of
   its events they have, though only the last one names the buffers. */
static void test_large_block(void **state)
{
	(void)state;
	struct diag diag = {""};
	struct pieces pieces = {0};
	const uint64_t limit = 64 << 10;
	struct writer *writer = open_writer(&(struct writer_options){
		.mode = WRITER_PIECES, .max_file_bytes = limit, .cookie = &pieces, .next = next_piece});
	struct rows rows = add_rows(writer, 10);
	write_numbered(writer, &rows, 0, 10);
	write_numbered(writer, &rows, 1, 50000);
	assert_int_equal(writer_last_sequence(writer, 77, 3), 1);
	assert_int_equal(writer_turn(writer, false, &diag), 0);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	assert_true(pieces.count > 3 && pieces.events == 50010);
	uint64_t behind = 0;
	for (uint32_t piece = 0; piece < pieces.count; piece++) {
		char name[96];
		struct trace *trace;
		snprintf(name, sizeof(name), piece ? "%s.%u" : "%s", path, piece);
		assert_int_equal(trace_open(&trace, name, &diag), 0);
		behind += trace_dictionary(trace)->event_count - (piece ? 0 : 10);
		trace_close(trace);
		bool is_whole = behind == 50000;
		check_divided(piece, is_whole, is_whole ? 0 : behind);
	}
	assert_int_equal(behind, 50000);
	for (uint32_t piece = 0; piece <= pieces.count; piece++) {
		char name[96];
		struct trace *trace;
		snprintf(name, sizeof(name), piece ? "%s.%u" : "%s", path, piece);
		assert_int_equal(trace_open(&trace, name, &diag), 0);
		assert_true(trace_dictionary(trace)->is_complete && trace_dictionary(trace)->size_bytes <= limit &&
			    trace_dictionary(trace)->unwritten_events == 0);
		trace_close(trace);
		if (piece)
			unlink(name);
	}
}

/* An event for each end of a stack: one whole, two cut, three without unwind data, four without a stack. */
/* The context of event i: each lasts for some events, and every third is none. */
static struct thread_context context_at(uint32_t i)
{
	uint64_t number = i / 7 % 3 ? i / 7 + 1 : 0;
	return (struct thread_context){{number, number << 40}, number << 20};
}

static void check_contexts(const char *name, uint32_t *first)
{
	struct diag diag = {""};
	struct trace *trace;
	struct trace_block block;
	assert_int_equal(trace_open(&trace, name, &diag), 0);
	struct trace_cursor *cursor = trace_cursor_new(trace);
	for (uint32_t i = 0; i < trace_block_count(trace); i++) {
		assert_int_equal(trace_cursor_read(cursor, i, &block, &diag), 0);
		for (uint32_t row = 0; row < block.count; row++) {
			const struct thread_context wanted = context_at(*first + row);
			const struct thread_context *found = trace_block_context(&block, row);
			if (thread_context_is_none(&wanted))
				assert_null(found);
			else
				assert_true(found && thread_context_is_same(found, &wanted));
		}
		*first += block.count;
	}
	trace_cursor_free(cursor);
	trace_close(trace);
}

/* Contexts stay with their events, also if a block is divided, and if events were taken back before it was written. */
static void test_contexts(void **state)
{
	(void)state;
	enum { EVENTS = 50000 };
	struct diag diag = {""};
	struct pieces pieces = {0};
	struct writer *writer = open_writer(&(struct writer_options){
		.mode = WRITER_PIECES, .max_file_bytes = 64 << 10, .cookie = &pieces, .next = next_piece});
	struct rows rows = add_rows(writer, 10);
	struct writer_events events = {0};
	const struct thread_context other = {{1, 2}, 3};
	uint32_t first = 0;
	for (uint32_t i = 0; i < EVENTS; i++) {
		const struct thread_context context = context_at(i);
		uint32_t at = event_add(&events, &rows, EVENT_ALLOC, 2000 + 100ull * i);
		events.address[at] = 64 * next();
		assert_int_equal(writer_events_set_context(&events, at, &context), 0);
		assert_int_equal(writer_events_set_context(&events, at + 1, &other), 0);
	}
	write_all(writer, &events);
	writer_events_fini(&events);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
	assert_true(pieces.count > 3);
	check_contexts(path, &first);
	for (uint32_t piece = 1; piece <= pieces.count; piece++) {
		char name[96];
		snprintf(name, sizeof(name), "%s.%u", path, piece);
		check_contexts(name, &first);
		unlink(name);
	}
	assert_int_equal(first, EVENTS);
}

static void write_ends(void)
{
	struct writer *writer = open_writer(&(struct writer_options){.compression = 1});
	struct rows rows = add_rows(writer, 10);
	struct writer_events events = {0};
	struct diag diag = {""};
	const uint32_t outermost[] = {writer_intern_frame(writer, rows.image, 64),
				      writer_intern_frame(writer, TRACE_NONE, TRACE_FRAME_TRUNCATED),
				      writer_intern_frame(writer, TRACE_NONE, TRACE_FRAME_UNWINDLESS)};
	for (uint32_t end = 0, i = 0; end < 4; end++)
		for (uint32_t count = 0; count <= end; count++, i++) {
			event_add(&events, &rows, EVENT_ALLOC, 2000 + i);
			events.address[i] = 0x1000 + i * 32;
			events.stack[i] =
				end < 3 ? writer_intern_node(writer, writer_intern_node(writer, 0, outermost[end]),
							     outermost[0])
					: 0;
			events.flags[i] = end == 1 ? EVENT_TRUNCATED : end == 3 ? EVENT_NO_STACK : 0;
		}
	write_all(writer, &events);
	writer_events_fini(&events);
	assert_int_equal(writer_close(writer, NULL, &diag), 0);
}

static void check_ends(bool is_whole_known, uint64_t unwindless)
{
	struct trace *trace = open_trace();
	const struct trace_dictionary *dictionary = trace_dictionary(trace);
	assert_true(dictionary->is_complete);
	assert_int_equal(dictionary->event_count, 10);
	assert_int_equal(dictionary->is_whole_known, is_whole_known);
	assert_int_equal(dictionary->ends.truncated, 2);
	assert_int_equal(dictionary->ends.unwindless, unwindless);
	if (is_whole_known)
		assert_int_equal(dictionary->ends.whole, 1);
	trace_close(trace);
}

/* Take the last bytes of each head of events away, as if an older writer had made the file; zeros behind the streams
   keep the blocks where they are. */
static void shorten_heads(uint32_t bytes)
{
	size_t size;
	uint8_t *data = read_file(&size);
	struct format_block block;
	for (size_t at = sizeof(struct format_header); at + sizeof(block) <= size;
	     at += format_aligned(sizeof(block) + block.head_bytes + block.payload_bytes)) {
		memcpy(&block, data + at, sizeof(block));
		if (block.type != FORMAT_EVENTS)
			continue;
		block.head_bytes -= bytes;
		uint8_t *payload = data + at + sizeof(block) + block.head_bytes;
		memmove(payload, payload + bytes, block.payload_bytes);
		memset(payload + block.payload_bytes, 0, bytes);
		block.payload_bytes += bytes;
		block.raw_bytes += bytes;
		block.payload_checksum = XXH3_64bits(payload, block.payload_bytes);
		format_sign(&block, data + at + sizeof(block));
		memcpy(data + at, &block, sizeof(block));
	}
	put_file(data, size);
	free(data);
}

/* The ends of stacks are counted; what an older file does not tell is not known. */
static void test_stack_ends(void **state)
{
	(void)state;
	bool is_complete;
	write_ends();
	check_ends(true, 3);
	shorten_heads(4);
	check_ends(false, 3);
	assert_int_equal(read_damaged(&is_complete), 1);
	write_ends();
	shorten_heads(8);
	check_ends(false, 0);
}

/* So it is with what is folded. */
static void test_folded_stack_ends(void **state)
{
	(void)state;
	for (int is_known = 0; is_known <= 1; is_known++) {
		const struct trace_fold fold = {.until_ns = 5,
						.interval_ns = 7,
						.event_count = 100,
						.kind_count = {90},
						.ends = {80, 7, 3},
						.is_whole_known = is_known};
		struct diag diag = {""};
		struct writer *writer = open_writer(&(struct writer_options){.compression = 1});
		writer_add_fold(writer, &fold);
		assert_int_equal(writer_close(writer, NULL, &diag), 0);
		struct trace *trace = open_trace();
		const struct trace_dictionary *dictionary = trace_dictionary(trace);
		assert_int_equal(dictionary->kind_count[0], 90);
		assert_int_equal(dictionary->ends.truncated, 7);
		assert_int_equal(dictionary->ends.unwindless, 3);
		assert_int_equal(dictionary->is_whole_known, is_known);
		assert_int_equal(dictionary->ends.whole, is_known ? 80 : 0);
		trace_close(trace);
	}
}

int main(void)
{
	snprintf(path, sizeof(path), "/tmp/xheap-test-trace.%d", (int)getpid());
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_columns),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_flipped_bits),
		cmocka_unit_test(test_later_segment_survives),
		cmocka_unit_test(test_reopen),
		cmocka_unit_test(test_reopen_keeps_what_is_missing),
		cmocka_unit_test(test_rates_that_differ_are_one_boot),
		cmocka_unit_test(test_two_writers_are_refused),
		cmocka_unit_test(test_read_while_written),
		cmocka_unit_test(test_max_file),
		cmocka_unit_test(test_circular),
		cmocka_unit_test(test_circular_rows),
		cmocka_unit_test(test_circular_ended_anywhere),
		cmocka_unit_test(test_circular_torn),
		cmocka_unit_test(test_circular_read_between_writes),
		cmocka_unit_test(test_circular_overtaken),
		cmocka_unit_test(test_circular_killed),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_turn_at_end),
		cmocka_unit_test(test_newest_piece),
		cmocka_unit_test(test_large_block),
		cmocka_unit_test(test_contexts),
		cmocka_unit_test(test_stack_ends),
		cmocka_unit_test(test_folded_stack_ends),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
