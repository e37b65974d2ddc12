/* SPDX-License-Identifier: MIT */
/*
 * The bytes of every kind of row. The expected lines are those of the writer that coded each row by hand, before rows
 * had lists of fields.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/diag.h"
#include "trace/code_rows.h"
#include "trace/format.h"
#include "trace/gap_rows.h"
#include "trace/memory_rows.h"
#include "trace/option_names.h"
#include "trace/process_rows.h"
#include "trace/reopen.h"
#include "trace/row_codec.h"
#include "trace/row_ids.h"
#include "trace/sum_rows.h"
#include "trace/trace.h"
#include "trace/writer.h"

static char path[64], other_path[80];

static struct writer *open_writer(void)
{
	const struct writer_options options = {.compression = -1};
	struct writer_clock clock = {.name = "tsc", .start_ticks = 1000, .mult = 1, .start_realtime_ns = 42};
	struct diag diag = {""};
	struct writer *writer;
	assert_int_equal(writer_open(&writer, path, &options, &diag), 0);
	writer_set_clock(writer, &clock);
	writer_set_host(writer, "host");
	return writer;
}

static void close_writer(struct writer *writer, const struct trace_statistics *statistics)
{
	struct diag diag = {""};
	assert_int_equal(writer_close(writer, statistics, &diag), 0);
}

/* Ids of rows that others refer to. */
struct added {
	uint32_t process, forked, thread, image, entry, heap, node, frame;
};

static struct added add_ordinary(struct writer *writer)
{
	struct added added;
	writer_add_option(writer, "stackwalk", "all");
	added.process = writer_add_process(writer, &(struct trace_process){.pid = 300,
									   .parent = TRACE_NONE,
									   .forked_from = TRACE_NONE,
									   .start_ns = 1100,
									   .end_ns = INT64_MAX,
									   .image = "/bin/program",
									   .command = "program argument",
									   .note = ""});
	added.forked = writer_add_process(writer, &(struct trace_process){.pid = 301,
									  .parent = added.process,
									  .forked_from = added.process,
									  .exec_generation = 2,
									  .start_ns = 1200,
									  .end_ns = 1500,
									  .end = TRACE_END_SIGNAL,
									  .end_status = 11,
									  .image = "/bin/other",
									  .command = "",
									  .note = "not allowed"});
	added.thread = writer_add_thread(
		writer,
		&(struct trace_thread){
			.process = added.process, .tid = 300, .start_ns = -5, .end_ns = INT64_MAX, .name = "main"});
	added.image = writer_add_image(writer, &(struct trace_image){"/lib/libc.so.6", (const uint8_t *)"abcdefgh", 8});
	writer_add_image(writer, &(struct trace_image){.path = "[vdso]"});
	writer_add_mapping(
		writer, &(struct trace_mapping){added.process, added.image, 0x7000, 0x9000, 0x6000, 1100, INT64_MAX});
	writer_add_mapping(writer, &(struct trace_mapping){added.forked, added.image, 0x1000, 0x2000, 0x3000, 0, 1});
	added.entry = writer_add_entry(writer, &(struct trace_entry){added.image, FUNCTION_COUNT - 1, "malloc"});
	writer_add_entry(writer, &(struct trace_entry){TRACE_NONE, 0, "je_malloc"});
	added.heap = writer_add_heap(writer, &(struct trace_heap){added.process, 0x7f0000000000, "main arena"});
	added.frame = writer_intern_frame(writer, added.image, 0x1234);
	added.node = writer_intern_node(writer, 0, added.frame);
	added.node = writer_intern_node(writer, added.node, writer_intern_frame(writer, TRACE_NONE, UINT64_MAX));
	return added;
}

