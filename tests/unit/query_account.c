/* SPDX-License-Identifier: MIT */
/*
 * The account of resident memory: each class with known bytes; sums by heap and by mapping; which pages belong to whom;
 * and readings as only a made trace has them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "match/match.h"
#include "query/account.h"
#include "scene.h"
#include "table/index_file.h"
#include "table/table.h"
#include "trace/code_rows.h"
#include "trace/process_rows.h"
#include "trace/reader.h"
#include "trace/row_ids.h"

#define PAGE ((uint64_t)TRACE_PAGE_BYTES)
#define BREAK ((uint64_t)0x1000000)
#define ARENA ((uint64_t)0x7f1234000000)
#define OTHER ((uint64_t)0x7f2000000000)

enum { NOW_NS = 1000 };

static const char path[] = "account.xht";

struct read_pages {
	struct scene scene;
	uint32_t process, thread, main_heap, arena, mapped, other;
	struct trace_page_run runs[16];
	uint32_t count;
	uint64_t end; /* of the last run */
	struct trace_resident split;
	struct trace_pages pages;
	struct trace *trace;
	struct heap_table *table;
	struct account account;
};

static uint32_t heap(struct read_pages *reading, uint64_t handle, const char *name)
{
	return writer_add_heap(reading->scene.writer,
			       &(struct trace_heap){.process = reading->process, .handle = handle, .name = name});
}

static void begin(struct read_pages *reading)
{
	*reading = (struct read_pages){.count = 0};
	scene_open(&reading->scene, path);
	reading->process = scene_process(&reading->scene, 100, TRACE_NONE, 0);
	reading->thread = scene_thread(&reading->scene, reading->process, 100);
	reading->main_heap = heap(reading, 0x7f3000000000, "libc.so.6 main arena");
	reading->arena = heap(reading, ARENA + 0x30, "libc.so.6 arena");
	reading->mapped = heap(reading, 0x7f3000000000, "libc.so.6 mapped blocks");
	reading->other = heap(reading, 0x7f3100000000, "libjemalloc.so.2");
	reading->scene.stack = scene_stack(&reading->scene, 0x1000, 0);
}

/* A block of a heap; its usable size is a multiple of 8. freed_ns: 0: it is live. */
static void block(struct read_pages *reading, uint32_t heap, int64_t time_ns, uint64_t address, uint64_t size,
		  int64_t freed_ns)
{
	reading->scene.heap = heap;
	scene_alloc(&reading->scene, reading->thread, time_ns, address, size);
	if (freed_ns)
		scene_free(&reading->scene, reading->thread, freed_ns, address);
}

static void run(struct read_pages *reading, uint8_t kind, uint64_t base, uint64_t pages, bool is_next)
{
	reading->runs[reading->count++] = (struct trace_page_run){(base - reading->end) / PAGE, pages, kind, is_next};
	reading->end = base + pages * PAGE;
	reading->split.bytes[kind] += pages * PAGE;
}

/* The sums by heap and by mapping are those of all; nothing is counted twice. */
static void assert_sums(const struct read_pages *reading)
{
	const struct account *account = &reading->account;
	uint64_t whole = 0, heaps = 0, resident = reading->pages.left_out_bytes, live = 0;
	for (int class = 0; class < ACCOUNT_CLASS_COUNT; class ++) {
		uint64_t of_heaps = 0;
		for (uint32_t i = 0; i <= account->heap_count; i++)
			of_heaps += account->heaps[i].bytes[class];
		assert_int_equal(of_heaps, account->sum.bytes[class]);
		whole += account->sum.bytes[class];
	}
	for (uint32_t i = 0; i <= account->heap_count; i++)
		heaps += account->heaps[i].resident_bytes;
	for (int kind = 0; kind < TRACE_MAPPING_KIND_COUNT; kind++)
		resident += reading->split.bytes[kind];
	for (uint32_t i = 0; i < account->site_count; i++)
		live += account->sites[i].live_bytes;
	assert_int_equal(whole, account->sum.resident_bytes);
	assert_int_equal(heaps, account->sum.resident_bytes);
	assert_int_equal(resident, account->sum.resident_bytes);
	assert_int_equal(live, account->sum.bytes[ACCOUNT_LIVE]);
}

