/* SPDX-License-Identifier: MIT */
#include "region/region.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static const struct region_config small = {.buffer_size = 8192,
					   .buffer_min = 4,
					   .buffer_max = 64,
					   .slot_max = 256,
					   .pc_max = 65536,
					   .image_max = 200,
					   .options = OPTION_ENABLED | OPTION_WAIT};

static int path_make(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/dev/shm/xheap-test-region-%d", (int)getpid());
	unlink(path);
	return 0;
}

static int path_remove(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static uint64_t allocated_bytes(const struct region *region)
{
	struct stat status;
	assert_int_equal(fstat(region->fd, &status), 0);
	return (uint64_t)status.st_blocks * 512;
}

static void a_new_region_has_its_first_pages_and_no_more(void **state)
{
	(void)state;
	struct region region;
	struct diag diag = {0};
	struct region_config config = small;

	config.buffer_size = 65536;
	config.buffer_min = 32;
	config.buffer_max = 1024;
	config.slot_max = config.pc_max = config.image_max = 0;
	assert_int_equal(region_create(&region, AT_FDCWD, path, path, &config, &diag), 0);
	assert_int_equal(region.header->magic, REGION_MAGIC);
	assert_int_equal(region.header->options, OPTION_ENABLED | OPTION_WAIT);
	assert_int_equal(region.header->pc_count, PC_FIRST);
	assert_int_equal(region.header->slot_ready, 32);
	assert_int_equal(region.header->pc_ready, 1024);
	assert_int_equal(region.header->buffer_ready, 32);
	assert_int_equal(region.header->image_ready, 0);
	assert_int_equal(region.header->region_id, region.id);
	assert_true(region.bytes > 64u << 20);
	/* 32 buffers, and what an idle process may take less two of them. */
	assert_true(allocated_bytes(&region) >= 32 * 65536);
	assert_true(allocated_bytes(&region) < 32 * 65536 + (128u << 10));
	/* All of it: what a target's address space grows by, beside 9 MiB of the recorder's own. */
	assert_true(region.bytes <= 1024ull * 65536 + (34u << 20));
	struct stat status;
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	region_close(&region);
}

static void it_is_never_made_over_another_file(void **state)
{
	(void)state;
	struct region region, second;
	struct diag diag = {0};

	assert_int_equal(region_create(&region, AT_FDCWD, path, path, &small, &diag), 0);
	assert_int_equal(region_create(&second, AT_FDCWD, path, path, &small, &diag), -EEXIST);
	assert_int_equal(access(path, F_OK), 0);
	region_close(&region);
}

static void impossible_limits_are_refused_and_leave_nothing(void **state)
{
	(void)state;
	static const struct {
		uint32_t size, min, max, pcs;
	} wrong[] = {{0, 1, 1, 0},        {100, 1, 1, 0},         {4096, 0, 1, 0}, {4096, 2, 1, 0},
		     {2u << 20, 1, 1, 0}, {4096, 1, 1u << 31, 0}, {4096, 1, 1, 3}};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct region region;
		struct diag diag = {0};
		struct region_config config = small;
		config.buffer_size = wrong[i].size;
		config.buffer_min = wrong[i].min;
		config.buffer_max = wrong[i].max;
		config.pc_max = wrong[i].pcs;
		assert_int_equal(region_create(&region, AT_FDCWD, path, path, &config, &diag), -EINVAL);
		assert_true(diag.text[0] != 0);
		assert_int_equal(access(path, F_OK), -1);
	}
}

static void no_room_is_an_error_that_leaves_nothing(void **state)
{
	(void)state;
	struct region region;
	struct diag diag = {0};
	struct region_config config = small;

	/* More than the whole file system could hold, so that none of it is really taken. */
	struct statvfs room;
	assert_int_equal(statvfs("/dev/shm", &room), 0);
	uint64_t mebibytes = ((uint64_t)room.f_blocks * room.f_frsize >> 20) + 1;
	if (room.f_blocks == 0 || mebibytes > 1u << 20)
		skip();
	config.buffer_size = 1u << 20;
	config.buffer_min = config.buffer_max = (uint32_t)mebibytes;
	assert_true(region_create(&region, AT_FDCWD, path, path, &config, &diag) < 0);
	assert_int_equal(access(path, F_OK), -1);
}