static void add_losses(struct writer *writer, const struct added *added)
{
	struct trace_gap gap = {
		.process = added->process, .thread = added->thread, .from_ns = 1101, .to_ns = 1102, .stacks = 3};
	for (int kind = 0; kind < EVENT_KIND_COUNT; kind++) {
		gap.count[kind] = (uint64_t)kind + 1;
		gap.bytes[kind] = 1000 + (uint64_t)kind;
	}
	writer_add_gap(writer, &gap);
	writer_add_gap(writer, &(struct trace_gap){.process = TRACE_NONE,
						   .thread = TRACE_NONE,
						   .from_ns = INT64_MIN,
						   .to_ns = INT64_MAX,
						   .stacks = UINT64_MAX,
						   .count = {UINT64_MAX},
						   .bytes = {UINT64_MAX}});
	writer_add_sample(writer, &(struct trace_sample){added->forked, 1300, 1 << 20});
	const struct trace_resident_part parts[] = {
		{TRACE_MAPPING_FILES, 0x10000, 0x20000, 4096, "/lib/libc.so.6"},
		{TRACE_MAPPING_ANONYMOUS, UINT64_MAX - 1, UINT64_MAX, UINT64_MAX, ""}};
	writer_add_resident(writer,
			    &(struct trace_resident){.process = added->forked,
						     .time_ns = 1300,
						     .bytes = {1, 2, 3, 4, 5, 6, 7, 8, UINT64_MAX},
						     .mapping_count = 9,
						     .spread = 2},
			    parts);
	const struct trace_page_run runs[] = {{5, 2, TRACE_MAPPING_BREAK, false}, {1, 1, TRACE_MAPPING_SHARED, true}};
	writer_add_pages(writer, &(struct trace_pages){added->forked, 1300, UINT64_MAX, 2, 3, 0, 2}, runs);
	writer_add_limit(writer, &(struct trace_limit){added->forked, 1, 2, TRACE_LIMIT_NONE, 4});
	writer_add_cause(writer, &(struct trace_cause){added->forked, true, 5, 0, TRACE_CAUSE_UNKNOWN});
}

static void add_symbols(struct writer *writer, const struct added *added)
{
	const struct trace_function functions[] = {{"inner()", "_Z5innerv", "a.cc", 7, true},
						   {"outer", "", "", 0, false}};
	writer_add_symbol(writer, added->frame, functions, 2);
	writer_add_named(writer, &(struct trace_named){added->image, TRACE_NAMED_BY_SYMBOLS});
	writer_add_named(writer, &(struct trace_named){added->image, TRACE_NAMED_BY_NOTHING});
}

static void add_folded(struct writer *writer, const struct added *added)
{
	const struct trace_lifetime lifetimes[] = {{3, 4}, {200, UINT64_MAX}};
	struct trace_fold fold = {.until_ns = 500,
				  .interval_ns = 100,
				  .peak_at_ns = 300,
				  .peak_bytes = 4096,
				  .event_count = 20,
				  .kind_count = {9, 8, 7},
				  .failed = 1,
				  .in_flight = 2,
				  .ends = {.whole = 5, .truncated = 3, .unwindless = 4},
				  .unknown_frees = 6,
				  .order_conflicts = 7};
	writer_add_fold(writer, &fold);
	fold.is_whole_known = true;
	writer_add_fold(writer, &fold);
	struct trace_sum sum = {.thread = added->thread,
				.heap = added->heap,
				.stack = added->node,
				.entry = added->entry,
				.flags = TRACE_SUM_NESTED | TRACE_SUM_THREADS,
				.birth_first_ns = 1,
				.birth_last_ns = 2,
				.end_first_ns = 3,
				.end_last_ns = INT64_MAX,
				.lifetime_min_ns = 5,
				.lifetime_max_ns = 6,
				.size_min = 7,
				.size_max = 8,
				.recorded = 9,
				.count = 10,
				.bytes = 11,
				.reallocs = 12,
				.moved = 13,
				.temporary = 14,
				.count_variance = 1.5,
				.bytes_variance = 0.25,
				.peak_count = 15,
				.peak_bytes = 16,
				.peak_count_variance = 1e300,
				.peak_bytes_variance = 0,
				.spread = 2};
	writer_add_sum(writer, &sum, lifetimes);
	sum.heap = sum.entry = TRACE_NONE;
	sum.flags = TRACE_SUM_EARLIER;
	sum.spread = 0;
	writer_add_sum(writer, &sum, NULL);
}