/* Close the trace, make the account of the process at its only reading, and check its sums. */
static void finish(struct read_pages *reading, uint32_t process)
{
	reading->split.process = reading->pages.process = process;
	reading->split.time_ns = reading->pages.time_ns = NOW_NS;
	reading->pages.spread = reading->count;
	writer_add_resident(reading->scene.writer, &reading->split, NULL);
	writer_add_pages(reading->scene.writer, &reading->pages, reading->runs);
	reading->trace = scene_read(&reading->scene, path);
	reading->table = scene_match(reading->trace);
	const struct trace_pages *found = account_reading(reading->table, process, ACCOUNT_LAST, 0);
	assert_non_null(found);
	reading->account.has_caches = true;
	account_make(&reading->account, reading->table, found);
	assert_sums(reading);
}

static void end(struct read_pages *reading)
{
	account_fini(&reading->account);
	scene_remove(path, reading->trace, reading->table);
}

#define assert_class(reading, class, expected) assert_int_equal((reading).account.sum.bytes[ACCOUNT_##class], expected)

/* A block at the begin, one of two pages of which the second is not resident, and free memory between and behind. */
static void test_main_arena(void **state)
{
	struct read_pages reading;
	(void)state;
	begin(&reading);
	block(&reading, reading.main_heap, 10, BREAK + 0x2a0, 21, 0);
	block(&reading, reading.main_heap, 20, BREAK + 4 * PAGE + 16, 2 * PAGE - 16, 0);
	run(&reading, TRACE_MAPPING_BREAK, BREAK, 5, false);
	run(&reading, TRACE_MAPPING_BREAK, BREAK + 6 * PAGE, 4, true);
	finish(&reading, reading.process);
	assert_class(reading, LIVE, 21 + PAGE - 16);
	assert_class(reading, ROUNDING, 8 + 3 + 8);
	assert_class(reading, PINNED, PAGE - 32);
	assert_class(reading, BETWEEN, 8);
	/* Of the pages behind the second block the first one has the words of the last chunk. */
	assert_class(reading, TRIMMABLE, 3 * PAGE + 3 * PAGE);
	assert_class(reading, UNTRIMMABLE, PAGE);
	assert_int_equal(reading.account.page_bytes, PAGE);
	assert_int_equal(reading.account.kept_bytes, 21);
	assert_int_equal(reading.account.kept_count, 1);
	assert_int_equal(reading.account.mapping_count, 1);
	end(&reading);
}

/* A free chunk keeps 48 bytes: the page behind a block that ends less before it stays. */
static void test_words_of_chunks(void **state)
{
	for (uint64_t left = 0; left <= 64; left += 16) {
		struct read_pages reading;
		(void)state;
		begin(&reading);
		/* It ends so many bytes before the page, and 8 bytes of the next chunk. */
		block(&reading, reading.main_heap, 10, BREAK + 0x800, PAGE - 0x800 - left + 8, 0);
		block(&reading, reading.main_heap, 20, BREAK + 3 * PAGE + 16, 1000, 0);
		run(&reading, TRACE_MAPPING_BREAK, BREAK, 4, false);
		finish(&reading, reading.process);
		/* Without a byte before the page its word lies on the page. */
		assert_class(reading, TRIMMABLE, left >= 48 ? 2 * PAGE : PAGE);
		assert_class(reading, UNTRIMMABLE, left >= 48 || left == 0 ? 0 : PAGE);
		end(&reading);
	}
}

/* The end of another arena is not given back, free memory inside of it is. */
static void test_other_arena(void **state)
{
	struct read_pages reading;
	(void)state;
	begin(&reading);
	block(&reading, reading.arena, 10, ARENA + 0xc00, 2000, 0);
	block(&reading, reading.arena, 20, ARENA + 4 * PAGE + 16, PAGE - 24, 0);
	run(&reading, TRACE_MAPPING_ANONYMOUS, ARENA, 8, false);
	finish(&reading, reading.process);
	assert_class(reading, TRIMMABLE, 2 * PAGE);
	/* Without the page of the last chunk's head. */
	assert_class(reading, TOPS, 2 * PAGE);
	assert_class(reading, UNTRIMMABLE, PAGE);
	end(&reading);
}