static void buffers_that_nobody_uses_give_their_memory_back(void **state)
{
	(void)state;
	enum { INTERVALS = 3 };
	struct region region;
	struct diag diag = {0};
	assert_int_equal(region_create(&region, AT_FDCWD, path, path, &small, &diag), 0);
	for (uint32_t i = 0; i < 4; i++)
		region_buffer(&region, i)->state = BUFFER_OWNED;
	region_grow(&region);
	assert_int_equal(region.buffer_ready, 8);
	uint64_t before = allocated_bytes(&region);
	memset(region_buffer_bytes(&region, 7), 1, small.buffer_size);
	/* One is used again each time, though it is free whenever anybody asks. */
	for (int i = 0; i <= INTERVALS; i++) {
		region_buffer(&region, 6)->sequence++;
		region_trim(&region, INTERVALS);
	}
	assert_int_equal(region.buffers_away, 3);
	assert_int_equal(region_buffer(&region, 6)->state, BUFFER_FREE);
	assert_int_equal(region_buffer(&region, 7)->state, BUFFER_AWAY);
	assert_int_equal(allocated_bytes(&region), before - 3 * small.buffer_size);
	/* No fewer than the minimum, whoever is short of memory. */
	for (uint32_t i = 0; i < 4; i++)
		region_buffer(&region, i)->state = BUFFER_FREE;
	region_trim(&region, 0);
	assert_int_equal(region.buffer_ready - region.buffers_away, small.buffer_min);
	/* They come back when they are needed, with their memory. */
	for (uint32_t i = 0; i < 4; i++)
		region_buffer(&region, i)->state = BUFFER_FULL;
	region_grow(&region);
	assert_int_equal(region.buffers_away, 0);
	assert_int_equal(region_buffer(&region, 7)->state, BUFFER_FREE);
	assert_int_equal(allocated_bytes(&region), before);
	assert_int_equal(region_buffer_bytes(&region, 7)[0], 0);
	region_close(&region);
}

static void buffers_grow_before_they_run_out(void **state)
{
	(void)state;
	struct region region;
	struct diag diag = {0};

	assert_int_equal(region_create(&region, AT_FDCWD, path, path, &small, &diag), 0);
	region_grow(&region);
	assert_int_equal(region.buffer_ready, 4);
	for (uint32_t i = 0; i < 3; i++)
		region_buffer(&region, i)->state = BUFFER_OWNED;
	region_grow(&region);
	assert_int_equal(region.buffer_ready, 4);
	region_buffer(&region, 3)->state = BUFFER_FULL;
	region_grow(&region);
	assert_int_equal(region.buffer_ready, 8);
	assert_int_equal(region.header->buffer_ready, 8);
	for (int round = 0; round < 10; round++) {
		for (uint32_t i = 0; i < region.buffer_ready; i++)
			region_buffer(&region, i)->state = BUFFER_FULL;
		region_grow(&region);
	}
	assert_int_equal(region.buffer_ready, region.limits.buffer_max);
	region_buffer_bytes(&region, region.limits.buffer_max - 1)[8191] = 1;
	region_close(&region);
}

static void tables_grow_ahead_of_their_counts(void **state)
{
	(void)state;
	struct region region;
	struct diag diag = {0};

	assert_int_equal(region_create(&region, AT_FDCWD, path, path, &small, &diag), 0);
	region.header->pc_count = 10000;
	for (uint32_t i = 0; i < 32; i++)
		region_slot(&region, i)->state = SLOT_LIVE;
	region_grow(&region);
	assert_in_range(region.header->pc_ready, 15000, 20000);
	assert_int_equal(region.header->slot_ready, 128);
	/* A count that a target has spoiled does not take us beyond the limit. */
	region.header->pc_count = UINT32_MAX;
	region_grow(&region);
	region_grow(&region);
	assert_true(region.pc_ready <= 65536);
	region_close(&region);
}

