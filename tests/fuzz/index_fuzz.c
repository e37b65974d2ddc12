/* SPDX-License-Identifier: MIT */
/*
 * An index may be anybody's, too. The input is an index of the trace that is written here, read as every question does
 * it: opened, gone through, added up. Which trace it is of and all checksums are mended first, or nothing behind them
 * would be read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "../unit/scene.c"
#include "base/memory.h"
#include "cells/cell_scan.h"
#include "match/match.h"
#include "query/window.h"
#include "replay.h"
#include "table/index_file.h"
#include "trace/reader.h"
#include "trace/row_ids.h"

enum { INPUT_MAX = 1 << 18, ROUNDS = 1200, ADDRESSES = 90 };

#define expect(is_so) ((is_so) ? (void)0 : (fprintf(stderr, "index_fuzz:%d: %s\n", __LINE__, #is_so), abort()))

static char trace_path[64], index_path[80];
static struct trace *trace;
static struct heap_index_head good;

/* Two processes, forked, with reallocs and blocks that live long. */
static void trace_write(void)
{
	struct scene scene;
	bool is_live[ADDRESSES] = {false};
	scene_open(&scene, trace_path);
	uint32_t parent = scene_process(&scene, 100, TRACE_NONE, 0), child = scene_process(&scene, 200, parent, 5000);
	uint32_t threads[] = {scene_thread(&scene, parent, 100), scene_thread(&scene, child, 200)}, random = 1;
	for (int64_t i = 0; i < ROUNDS; i++) {
		random = random * 1664525 + 1013904223;
		uint32_t at = (random >> 8) % ADDRESSES, thread = threads[i > ROUNDS / 2];
		uint64_t address = 0x7f0000000000 + at * 64;
		scene.stack = scene_stack(&scene, 0x1000 + (int)(at % 7), 0x2000 + (int)(at % 3), 0);
		if (is_live[at] && at % 5 == 0)
			scene_realloc(&scene, thread, i * 10, i * 10 + 5, address, address, random >> 20);
		else if (is_live[at])
			scene_free(&scene, thread, i * 10, address);
		else
			scene_alloc(&scene, thread, i * 10, address, random >> 20);
		is_live[at] = !is_live[at] || at % 5 == 0;
	}
	scene_close(&scene);
}

/* The trace, and what its index says about it. With INDEX_SEED set the index is written there: a seed for the
   corpus. */
static void begin(void)
{
	struct diag diag = {""};
	struct heap_table *table;
	const char *path = index_path, *seed = getenv("INDEX_SEED");
	snprintf(trace_path, sizeof(trace_path), "/dev/shm/xheap-fuzz-%d.xht", (int)getpid());
	snprintf(index_path, sizeof(index_path), "%s.index", trace_path);
	path = seed ? seed : index_path;
	trace_write();
	expect(trace_open(&trace, trace_path, &diag) == 0);
	struct heap_build how = {.fd = heap_index_begin(seed ? "." : "/dev/shm", &diag),
				 .reserved_bytes = HEAP_INDEX_HEAD_BYTES};
	expect(how.fd >= 0 && heap_table_build(&table, trace, &how, &diag) == 0);
	expect(heap_index_write(table, trace_path, path, &diag) == 0);
	expect(heap_index_keep_answer(table, HEAP_ANSWER_SURVEY, 17, (const uint8_t *)"a survey", 8));
	expect(heap_index_keep_answer(table, HEAP_ANSWER_PAGE, 17, (const uint8_t *)"an answer", 9));
	heap_table_free(table);
	FILE *file = fopen(path, "rb");
	expect(file && fread(&good, sizeof(good), 1, file) == 1);
	fclose(file);
}

static void mend_strips(uint8_t *data, size_t size, uint64_t at)
{
	struct heap_strips strips;
	memcpy(&strips, data + at, sizeof(strips));
	for (unsigned i = 0; i < PACK_STRIPS; i++)
		if (strips.of[i].offset <= size && strips.of[i].bytes <= size - strips.of[i].offset)
			strips.of[i].checksum = (uint32_t)XXH3_64bits(data + strips.of[i].offset, strips.of[i].bytes);
	memcpy(data + at, &strips, sizeof(strips));
}