static void add_extremes(struct writer *writer)
{
	char name[130];
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	uint32_t process = writer_add_process(writer, &(struct trace_process){.pid = UINT32_MAX,
									      .parent = TRACE_NONE - 1,
									      .forked_from = TRACE_NONE,
									      .exec_generation = UINT32_MAX,
									      .start_ns = INT64_MIN,
									      .end_ns = INT64_MIN,
									      .end = TRACE_END_DETACHED,
									      .end_status = INT32_MIN,
									      .image = name,
									      .command = name,
									      .note = ""});
	writer_add_thread(writer, &(struct trace_thread){process, UINT32_MAX, INT64_MAX, INT64_MIN, name});
	writer_add_heap(writer, &(struct trace_heap){process, UINT64_MAX, ""});
}

/* ---- what a file has ---- */

static size_t file_read(const char *from, uint8_t *data, size_t size)
{
	FILE *file = fopen(from, "rb");
	assert_non_null(file);
	size_t got = fread(data, 1, size, file);
	fclose(file);
	assert_true(got < size);
	return got;
}

/* The blocks with rows of the file, a line each: "type count bytes". */
static void blocks_describe(const char *from, char *text, size_t size)
{
	static uint8_t data[1 << 16];
	size_t bytes = file_read(from, data, sizeof(data)), length = 0;
	for (size_t at = FORMAT_HEADER_BYTES; at < bytes;) {
		struct format_block block;
		memcpy(&block, data + at, sizeof(block));
		const uint8_t *payload = data + at + sizeof(block) + block.head_bytes;
		assert_int_equal(block.magic, FORMAT_BLOCK_MAGIC);
		assert_false(block.flags & FORMAT_PACKED);
		length += (size_t)snprintf(text + length, size - length, "%u %u ", block.type, block.count);
		for (uint32_t i = 0; i < block.payload_bytes; i++)
			length += (size_t)snprintf(text + length, size - length, "%02x", payload[i]);
		length += (size_t)snprintf(text + length, size - length, "\n");
		at += format_aligned(sizeof(block) + block.head_bytes + block.payload_bytes);
	}
	assert_true(length < size);
}

static void check_blocks(const char *from, const char *expected)
{
	static char found[1 << 16];
	blocks_describe(from, found, sizeof(found));
	if (strcmp(found, expected) != 0)
		fputs(found, stdout); /* print_message() cuts it */
	assert_string_equal(found, expected);
}

/* ---- tests ---- */