static void rows_are_added_up_to_their_limits(void **state)
{
	(void)state;
	struct region region;
	struct diag diag = {0};
	struct region_image image = {.base = 4096, .end = 8192};
	struct region_file file = {.path = "/usr/lib/libc.so.6"};
	struct region_entry entry = {.function = FUNCTION_MALLOC, .name = "malloc"};

	assert_int_equal(region_create(&region, AT_FDCWD, path, path, &small, &diag), 0);
	for (uint32_t i = 1; i <= 200; i++) {
		image.bias = i;
		assert_int_equal(region_add_image(&region, &image, &file), i % 200);
	}
	assert_int_equal(region_add_image(&region, &image, &file), UINT32_MAX);
	assert_int_equal(region.header->image_ready, 200);
	assert_int_equal(region_image(&region, 150)->bias, 150);
	assert_int_equal(region_image(&region, 150)->number, 150);
	/* Equal files are one. */
	assert_int_equal(region.file_ready, 1);
	/* A free row is used again, by the next number that leads there. */
	region_free_image(&region, 30);
	assert_int_equal(region_image(&region, 30)->number, 0);
	assert_int_equal(region_add_image(&region, &image, &file), 30);
	assert_int_equal(region_image(&region, 30)->number, 230);
	assert_int_equal(region.header->image_ready, 230);
	/* Files stay as long as the region. */
	for (uint32_t files = 1, row = 0; row != UINT32_MAX; files += row != UINT32_MAX) {
		assert_int_equal(region.file_ready, files);
		region_free_image(&region, (region.image_ready + 1) % 200);
		snprintf(file.path, sizeof(file.path), "/usr/lib/%u", files);
		row = region_add_image(&region, &image, &file);
	}
	assert_int_equal(region.file_ready, region.limits.file_max);
	for (uint32_t i = 0; i < REGION_ENTRY_MAX; i++)
		assert_int_equal(region_add_entry(&region, &entry), i);
	assert_int_equal(region_add_entry(&region, &entry), UINT32_MAX);
	assert_string_equal(region_entry(&region, 7)->name, "malloc");
	region_close(&region);
}

static void ids_of_program_counters_are_new_ones_for_ever(void **state)
{
	(void)state;
	struct region region;
	struct diag diag = {0};
	assert_int_equal(region_create(&region, AT_FDCWD, path, path, &small, &diag), 0);
	struct region_header *header = region.header;
	const uint32_t max = region.limits.pc_max;
	uint32_t low = PC_FIRST;
	header->pc_root = PC_FIRST;
	for (uint32_t id = PC_FIRST; id < 5 * max; id++) {
		if (id >= header->pc_ready)
			region_grow(&region);
		if (region_retire_pcs(&region) != region.pc_low) {
			low += max / 8;
			assert_int_equal(header->pc_low, low);
			/* They can be read until they are used again. */
			assert_int_equal(region_pc(&region, low - 1)->key, low - 1);
			assert_true(header->pc_root == 0 || header->pc_root >= low);
			header->pc_root = header->pc_root ? header->pc_root : id - 1;
			region_reuse_pcs(&region, low);
			assert_int_equal(region_pc(&region, low - 1)->key, 0);
			assert_int_equal(region_pc(&region, low)->key, low);
		}
		assert_true(id < header->pc_ready && header->pc_ready - low <= max);
		assert_int_equal(region_pc(&region, id)->key, 0);
		region_pc(&region, id)->key = id;
		header->pc_count = id + 1;
	}
	region_close(&region);
	/* Another logger knows those that have a row. */
	assert_int_equal(region_open(&region, path, &diag), 0);
	assert_int_equal(region.pc_low, low);
	assert_int_equal(region_pc(&region, 5 * max - 1)->key, 5 * max - 1);
	region_close(&region);
}

static void another_logger_can_adopt_it(void **state)
{
	(void)state;
	struct region region, adopted;
	struct diag diag = {0};
	struct region_image image = {.base = 4096};
	struct region_file file = {.path = "/usr/lib/libc.so.6"};

	assert_int_equal(region_create(&region, AT_FDCWD, path, path, &small, &diag), 0);
	region_add_image(&region, &image, &file);
	region_buffer_bytes(&region, 1)[5] = 42;
	region_slot(&region, 3)->tid = 77;
	uint64_t id = region.id;
	region_close(&region);

	assert_int_equal(region_open(&adopted, path, &diag), 0);
	assert_int_equal(adopted.id, id);
	assert_int_equal(adopted.image_ready, 1);
	assert_int_equal(adopted.image_number[1], 1);
	assert_int_equal(adopted.file_ready, 1);
	assert_int_equal(adopted.buffer_ready, 4);
	assert_int_equal(region_buffer_bytes(&adopted, 1)[5], 42);
	assert_int_equal(region_slot(&adopted, 3)->tid, 77);
	region_close(&adopted);
}