static void mend(uint8_t *data, size_t size)
{
	struct heap_index_head head;
	memcpy(&head, data, sizeof(head));
	memcpy(head.magic, good.magic, sizeof(head.magic));
	head.head_bytes = good.head_bytes;
	head.group_rows = good.group_rows;
	head.trace = good.trace;
	head.process_count = good.process_count;
	head.count %= 1 << 16;
	head.group_count = (head.count + PACK_ROWS - 1) / PACK_ROWS;
	head.site_count %= 1 << 12;
	head.numbers_count = head.numbers_count ? head.site_count : 0;
	head.use_count = head.numbers_count ? head.use_count % (1 << 12) : 0;
	head.point_count %= 1 << 20;
	head.instant_count %= 1 << 10;
	head.fault_count %= 1 << 10;
	head.checkpoint_count %= 1 << 8;
	head.copies_count %= 1 << 10;
	head.sizes_count = head.sizes_count ? head.group_count : 0;
	uint64_t strips_bytes = groups_strip_count(head.group_count) * sizeof(struct heap_strips),
		 copies_bytes = groups_strip_count(head.copies_count) * sizeof(struct heap_strips);
	uint64_t bytes =
		head.group_count * sizeof(struct heap_group) + strips_bytes +
		head.site_count * sizeof(struct heap_site) + head.process_count * sizeof(struct heap_process) +
		head.trace.heaps * sizeof(uint32_t) + head.numbers_count * sizeof(struct heap_numbers) +
		head.use_count * sizeof(struct heap_use) + head.instant_count * sizeof(struct heap_instant) +
		heap_time_count(head.point_count) * sizeof(int64_t) + head.fault_count * sizeof(struct heap_fault) +
		head.checkpoint_count * sizeof(struct heap_checkpoint) + head.copies_count * sizeof(struct heap_group) +
		copies_bytes + head.sizes_count * sizeof(struct heap_sizes);
	if (head.tables_offset > size || bytes > size - head.tables_offset)
		head.tables_offset = bytes <= size ? size - bytes : head.tables_offset;
	uint64_t strips_offset = head.tables_offset + head.group_count * sizeof(struct heap_group),
		 copies_offset =
			 head.tables_offset + bytes - head.sizes_count * sizeof(struct heap_sizes) - copies_bytes;
	for (uint64_t at = 0; bytes <= size && at < strips_bytes; at += sizeof(struct heap_strips))
		mend_strips(data, size, strips_offset + at);
	for (uint64_t at = 0; bytes <= size && at < copies_bytes; at += sizeof(struct heap_strips))
		mend_strips(data, size, copies_offset + at);
	if (bytes <= size)
		head.tables_checksum = XXH3_64bits(data + head.tables_offset, bytes);
	for (int i = 0; i < HEAP_ANSWER_COUNT; i++)
		if (head.answers[i].offset <= size && head.answers[i].bytes <= size - head.answers[i].offset)
			head.answers[i].checksum = XXH3_64bits(data + head.answers[i].offset, head.answers[i].bytes);
	head.checksum = XXH3_64bits(&head, offsetof(struct heap_index_head, checksum));
	memcpy(data, &head, sizeof(head));
}

/* What scan.h promises of allocations, whatever the file said. */
static void check_rows(const struct heap_table *table)
{
	struct heap_scan_plan plan = HEAP_SCAN_ALL;
	struct heap_scan scan;
	const struct heap_rows *rows;
	plan.columns = PACK_EVERYTHING;
	heap_scan_begin(&scan, table, &plan, NULL);
	while ((rows = heap_scan_next(&scan)))
		for (uint32_t i = 0; i < rows->count; i++) {
			const struct heap_allocation own = heap_rows_get(rows, i), *row = &own;
			expect(row->site < table->site_count &&
			       (row->end_site == HEAP_NONE || row->end_site < table->site_count));
			expect(row->thread < table->dictionary->thread_count && row->end <= HEAP_END_OPEN);
			expect(row->heap == TRACE_NONE || row->heap < table->dictionary->heap_count);
			expect(rows->details[i].end_thread == HEAP_NONE ||
			       rows->details[i].end_thread < table->dictionary->thread_count);
		}
	heap_scan_end(&scan);
}