static void test_all_rows(void **state)
{
	(void)state;
	struct writer *writer = open_writer();
	const struct added added = add_ordinary(writer);
	add_losses(writer, &added);
	add_symbols(writer, &added);
	add_folded(writer, &added);
	close_writer(writer, &(struct trace_statistics){.waits = 1,
							.wait_ns = 2,
							.logger_cpu_ns = 3,
							.recorder_ns = 4,
							.buffers_written = 5,
							.buffer_size = 6,
							.peak_buffers = 7,
							.suppressed = 8,
							.unwatched = 9,
							.heapless = 10,
							.untraced_calls = UINT64_MAX,
							.pythonless = 11});
	check_blocks(
		path,
		"1 1 0374736304686f7374\n"
		"2 1 09737461636b77616c6b03616c6c\n"
		"5 2 0e2f6c69622f6c6962632e736f2e36086162636465666768065b7664736f5d00\n"
		"3 2 00ac02000000981100feffffffffffffffff01000c2f62696e2f70726f6772616d1070726f6772616d20617267756d65"
		"6e740001ad02010102e01202b817160a2f62696e2f6f74686572000b6e6f7420616c6c6f776564\n"
		"4 1 0000ac0209feffffffffffffffff01046d61696e\n"
		"6 2 00000180e001804080409811feffffffffffffffff0101010180208020ff7f0002\n"
		"7 2 012e066d616c6c6f630000096a655f6d616c6c6f63\n"
		"8 1 018080808080e01f0a6d61696e206172656e61\n"
		"9 2 01b42400ffffffffffffffffff01\n"
		"10 2 01010100\n"
		"12 2 01019a119c11030b01e80702e90703ea0704eb0705ec0706ed0707ee0708ef0709f0070af1070bf2070000ffffffffff"
		"ffffffff01feffffffffffffffff01ffffffffffffffffff010bffffffffffffffffff01ffffffffffffffffff010000"
		"000000000000000000000000000000000000\n"
		"15 1 01a814808040\n"
		"16 3 00000207696e6e65722829095f5a35696e6e65727604612e63630701056f7574657200000000010101010100\n"
		"18 4 00b817c801a8148020140102030607200908070000000000000000000000000000000000000000000000000000000004"
		"00b817c801a8148020140102030607210908070000000000000000000000000000000000000000000000000000000004"
		"05010001020114d20fd40fd60ffeffffffffffffffff0105060708090a0b0c0d0e0f1080808080808080fc3f80808080"
		"808080e83f9ceb81c0c887f99b7e00020304c801ffffffffffffffffff01010000020002d20fd40fd60ffeffffffffff"
		"ffffff0105060708090a0b0c0d0e0f1080808080808080fc3f80808080808080e83f9ceb81c0c887f99b7e0000\n"
		"20 1 01a8140102030405060708ffffffffffffffffff0109020080800480800480200e2f6c69622f6c6962632e736f2e36"
		"03feffffffffffffffff0101ffffffffffffffffff0100\n"
		"23 1 01a814ffffffffffffffffff010203020502020001010501\n"
		"21 1 010102ffffffffffffffffff0104\n"
		"22 1 01010500ffffffffffffffffff01\n"
		"13 1 0102030405060708090affffffffffffffffff010b\n"
		"14 1 40a80e00000000006807000000000000895848545f454e44\n");
}

static void test_extremes(void **state)
{
	(void)state;
	struct writer *writer = open_writer();
	add_extremes(writer);
	close_writer(writer, NULL);
	check_blocks(
		path,
		"1 1 0374736304686f7374\n"
		"3 1 00ffffffff0fffffffff0f00ffffffff0fffffffffffffffffff0105ffffffffffffffffff01ffffffff0f81016e6e6e"
		"6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e"
		"6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e"
		"6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e81016e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e"
		"6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e"
		"6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e"
		"6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e00\n"
		"4 1 0000ffffffff0ffeffffffffffffffff01ffffffffffffffffff0181016e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e"
		"6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e"
		"6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e6e"
		"6e6e6e6e6e6e6e6e6e6e6e6e6e6e\n"
		"8 1 01ffffffffffffffffff0100\n"
		"14 1 40f80500000000003803000000000000895848545f454e44\n");
}

static void test_changed_rows(void **state)
{
	(void)state;
	struct writer *writer = open_writer();
	const struct added added = add_ordinary(writer);
	struct diag diag = {""};
	assert_int_equal(writer_flush(writer, &diag), 0);
	writer_update_process(writer, added.process,
			      &(struct trace_process){.pid = 300,
						      .parent = TRACE_NONE,
						      .forked_from = TRACE_NONE,
						      .start_ns = 1100,
						      .end_ns = 1600,
						      .end = TRACE_END_EXIT,
						      .end_status = -1,
						      .image = "/bin/program",
						      .command = "program argument",
						      .note = ""});
	writer_update_thread(writer, added.thread, &(struct trace_thread){added.process, 300, -5, 1600, "main thread"});
	writer_update_mapping(writer, 0,
			      &(struct trace_mapping){added.process, added.image, 0x7000, 0x9000, 0x6000, 1100, 1550});
	close_writer(writer, NULL);
	check_blocks(
		path,
		"1 1 0374736304686f7374\n"
		"2 1 09737461636b77616c6b03616c6c\n"
		"5 2 0e2f6c69622f6c6962632e736f2e36086162636465666768065b7664736f5d00\n"
		"3 2 00ac02000000981100feffffffffffffffff01000c2f62696e2f70726f6772616d1070726f6772616d20617267756d65"
		"6e740001ad02010102e01202b817160a2f62696e2f6f74686572000b6e6f7420616c6c6f776564\n"
		"4 1 0000ac0209feffffffffffffffff01046d61696e\n"
		"6 2 00000180e001804080409811feffffffffffffffff0101010180208020ff7f0002\n"
		"7 2 012e066d616c6c6f630000096a655f6d616c6c6f63\n"
		"8 1 018080808080e01f0a6d61696e206172656e61\n"
		"3 1 00ac020000009811018019010c2f62696e2f70726f6772616d1070726f6772616d20617267756d656e7400\n"
		"4 1 0000ac020980190b6d61696e20746872656164\n"
		"6 1 00000180e0018040804098119c18\n"
		"14 1 40b0070000000000f003000000000000895848545f454e44\n");
}

