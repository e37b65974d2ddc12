/* SPDX-License-Identifier: MIT */
/* Caches of glibc before 2.34, whose address is the key of their chunks. They are those of threads that began after the
   caches were last read. */
#include "heapwalk/thread_caches.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "heapwalk/chunk_chains.h"

enum { BINS = 64, NUMBER_MOST = 7, BIN = 1, CHUNK_BYTES = 48, WINDOW_CHUNKS = READING_WINDOW_BYTES / 32 };

static const struct glibc_layout layout = {.heap_bytes = 32, .fast_count = 10, .bin_count = BINS};

struct cache {
	uint16_t number[BINS];
	uint64_t first[BINS];
};

/* The main arena: a chunk that lies in the cache, a chunk in use, the cache, and the top. */
static struct {
	uint64_t before[2];
	uint64_t size_before, cached_word, cached[4];
	uint64_t used_before, used_word, used[4];
	uint64_t cache_before, cache_word;
	struct cache cache;
	uint64_t top_before, top_word, top[4];
} heap __attribute__((aligned(16)));
static struct glibc_arena arena;

static uint8_t windows[2][READING_WINDOW_BYTES];
static uint32_t offsets[WINDOW_CHUNKS + 2];
static struct heapwalk walk;
static struct heap_reading reading;
static struct region region;
/* As a thread's variable: its address is the thread pointer plus an offset. */
static struct cache *own_cache;

static uint64_t address_of(const void *place)
{
	return (uint64_t)(uintptr_t)place;
}

static int heap_begin(void **state)
{
	static const struct region_config config = {
		.buffer_size = 8192, .buffer_min = 4, .buffer_max = 64, .options = OPTION_ENABLED};
	char path[64];
	struct diag diag = {0};
	(void)state;
	snprintf(path, sizeof(path), "/dev/shm/xheap-test-caches-%d", (int)getpid());
	assert_int_equal(region_create(&region, AT_FDCWD, path, path, &config, &diag), 0);
	unlink(path);
	memset(&heap, 0, sizeof(heap));
	heap.cached_word = heap.used_word = CHUNK_BYTES | GLIBC_BEFORE_IN_USE;
	heap.cache_word = (sizeof(heap.cache) + GLIBC_CHUNK_HEAD) | GLIBC_BEFORE_IN_USE;
	heap.top_word = CHUNK_BYTES | GLIBC_BEFORE_IN_USE;
	heap.cached[1] = address_of(&heap.cache);
	heap.cache.number[BIN] = 1;
	heap.cache.first[BIN] = address_of(heap.cached);
	arena.words[layout.fast_count + 1] = address_of(&heap.top_before);
	walk = (struct heapwalk){.pid = getpid()};
	reading = (struct heap_reading){
		.walk = &walk,
		.region = &region,
		.glibc = {.layout = &layout, .main_arena = address_of(&arena), .cached_count = NUMBER_MOST},
		.until_ns = UINT64_MAX,
		.first = windows[0],
		.second = windows[1],
		.offsets = offsets,
		.cache_offset = -(int64_t)sizeof(own_cache)};
	own_cache = NULL;
	reading_has_advanced(&reading);
	return 0;
}

static int heap_end(void **state)
{
	(void)state;
	map_fini(&reading.caches);
	region_close(&region);
	heapwalk_fini(&walk);
	return 0;
}

/* A thread calls the heap for the first time. */
static void thread_begin(void)
{
	struct region_slot *slot = region_slot(&region, 0);
	own_cache = &heap.cache;
	slot->serial = region.header->thread_serial++;
	slot->fs_base = address_of(&own_cache + 1);
	slot->state = SLOT_LIVE;
}

static void test_chain_with_a_new_cache(void **state)
{
	const struct chunk_chain chain = {.arena = address_of(&arena),
					  .start = address_of(&heap.size_before),
					  .end = address_of(&heap.top_before)};
	(void)state;
	caches_renew(&reading);
	thread_begin();
	assert_true(chunk_chain_walk(&reading, &chain));
	assert_int_equal(walk.count, 3);
	assert_int_equal(walk.blocks[0].address, address_of(heap.cached));
	assert_int_equal(walk.blocks[0].heap, (uint32_t)HEAPWALK_UNCONFIRMED);
	assert_int_equal(walk.blocks[1].address, address_of(heap.used));
	assert_int_equal(walk.blocks[1].heap, 0);
	/* The thread has ended. */
	own_cache = NULL;
	assert_true(caches_drop(&reading));
	assert_int_equal(walk.count, 2);
	assert_int_equal(walk.blocks[1].address, address_of(heap.used));
}

static void test_list_of_an_unknown_cache(void **state)
{
	const struct cache_bins bins = {.is_wanted = {[BIN] = true}};
	struct map cached = {0};
	(void)state;
	assert_true(cache_list(&reading, address_of(&heap.cache), &bins, &cached));
	assert_int_equal(cached.count, 1);
	assert_non_null(map_find(&cached, address_of(&heap.size_before)));
	map_fini(&cached);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_chain_with_a_new_cache, heap_begin, heap_end),
		cmocka_unit_test_setup_teardown(test_list_of_an_unknown_cache, heap_begin, heap_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
