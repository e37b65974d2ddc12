/* SPDX-License-Identifier: MIT */
#include "session/tracer/hook_cache.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
size_t __sanitizer_get_current_allocated_bytes(void);
#endif

/* Bytes that malloc has given out. */
static size_t used_bytes(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return __sanitizer_get_current_allocated_bytes();
#else
	return mallinfo2().uordblks;
#endif
}

static void file_name(char *path, size_t size, int number)
{
	const char *directory = getenv("TMPDIR");
	snprintf(path, size, "%s/file-%d-%d", directory ? directory : "/tmp", (int)getpid(), number);
}

/* A program that makes files, and maps each once. */
static void files_that_nobody_uses_are_forgotten(void **state)
{
	enum { FILES = 1100 };
	struct hook_cache *cache = hook_cache_new();
	size_t before = used_bytes();
	const char *why;
	(void)state;
	for (int i = 0; i < FILES; i++) {
		struct proc_map map = {.low = 0x1000, .high = 0x2000};
		struct stat status;
		file_name(map.path, sizeof(map.path), i);
		int fd = open(map.path, O_CREAT | O_RDWR | O_EXCL, 0600);
		assert_true(fd >= 0);
		assert_int_equal(write(fd, "none", 4), 4);
		assert_int_equal(fstat(fd, &status), 0);
		map.inode = status.st_ino;
		close(fd);
		assert_null(hook_cache_find(cache, getpid(), &map, false, &why));
	}
	size_t all = used_bytes() - before;
	hook_cache_trim(cache);
	size_t kept = used_bytes() - before;
	assert_true(kept > 0 && kept < all);
	hook_cache_trim(cache);
	assert_int_equal(used_bytes() - before, kept);
	hook_cache_free(cache);
	for (int i = 0; i < FILES; i++) {
		char path[512];
		file_name(path, sizeof(path), i);
		unlink(path);
	}
}

/* The mapping of this program that has the address. */
static struct proc_map mapped_at(uint64_t address)
{
	struct proc_map *maps, found = {.low = 0};
	int count = proc_read_maps(getpid(), &maps);
	assert_true(count > 0);
	for (int i = 0; i < count; i++)
		if (address >= maps[i].low && address < maps[i].high)
			found = maps[i];
	free(maps);
	return found;
}

/* A file with the number, size and time of another one is another one. */
static void times_that_were_set_are_not_believed(void **state)
{
	struct hook_cache *cache = hook_cache_new();
	struct proc_map libc = mapped_at((uint64_t)(uintptr_t)getpid), map = {.low = 0x1000, .high = 0x2000};
	struct stat before, status;
	const char *why;
	char byte = 0;
	(void)state;
	file_name(map.path, sizeof(map.path), 0);
	int from = open(libc.path, O_RDONLY), fd = open(map.path, O_CREAT | O_RDWR | O_EXCL, 0600);
	assert_true(from >= 0 && fd >= 0);
	assert_int_equal(fstat(from, &status), 0);
	assert_int_equal(sendfile(fd, from, NULL, (size_t)status.st_size), status.st_size);
	assert_int_equal(fstat(fd, &before), 0);
	map.inode = before.st_ino;
	void *found = hook_cache_find(cache, getpid(), &map, false, &why);
	assert_non_null(found);
	assert_ptr_equal(hook_cache_find(cache, getpid(), &map, false, &why), found);
	do {
		assert_int_equal(pwrite(fd, &byte, 1, status.st_size - 1), 1);
		assert_int_equal(futimens(fd, (struct timespec[]){before.st_atim, before.st_mtim}), 0);
		assert_int_equal(fstat(fd, &status), 0);
	} while (!memcmp(&status.st_ctim, &before.st_ctim, sizeof(status.st_ctim)));
	assert_int_equal(memcmp(&status.st_mtim, &before.st_mtim, sizeof(status.st_mtim)), 0);
	assert_ptr_not_equal(hook_cache_find(cache, getpid(), &map, false, &why), found);
	hook_cache_free(cache);
	close(from);
	close(fd);
	unlink(map.path);
}

static struct hook_cache *shared;

static void *find_libc(void *map)
{
	const char *why;
	return hook_cache_find(shared, getpid(), map, false, &why);
}

/* Threads that want one file at the same time, one of them before a target does, have one result. */
static void threads_share_what_they_read(void **state)
{
	enum { THREADS = 8, ROUNDS = 20 };
	struct proc_map libc = mapped_at((uint64_t)(uintptr_t)getpid);
	(void)state;
	assert_int_equal(libc.path[0], '/');
	/* What the last round prepares is not freed; `shared` keeps it. */
	for (int round = ROUNDS; round--;) {
		pthread_t threads[THREADS];
		shared = hook_cache_new();
		if (!round)
			hook_cache_prepare(shared);
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, find_libc, &libc), 0);
		for (int i = 0; i < THREADS; i++) {
			void *found;
			pthread_join(threads[i], &found);
			assert_non_null(found);
			assert_ptr_equal(found, find_libc(&libc));
			assert_true(((struct hook_image *)found)->defines_malloc);
		}
		if (round)
			hook_cache_free(shared);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(files_that_nobody_uses_are_forgotten),
					   cmocka_unit_test(times_that_were_set_are_not_believed),
					   cmocka_unit_test(threads_share_what_they_read)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