/* An arena has two pieces of memory: only the newer one has an end where it grows. */
static void test_full_arena(void **state)
{
	struct read_pages reading;
	const uint64_t newer = ARENA - (UINT64_C(64) << 20);
	(void)state;
	begin(&reading);
	block(&reading, reading.arena, 10, ARENA + 0xc00, 2000, 0);
	block(&reading, reading.arena, 20, newer + 0x30, 2000, 0);
	run(&reading, TRACE_MAPPING_ANONYMOUS, newer, 4, false);
	run(&reading, TRACE_MAPPING_ANONYMOUS, ARENA, 4, false);
	finish(&reading, reading.process);
	assert_class(reading, TOPS, 3 * PAGE);
	assert_class(reading, TRIMMABLE, 2 * PAGE);
	end(&reading);
}

/* Seven chunks of a size stay in the cache of the thread that freed them; those of a page that has no others keep it. */
static void test_caches(void **state)
{
	struct read_pages reading;
	(void)state;
	begin(&reading);
	for (uint64_t i = 0; i < 9; i++)
		block(&reading, reading.main_heap, 10 + (int64_t)i, BREAK + (i + 1) * PAGE + 16, 56, 100 + (int64_t)i);
	block(&reading, reading.main_heap, 50, BREAK + 12 * PAGE + 16, 1000, 0);
	run(&reading, TRACE_MAPPING_BREAK, BREAK, 13, false);
	finish(&reading, reading.process);
	assert_true(reading.account.has_caches);
	assert_class(reading, CACHES, 7 * PAGE);
	/* Page 0 has the head of the arena, 8 and those behind are free. */
	assert_class(reading, TRIMMABLE, 4 * PAGE);
	assert_class(reading, UNTRIMMABLE, PAGE);
	end(&reading);
}

/* A thread that gets a block which it did not free had none in its cache. */
static void test_empty_cache(void **state)
{
	struct read_pages reading;
	(void)state;
	begin(&reading);
	block(&reading, reading.main_heap, 10, BREAK + PAGE + 16, 56, 100);
	block(&reading, reading.main_heap, 200, BREAK + 2 * PAGE + 16, 56, 300);
	block(&reading, reading.main_heap, 50, BREAK + 4 * PAGE, 1000, 0);
	run(&reading, TRACE_MAPPING_BREAK, BREAK, 5, false);
	finish(&reading, reading.process);
	assert_class(reading, CACHES, PAGE);
	end(&reading);
}

/* What has no block: memory of another allocator, shared memory, code, data of an image, and the program's own. */
static void test_without_blocks(void **state)
{
	struct read_pages reading;
	(void)state;
	begin(&reading);
	writer_add_mapping(reading.scene.writer, &(struct trace_mapping){.process = reading.process,
									 .image = reading.scene.image,
									 .base = OTHER + 40 * PAGE,
									 .end = OTHER + 50 * PAGE,
									 .unload_ns = INT64_MAX});
	block(&reading, reading.other, 10, OTHER, 3000, 0);
	block(&reading, reading.mapped, 20, OTHER + 60 * PAGE + 16, PAGE - 16, 0);
	run(&reading, TRACE_MAPPING_ANONYMOUS, OTHER, 5, false);
	run(&reading, TRACE_MAPPING_SHARED, OTHER + 10 * PAGE, 2, false);
	run(&reading, TRACE_MAPPING_CODE, OTHER + 20 * PAGE, 3, false);
	run(&reading, TRACE_MAPPING_ANONYMOUS, OTHER + 45 * PAGE, 4, false);
	run(&reading, TRACE_MAPPING_ANONYMOUS, OTHER + 60 * PAGE, 2, false);
	reading.split.bytes[TRACE_MAPPING_FILES] = 11 * PAGE;
	reading.split.bytes[TRACE_MAPPING_STACKS] = 12 * PAGE;
	reading.split.bytes[TRACE_MAPPING_RECORDER] = 13 * PAGE;
	reading.split.bytes[TRACE_MAPPING_OTHER] = 14 * PAGE;
	reading.split.bytes[TRACE_MAPPING_UNREAD] = 15 * PAGE;
	reading.pages.left_out_bytes = 16 * PAGE;
	reading.pages.huge_bytes = TRACE_HUGE_UNKNOWN;
	reading.pages.swapped_bytes = 17 * PAGE;
	finish(&reading, reading.process);
	assert_class(reading, ALLOCATORS, 4 * PAGE);
	assert_class(reading, BETWEEN, PAGE - 3000);
	assert_class(reading, SHARED, 2 * PAGE);
	assert_class(reading, FILES, 3 * PAGE + 4 * PAGE + 11 * PAGE);
	assert_class(reading, STACKS, 12 * PAGE);
	assert_class(reading, RECORDER, 13 * PAGE);
	assert_class(reading, OTHER, 14 * PAGE);
	assert_class(reading, MAPPED, PAGE);
	assert_class(reading, UNKNOWN, 15 * PAGE + 16 * PAGE);
	assert_int_equal(reading.account.mappings[0].heap, reading.other);
	assert_int_equal(reading.account.huge_bytes, TRACE_HUGE_UNKNOWN);
	assert_int_equal(reading.account.swapped_bytes, 17 * PAGE);
	end(&reading);
}