/* Spoil one 32-bit word of the header and open: either refused, or opened with limits that fit the file. */
static void a_spoiled_header_is_refused_or_harmless(void **state)
{
	(void)state;
	static const uint32_t values[] = {0, 1, 7, 4095, 65537, 0x7fffffff, 0x80000000, UINT32_MAX};
	struct region region, adopted;
	struct diag diag = {0};
	unsigned refused = 0;

	assert_int_equal(region_create(&region, AT_FDCWD, path, path, &small, &diag), 0);
	struct region_header good = *region.header;
	for (size_t offset = 0; offset < offsetof(struct region_header, message); offset += 4) {
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			*region.header = good;
			*(uint32_t *)((uint8_t *)region.header + offset) = values[i];
			if (region_open(&adopted, path, &diag) != 0) {
				refused++;
				continue;
			}
			assert_true(adopted.buffer_ready <= adopted.limits.buffer_max);
			assert_true(adopted.slot_ready <= adopted.limits.slot_max);
			assert_true(adopted.pc_ready <= (uint64_t)adopted.pc_low + adopted.limits.pc_max);
			const uint8_t *end = region_buffer_bytes(&adopted, adopted.limits.buffer_max);
			assert_true(end == (const uint8_t *)adopted.header + adopted.bytes);
			region_close(&adopted);
		}
	}
	assert_true(refused > 100);
	region_close(&region);
}

/* Return how many mappings of the test's file this process has. */
static int mapping_count(void)
{
	char line[1024];
	int count = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps))
		count += strstr(line, path) != NULL;
	if (maps)
		fclose(maps);
	return count;
}

static bool is_over;

static void *make_again_and_again(void *unused)
{
	struct region region, adopted;
	struct diag diag = {0};
	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		unlink(path);
		if (region_create(&region, AT_FDCWD, path, path, &small, &diag) != 0)
			return &is_over;
		if (region_open(&adopted, path, &diag) != 0)
			return &is_over;
		region_let_go(&adopted);
		region_close(&adopted);
		region_close(&region);
	}
	return unused;
}

/* Who has it mapped counts as a target, for as long as it lives. */
static void no_child_has_it_whenever_it_is_forked(void **state)
{
	(void)state;
	enum { CHILDREN = 1000 };
	pthread_t thread;
	int status, had = 0;
	void *failed;
	assert_int_equal(pthread_create(&thread, NULL, make_again_and_again, NULL), 0);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(mapping_count());
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		had += WEXITSTATUS(status) != 0;
	}
	__atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
	pthread_join(thread, &failed);
	assert_null(failed);
	assert_int_equal(had, 0);
}

static void a_file_cut_short_is_refused(void **state)
{
	(void)state;
	struct region region, adopted;
	struct diag diag = {0};

	assert_int_equal(region_create(&region, AT_FDCWD, path, path, &small, &diag), 0);
	size_t bytes = region.bytes;
	region_close(&region);
	for (size_t size = 0; size < bytes; size += bytes / 37) {
		assert_int_equal(truncate(path, (off_t)size), 0);
		assert_true(region_open(&adopted, path, &diag) < 0);
	}
}

static void durations_keep_eleven_bits(void **state)
{
	(void)state;
	for (uint64_t ticks = 0; ticks < 2048; ticks++)
		assert_int_equal(region_duration_decode(region_duration_encode(ticks)), ticks);
	for (uint64_t ticks = 2048; ticks < 1ull << 38; ticks += ticks / 7) {
		uint64_t decoded = region_duration_decode(region_duration_encode(ticks));
		assert_true(decoded <= ticks && ticks - decoded <= ticks / 2048);
	}
	assert_int_equal(region_duration_encode(UINT64_MAX), 0xfffe);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, path_make, path_remove)
	const struct CMUnitTest tests[] = {
		TEST(a_new_region_has_its_first_pages_and_no_more),
		TEST(it_is_never_made_over_another_file),
		TEST(impossible_limits_are_refused_and_leave_nothing),
		TEST(no_room_is_an_error_that_leaves_nothing),
		TEST(buffers_that_nobody_uses_give_their_memory_back),
		TEST(buffers_grow_before_they_run_out),
		TEST(tables_grow_ahead_of_their_counts),
		TEST(rows_are_added_up_to_their_limits),
		TEST(ids_of_program_counters_are_new_ones_for_ever),
		TEST(another_logger_can_adopt_it),
		TEST(a_spoiled_header_is_refused_or_harmless),
		TEST(a_file_cut_short_is_refused),
		TEST(no_child_has_it_whenever_it_is_forked),
		TEST(durations_keep_eleven_bits),
	};
#undef TEST
	return cmocka_run_group_tests(tests, NULL, NULL);
}