static void test_early_end(void **state)
{
	(void)state;
	struct writer *writer = open_writer();
	const struct added added = add_ordinary(writer);
	writer_end_early(writer, -28, "the disk is full", 1700);
	writer_count_after(writer, added.process, 12, 1700);
	writer_count_after(writer, TRACE_NONE, 13, 1800);
	struct diag diag = {""};
	writer_close(writer, NULL, &diag);
	check_blocks(
		path,
		"1 1 0374736304686f7374\n"
		"3 2 00ac02000000981100feffffffffffffffff01000c2f62696e2f70726f6772616d1070726f6772616d20617267756d65"
		"6e740001ad02010102e01202b817160a2f62696e2f6f74686572000b6e6f7420616c6c6f776564\n"
		"19 2 01c81a0c0000c81a0d10746865206469736b2069732066756c6c\n"
		"14 1 40d80200000000009801000000000000895848545f454e44\n");
}

/* How far a slot of a region was taken goes along into a file that takes another one's place. */
static void test_sequences(void **state)
{
	(void)state;
	struct writer *writer = open_writer();
	const struct added added = add_ordinary(writer);
	struct writer_events events = {.process = added.process,
				       .thread = added.thread,
				       .region = 77,
				       .slot = 3,
				       .first_sequence = 1,
				       .last_sequence = 5,
				       .part_sequence = 6,
				       .part_events = 1};
	struct diag diag = {""};
	assert_int_equal(writer_events_reserve(&events, 1), 0);
	events.count = 1;
	events.kind[0] = events.flags[0] = 0;
	events.entry[0] = 0;
	events.heap[0] = added.heap;
	events.stack[0] = added.node;
	events.time[0] = 1500;
	events.duration[0] = events.previous[0] = events.argument[0] = events.argument2[0] = 0;
	events.address[0] = 0x5000;
	events.size[0] = events.usable[0] = 24;
	events.result[0] = 0;
	assert_int_equal(writer_write_events(writer, &events, &diag), 0);
	writer_events_fini(&events);
	close_writer(writer, NULL);
	const struct writer_options options = {.compression = -1};
	assert_int_equal(writer_open_instead(&writer, other_path, path, &options, &diag), 0);
	close_writer(writer, NULL);
	check_blocks(
		other_path,
		"1 1 0374736304686f7374\n"
		"2 1 09737461636b77616c6b03616c6c\n"
		"5 1 0e2f6c69622f6c6962632e736f2e36086162636465666768\n"
		"3 2 00ac02000000981100feffffffffffffffff01000c2f62696e2f70726f6772616d1070726f6772616d20617267756d65"
		"6e740001ad02010102e01202b817160a2f62696e2f6f74686572000b6e6f7420616c6c6f776564\n"
		"6 2 00000180e001804080409811feffffffffffffffff0101010180208020ff7f0002\n"
		"18 1 02004d03050601\n"
		"14 1 40a00400000000006002000000000000895848545f454e44\n");
}

/* ---- what a reader refuses ---- */