/* Who keeps pages: the site with the most bytes; alone, if no other block lies there. */
static void test_keepers(void **state)
{
	struct read_pages reading;
	(void)state;
	begin(&reading);
	block(&reading, reading.other, 10, OTHER + 8, 40, 0);
	block(&reading, reading.other, 20, OTHER + PAGE + 8, 40, 0);
	reading.scene.stack = scene_stack(&reading.scene, 0x2000, 0);
	block(&reading, reading.other, 30, OTHER + PAGE + 512, 24, 0);
	block(&reading, reading.other, 40, OTHER + 2 * PAGE, PAGE / 4, 0);
	run(&reading, TRACE_MAPPING_ANONYMOUS, OTHER, 3, false);
	finish(&reading, reading.process);
	const struct account_site *sites = reading.account.sites;
	assert_int_equal(reading.account.site_count, 2);
	assert_int_equal(sites[0].page_bytes, 2 * PAGE);
	assert_int_equal(sites[0].alone_bytes, PAGE);
	assert_int_equal(sites[0].kept_bytes, 80);
	assert_int_equal(sites[0].kept_count, 2);
	assert_int_equal(sites[1].page_bytes, 0);
	assert_int_equal(sites[1].kept_bytes, 24);
	assert_int_equal(sites[1].block_count, 2);
	end(&reading);
}

/* A forked process has the blocks that its parent had at the fork, and its own. */
static void test_fork(void **state)
{
	struct read_pages reading;
	(void)state;
	begin(&reading);
	block(&reading, reading.other, 10, OTHER, PAGE, 700);
	block(&reading, reading.other, 20, OTHER + PAGE, PAGE, 400);
	uint32_t child = scene_process(&reading.scene, 200, reading.process, 500);
	reading.thread = scene_thread(&reading.scene, child, 200);
	block(&reading, reading.other, 600, OTHER + 2 * PAGE, PAGE, 0);
	run(&reading, TRACE_MAPPING_ANONYMOUS, OTHER, 4, false);
	finish(&reading, child);
	assert_class(reading, LIVE, 2 * PAGE);
	assert_class(reading, ALLOCATORS, 2 * PAGE);
	end(&reading);
}

/* Blocks that overlap, of terabytes, and at the end of all addresses; runs of as many pages as there are. */
static void test_hostile(void **state)
{
	struct read_pages reading;
	(void)state;
	begin(&reading);
	block(&reading, reading.other, 10, OTHER + 100, PAGE, 0);
	block(&reading, reading.other, 20, OTHER + 200, 2 * PAGE, 0);
	block(&reading, reading.other, 30, OTHER + 4 * PAGE, UINT64_C(1) << 45, 0);
	block(&reading, reading.other, 40, OTHER + 6 * PAGE, 100, 0);
	block(&reading, reading.arena, 50, 16, 100, 0);
	block(&reading, reading.main_heap, 60, UINT64_MAX - 64, 40, 0);
	block(&reading, reading.main_heap, 70, 4, 0, 100);
	run(&reading, TRACE_MAPPING_BREAK, 0, UINT64_C(1) << 33, false);
	run(&reading, TRACE_MAPPING_ANONYMOUS, OTHER, UINT64_C(1) << 36, false);
	run(&reading, TRACE_MAPPING_ANONYMOUS, OTHER + (UINT64_C(1) << 49), 0, true);
	run(&reading, TRACE_MAPPING_ANONYMOUS, OTHER + (UINT64_C(1) << 50), 0, false);
	finish(&reading, reading.process);
	assert_class(reading, LIVE, 2 * PAGE + 100 + (UINT64_C(1) << 45) + 100);
	end(&reading);
}

