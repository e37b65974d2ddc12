/* SPDX-License-Identifier: MIT */
/*
 * The map of pages: fullness and functions of pages, runs of pages that are alike, pages whose blocks are gone. And
 * blocks as only a made trace has them: that overlap, of no size, of terabytes, at the end of the addresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "query/extents.h"
#include "query/page_map.h"
#include "scene.h"
#include "table/table.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"

#define PAGE ((uint64_t)HEAP_PAGE_BYTES)
#define TERABYTE ((uint64_t)1 << 40)

enum { NOW_NS = 100 };

static const char path[] = "pages.xht";

/* A block: freed before now, or live. */
struct block {
	uint64_t address, size;
	bool is_freed;
};

/* Make the map of these blocks, which are allocated one after the other; with sizes, of the pages of those. */
static void map_of_sizes(struct page_map *map, const struct block *blocks, unsigned count, struct heap_bounds sizes)
{
	struct scene scene;
	struct heap_filter filter;
	struct diag diag = {""};
	scene_open(&scene, path);
	uint32_t thread = scene_thread(&scene, scene_process(&scene, 100, TRACE_NONE, 0), 100);
	scene.stack = scene_stack(&scene, 0x1000, 0);
	for (unsigned i = 0; i < count; i++) {
		scene_alloc(&scene, thread, 1 + 2 * i, blocks[i].address, blocks[i].size);
		if (blocks[i].is_freed)
			scene_free(&scene, thread, 2 + 2 * i, blocks[i].address);
	}
	struct trace *trace = scene_read(&scene, path);
	struct heap_table *table = scene_match(trace);
	heap_filter_init(&filter);
	filter.size_bytes = sizes;
	filter.moment = (struct heap_moment){.is_asked = true, .at = {NOW_NS, POSITION_LAST}};
	assert_int_equal(heap_filter_prepare(&filter, table, NULL, &diag), 0);
	page_map_make(map, table, &filter);
	heap_filter_fini(&filter);
	scene_remove(path, trace, table);
}

static void map_of(struct page_map *map, const struct block *blocks, unsigned count)
{
	map_of_sizes(map, blocks, count, (struct heap_bounds){0, UINT64_MAX});
}

/* Runs are in order, do not overlap, and have whole pages. */
static void assert_is_map(const struct page_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct page_run *run = &map->runs[i];
		assert_true(run->count && run->first % PAGE == 0 && run->fullness < PAGE_FULLNESS_COUNT);
		assert_true(run->bytes <= run->count * PAGE);
		assert_int_equal(run->fullness == PAGE_NONE, run->site == HEAP_NONE);
		assert_true(run->first + (run->count - 1) * PAGE >= run->first);
		assert_true(!i || run[-1].first + run[-1].count * PAGE <= run->first);
	}
}

static void assert_run(const struct page_run *run, uint64_t first, uint64_t count, enum page_fullness fullness,
		       uint64_t bytes, uint64_t blocks)
{
	assert_int_equal(run->first, first);
	assert_int_equal(run->count, count);
	assert_int_equal(run->fullness, fullness);
	assert_int_equal(run->bytes, bytes);
	assert_int_equal(run->blocks, blocks);
}

static void test_pages(void **state)
{
	static const struct block blocks[] = {
		{0x10000, 100, false},                      /* little of a page */
		{0x10000 + PAGE, PAGE / 4, false},          /* just a quarter */
		{0x10000 + 2 * PAGE, PAGE / 2, false},      /* just a half */
		{0x10000 + 3 * PAGE, PAGE / 4 * 3, false},  /* just full */
		{0x10000 + 4 * PAGE, PAGE, true},           /* gone */
		{0x10000 + 5 * PAGE, 10 * PAGE + 1, false}, /* many pages, and a byte of one more */
	};
	struct page_map map;
	(void)state;
	map_of(&map, blocks, 6);
	assert_is_map(&map);
	assert_int_equal(map.count, 7);
	assert_run(&map.runs[0], 0x10000, 1, PAGE_LITTLE, 100, 1);
	assert_run(&map.runs[1], 0x10000 + PAGE, 1, PAGE_QUARTER, PAGE / 4, 1);
	assert_run(&map.runs[2], 0x10000 + 2 * PAGE, 1, PAGE_HALF, PAGE / 2, 1);
	assert_run(&map.runs[3], 0x10000 + 3 * PAGE, 1, PAGE_FULL, PAGE / 4 * 3, 1);
	assert_run(&map.runs[4], 0x10000 + 4 * PAGE, 1, PAGE_NONE, 0, 0);
	assert_run(&map.runs[5], 0x10000 + 5 * PAGE, 10, PAGE_FULL, 10 * PAGE, 1);
	assert_run(&map.runs[6], 0x10000 + 15 * PAGE, 1, PAGE_LITTLE, 1, 1);
	page_map_fini(&map);
}