enum row_kind {
	ROW_PROCESS,
	ROW_IMAGE,
	ROW_ENTRY,
	ROW_HEAP,
	ROW_GAP,
	ROW_SUM,
	ROW_SEQUENCE,
	ROW_LIFETIME,
	ROW_FRAME,
	ROW_PART
};

static struct rows_texts texts;

static bool row_is_refused(enum row_kind kind, const void *data, size_t size)
{
	struct reading reading = {.at = data, .end = (const uint8_t *)data + size};
	uint32_t id;
	switch (kind) {
	case ROW_PROCESS:
		rows_get_process(&reading, &texts, &id, &(struct trace_process){0});
		break;
	case ROW_IMAGE:
		rows_get_image(&reading, &texts, &(struct trace_image){0});
		break;
	case ROW_ENTRY:
		rows_get_entry(&reading, &texts, &(struct trace_entry){0});
		break;
	case ROW_HEAP:
		rows_get_heap(&reading, &texts, &(struct trace_heap){0});
		break;
	case ROW_GAP:
		rows_get_gap(&reading, NULL, &(struct trace_gap){0});
		break;
	case ROW_SUM:
		rows_get_sum(&reading, NULL, &(struct trace_sum){0});
		break;
	case ROW_SEQUENCE:
		rows_get_sequence(&reading, NULL, &(struct rows_sequence){0});
		break;
	case ROW_LIFETIME:
		rows_get_lifetime(&reading, NULL, &(struct trace_lifetime){0});
		break;
	case ROW_PART:
		rows_get_resident_part(&reading, &texts, &(struct trace_resident_part){0});
		break;
	case ROW_FRAME:
		rows_get_frame(&reading, &(struct trace_frame){0});
		break;
	}
	return reading.has_failed;
}

#define LARGE "\x80\x80\x80\x80\x10" /* 2^32 */
#define SUM_UP_TO_FLAGS "\0\0\0\0"
#define SUM_NUMBERS "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define NEGATIVE "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01" /* the bits of -0.0, which is 0; below: of -2 */
#define MINUS_TWO "\x80\x80\x80\x80\x80\x80\x80\x80\xc0\x01"
#define NO_NUMBER "\x80\x80\x80\x80\x80\x80\x80\xfc\x7f"