/* Cells, or a sample of them, of whatever rows there are. */
static void check_cells(const struct heap_table *table)
{
	struct heap_filter filter;
	struct cell_bounds bounds;
	struct cell_scan_result result;
	uint32_t *nodes = memory_zeroed(table->site_count, sizeof(*nodes));
	for (uint32_t i = 0; i < table->site_count; i++)
		nodes[i] = i;
	heap_filter_init_for(&filter, table);
	cell_bounds_make(&bounds, -1, table->duration_ns > 0 ? table->duration_ns : 0, 64, NULL, 0);
	const struct cell_scan scan = {.table = table,
				       .filter = &filter,
				       .bounds = &bounds,
				       .nodes = nodes,
				       .most = 1000,
				       .sample_most = 1000,
				       .node_count = table->site_count};
	cell_scan(&scan, &result);
	for (uint32_t i = 0; i < result.set.count; i++) {
		const struct cell_keys keys = cell_keys_of(&result.set.cells[i]);
		expect(keys.node < table->site_count && keys.thread < table->dictionary->thread_count);
		expect(keys.heap == CELL_NO_HEAP || keys.heap < table->dictionary->heap_count);
		expect(keys.birth <= keys.end && keys.end <= bounds.count);
	}
	cell_scan_result_fini(&result);
	cell_bounds_fini(&bounds);
	heap_filter_fini(&filter);
	free(nodes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t copy[INPUT_MAX];
	struct heap_table *table;
	struct diag diag = {""};
	const char *path = index_path;
	if (size > INPUT_MAX || size < sizeof(struct heap_index_head))
		return 0;
	if (!trace)
		begin();
	memcpy(copy, data, size);
	mend(copy, size);
	FILE *file = fopen(index_path, "wb");
	expect(file && fwrite(copy, size, 1, file) == 1);
	fclose(file);
	if (heap_index_read(&table, trace, trace_path, &path, 1) != 0)
		return 0;
	struct heap_index_head head;
	struct heap_filter filter;
	struct heap_window window, by_heap;
	heap_filter_init(&filter);
	uint64_t answer_bytes;
	memcpy(&head, copy, sizeof(head));
	for (int i = 0; i < HEAP_ANSWER_COUNT; i++)
		free(heap_index_read_answer(table, (enum heap_index_answer)i, head.answers[i].key, &answer_bytes));
	check_rows(table);
	check_cells(table);
	for (int by = HEAP_BY_NONE; by <= HEAP_BY_CLASS; by++) {
		heap_window_make(&window, table, &filter,
				 (struct heap_range){by % 2 ? 1000 : 0, by % 2 ? 5000 : table->duration_ns},
				 (enum heap_by)by);
		heap_window_make_by_heap(&by_heap, &window, table, &filter);
		heap_window_fini(&by_heap);
		heap_window_fini(&window);
	}
	heap_filter_fini(&filter);
	/* Copies of checkpoints are read for moments. */
	for (int64_t at_ns = 0; at_ns <= ROUNDS * 10; at_ns += ROUNDS * 2) {
		heap_filter_init(&filter);
		filter.moment = (struct heap_moment){.is_asked = true, .at = {at_ns, POSITION_LAST}};
		heap_filter_prepare(&filter, table, NULL, &diag);
		heap_window_make(&window, table, &filter, (struct heap_range){0, at_ns}, HEAP_BY_NONE);
		heap_window_fini(&window);
		heap_filter_fini(&filter);
	}
	heap_table_free(table);
	return 0;
}

static void end(void)
{
	trace_close(trace);
	unlink(index_path);
	unlink(trace_path);
}

const struct replay replay = {
	.bytes_max = INPUT_MAX, .cuts = 40, .flip_rounds = 2000, .front_bytes = 12000, .end = end};