static void test_blocks_of_one_page(void **state)
{
	static const struct block blocks[] = {
		{0x10f00, 0x200, false}, {0x10000, 16, false}, {0x10010, 16, true}, {0x11ff0, 16, false}};
	struct page_map map;
	(void)state;
	map_of(&map, blocks, 4);
	assert_is_map(&map);
	/* Both pages have little, and the block between them counts once. */
	assert_int_equal(map.count, 1);
	assert_run(&map.runs[0], 0x10000, 2, PAGE_LITTLE, 0x200 + 32, 3);
	assert_int_equal(map.runs[0].oldest_ns, 1);
	page_map_fini(&map);
}

/* A page of a block that passes is as full as all blocks make it; pages of others are left out. */
static void test_filter(void **state)
{
	static const struct block blocks[] = {
		{0x10000, 16, false},                  /* passes, */
		{0x10100, PAGE / 2, false},            /* beside another */
		{0x10000 + 2 * PAGE, PAGE, false},     /* others */
		{0x10000 + 4 * PAGE, PAGE, true},      /* gone */
		{0x10000 + 6 * PAGE, 16, false},       /* passes */
		{0x10000 + 7 * PAGE, 3 * PAGE, false}, /* others */
	};
	struct page_map map;
	(void)state;
	map_of_sizes(&map, blocks, 6, (struct heap_bounds){0, 17});
	assert_is_map(&map);
	assert_int_equal(map.count, 2);
	assert_run(&map.runs[0], 0x10000, 1, PAGE_HALF, PAGE / 2 + 16, 2);
	assert_run(&map.runs[1], 0x10000 + 6 * PAGE, 1, PAGE_LITTLE, 16, 1);
	page_map_fini(&map);
	map_of_sizes(&map, blocks, 6, (struct heap_bounds){1, 2});
	assert_int_equal(map.count, 0);
	page_map_fini(&map);
}

static void test_what_no_allocator_does(void **state)
{
	static const struct block blocks[] = {
		{0x10000, 0, false},                              /* of no size */
		{0x20000, 3 * TERABYTE, false},                   /* terabytes, */
		{0x30000, 5000, false},                           /* and another one in them */
		{0x20000 + 3 * TERABYTE - 1, 2, false},           /* over their end */
		{UINT64_MAX - 10, 100, false},                    /* beyond the last address */
		{UINT64_MAX - 3 * PAGE + 1, 2 * PAGE + 5, false}, /* into the last page */
		{UINT64_MAX, 0, false},
		{1, 1, false},
		{UINT64_MAX / 2, TERABYTE, true},
	};
	struct page_map map;
	(void)state;
	map_of(&map, blocks, 9);
	assert_is_map(&map);
	assert_run(&map.runs[0], 0, 1, PAGE_LITTLE, 1, 1);
	assert_run(&map.runs[1], 0x10000, 1, PAGE_LITTLE, 0, 1);
	assert_run(&map.runs[2], 0x20000, 3 * TERABYTE / PAGE, PAGE_FULL, 3 * TERABYTE, 1);
	page_map_fini(&map);
	map_of(&map, blocks, 0);
	assert_int_equal(map.count, 0);
	page_map_fini(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_blocks_of_one_page),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_what_no_allocator_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