/* Each limit, from both sides: a row at it is read, a row above it is refused. */
static void test_limits(void **state)
{
	(void)state;
#define ROW(kind, bytes) \
	{ \
		kind, bytes, sizeof(bytes) - 1 \
	}
	static const struct {
		enum row_kind kind;
		const char *bytes;
		size_t size;
	} valid[] =
		{
			ROW(ROW_PROCESS, "\0\xff\xff\xff\xff\x0f\0\0\0\0\0\0\0\0\0\0"),
			ROW(ROW_PROCESS, "\0\0\0\0\0\0\x06\0\xff\xff\xff\xff\x0f\0\0\0"),
			ROW(ROW_IMAGE, "\0\x02xy"),
			ROW(ROW_ENTRY, "\0\x2e\x01x"),
			ROW(ROW_GAP, "\0\0\0\0\0\x0c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
			ROW(ROW_SUM, SUM_UP_TO_FLAGS "\xff\x01" SUM_NUMBERS NEGATIVE "\0\0\0\0"),
			ROW(ROW_LIFETIME, "\xff\xff\xff\xff\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
			ROW(ROW_FRAME, "\xff\xff\xff\xff\x0f\0"),
			ROW(ROW_PART, "\xff\x01\0\0\0\0"),
		},
	  refused[] = {
		  ROW(ROW_PROCESS, LARGE "\0\0\0\0\0\0\0\0\0\0\0"), /* id */
		  ROW(ROW_PROCESS, "\0" LARGE "\0\0\0\0\0\0\0\0\0\0"),
		  ROW(ROW_PROCESS, "\0\0" LARGE "\0\0\0\0\0\0\0\0\0"),
		  ROW(ROW_PROCESS, "\0\0\0\0\0\0" LARGE "\0\0\0\0\0"),           /* end */
		  ROW(ROW_PROCESS, "\0\0\0\0\0\0\0\0" LARGE "\0\0\0"),           /* status */
		  ROW(ROW_PROCESS, "\0\0\0\0\0\0\0\0\0\x02x\0\0\0"),             /* a NUL in a text */
		  ROW(ROW_PROCESS, "\0\0\0\0\0\0\0\0\0\x05x\x01"),               /* a text that is not all there */
		  ROW(ROW_PROCESS, "\0\0\0\0\0\0\0\0\0\0\0"),                    /* a field is missing */
		  ROW(ROW_IMAGE, "\0\x03xy"),                                    /* bytes that are not all there */
		  ROW(ROW_IMAGE, "\0" LARGE),                                    /* a length beyond 32 bits */
		  ROW(ROW_ENTRY, "\0\x2f\x01x"),                                 /* no such function */
		  ROW(ROW_HEAP, LARGE "\0\0"),                                   /* process */
		  ROW(ROW_HEAP, "\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x03\0"), /* more than 64 bits */
		  ROW(ROW_GAP, "\0\0\0\0\0\x0c\0\0"),                            /* fewer kinds than it says */
		  ROW(ROW_SUM, SUM_UP_TO_FLAGS "\x80\x02" SUM_NUMBERS "\0\0\0\0\0"),
		  ROW(ROW_SUM, SUM_UP_TO_FLAGS "\0" SUM_NUMBERS MINUS_TWO "\0\0\0\0"),
		  ROW(ROW_SUM, SUM_UP_TO_FLAGS "\0" SUM_NUMBERS "\0\0\0" NO_NUMBER "\x01\0"),
		  ROW(ROW_SUM, SUM_UP_TO_FLAGS "\0" SUM_NUMBERS "\0\0\0\0" LARGE), /* classes */
		  ROW(ROW_SEQUENCE, "\0\0" LARGE "\0\0\0"),
		  ROW(ROW_SEQUENCE, "\0\0\0\0\0" LARGE),
		  ROW(ROW_LIFETIME, LARGE "\0"),
		  ROW(ROW_FRAME, LARGE "\0"),
		  ROW(ROW_PART, "\x80\x02\0\0\0\0"), /* kind */
		  ROW(ROW_PART, "\0\0\0\0"),         /* a field is missing */
	  };
	_Static_assert(FUNCTION_COUNT == 0x2f, "the rows of entries have the last function, and one more");
	for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
		if (row_is_refused(valid[i].kind, valid[i].bytes, valid[i].size))
			fail_msg("valid row %zu is refused", i);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (!row_is_refused(refused[i].kind, refused[i].bytes, refused[i].size))
			fail_msg("row %zu, which is not valid, is read", i);
	rows_texts_fini(&texts);
}

/* A text is at most FORMAT_TEXT_MAX bytes long. */
static void test_long_text(void **state)
{
	(void)state;
	for (size_t over = 0; over < 2; over++) {
		struct bytes bytes = {0};
		char *text = malloc(FORMAT_TEXT_MAX + 2);
		memset(text, 't', FORMAT_TEXT_MAX + 1);
		text[FORMAT_TEXT_MAX + over] = 0;
		rows_put_option(&bytes, &(struct trace_option){"", text});
		struct reading reading = {.at = bytes.data, .end = bytes.data + bytes.size};
		struct trace_option row;
		rows_get_option(&reading, &texts, &row);
		assert_int_equal(reading.has_failed, over != 0);
		bytes_fini(&bytes);
		free(text);
	}
	rows_texts_fini(&texts);
}

int main(void)
{
	snprintf(path, sizeof(path), "/tmp/xheap-test-trace-rows.%d", (int)getpid());
	snprintf(other_path, sizeof(other_path), "%s.other", path);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_rows),  cmocka_unit_test(test_extremes),  cmocka_unit_test(test_changed_rows),
		cmocka_unit_test(test_early_end), cmocka_unit_test(test_sequences), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_long_text),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	unlink(other_path);
	return failed;
}