static void test_which(void **state)
{
	struct read_pages reading;
	struct trace_pages pages = {0};
	struct trace_resident split = {0};
	(void)state;
	begin(&reading);
	block(&reading, reading.other, 1, OTHER, PAGE, 0);
	for (int64_t i = 0; i < 5; i++) {
		split.time_ns = pages.time_ns = 100 * (i + 1);
		split.bytes[TRACE_MAPPING_FILES] = (i == 2 ? 9 : 5) * PAGE;
		writer_add_resident(reading.scene.writer, &split, NULL);
		writer_add_pages(reading.scene.writer, &pages, NULL);
	}
	reading.trace = scene_read(&reading.scene, path);
	reading.table = scene_match(reading.trace);
	assert_int_equal(account_reading(reading.table, TRACE_NONE, ACCOUNT_LARGEST, 0)->time_ns, 300);
	assert_int_equal(account_reading(reading.table, 0, ACCOUNT_LAST, 0)->time_ns, 500);
	assert_int_equal(account_reading(reading.table, 0, ACCOUNT_NEAREST, 0)->time_ns, 100);
	assert_int_equal(account_reading(reading.table, 0, ACCOUNT_NEAREST, 160)->time_ns, 200);
	assert_int_equal(account_reading(reading.table, 0, ACCOUNT_NEAREST, INT64_MAX)->time_ns, 500);
	assert_null(account_reading(reading.table, 7, ACCOUNT_LAST, 0));
	end(&reading);
}

/* An index has the account of the question that was asked last: no page is counted again. */
static void test_kept(void **state)
{
	static const char index_path[] = "account.index";
	struct read_pages reading;
	struct heap_table *indexed;
	struct diag diag = {""};
	struct account first = {.has_caches = true}, again = first, other = {.has_caches = false};
	(void)state;
	begin(&reading);
	block(&reading, reading.main_heap, 10, BREAK + 0x2a0, 21, 0);
	block(&reading, reading.other, 20, OTHER, PAGE, 0);
	run(&reading, TRACE_MAPPING_BREAK, BREAK, 5, false);
	run(&reading, TRACE_MAPPING_ANONYMOUS, OTHER, 3, false);
	finish(&reading, reading.process);
	struct heap_build how = {.fd = heap_index_begin(".", &diag), .reserved_bytes = HEAP_INDEX_HEAD_BYTES};
	assert_int_equal(heap_table_build(&indexed, reading.trace, &how, &diag), 0);
	assert_int_equal(heap_index_write(indexed, path, index_path, &diag), 0);
	struct trace_pages pages = *account_reading(indexed, reading.process, ACCOUNT_LAST, 0);
	account_make(&first, indexed, &pages);
	/* It would be empty. */
	pages.spread = 0;
	account_make(&again, indexed, &pages);
	account_make(&other, indexed, &pages);
	assert_memory_equal(&first.sum, &reading.account.sum, sizeof(first.sum));
	assert_memory_equal(&again.sum, &first.sum, sizeof(first.sum));
	assert_int_equal(again.has_glibc, first.has_glibc);
	assert_int_equal(again.has_caches, first.has_caches);
	assert_int_equal(again.heap_count, first.heap_count);
	assert_memory_equal(again.heaps, first.heaps, (first.heap_count + 1) * sizeof(*first.heaps));
	assert_int_equal(again.mapping_count, 2);
	assert_memory_equal(again.mappings, first.mappings, 2 * sizeof(*first.mappings));
	assert_int_equal(again.site_count, first.site_count);
	assert_memory_equal(again.sites, first.sites, first.site_count * sizeof(*first.sites));
	assert_int_equal(other.sum.bytes[ACCOUNT_LIVE], 0);
	account_fini(&first);
	account_fini(&again);
	account_fini(&other);
	heap_table_free(indexed);
	unlink(index_path);
	end(&reading);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_main_arena),     cmocka_unit_test(test_words_of_chunks),
		cmocka_unit_test(test_other_arena),    cmocka_unit_test(test_full_arena),
		cmocka_unit_test(test_caches),         cmocka_unit_test(test_empty_cache),
		cmocka_unit_test(test_without_blocks), cmocka_unit_test(test_keepers),
		cmocka_unit_test(test_fork),           cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_which),          cmocka_unit_test(test_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
