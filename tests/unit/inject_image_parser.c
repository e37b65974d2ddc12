/* SPDX-License-Identifier: MIT */
#include "inject/image_parser.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "hook/find.h"
#include "os/proc.h"

enum { STRANGER = 64024, CUT_BYTES = 4096, LOOKS = 100000 };

/* The library that this program has mapped, and a copy of it that belongs to another user. */
static struct stat own_status, status;
static int own = -1, theirs = -1;

static int open_libc(void)
{
	struct proc_map *maps;
	int count = proc_read_maps(getpid(), &maps), fd = -1;
	uint64_t address = (uint64_t)(uintptr_t)getpid;
	for (int i = 0; i < count; i++)
		if (address >= maps[i].low && address < maps[i].high)
			fd = open(maps[i].path, O_RDONLY | O_CLOEXEC);
	free(maps);
	return fd;
}

static int prepare(void **state)
{
	(void)state;
	own = open_libc();
	theirs = memfd_create("theirs", MFD_CLOEXEC);
	if (geteuid() != 0 || own < 0 || theirs < 0 || !file_copy(theirs, own) || fchown(theirs, STRANGER, STRANGER))
		return 0;
	fstat(own, &own_status);
	fstat(theirs, &status);
	return 0;
}

static void need_root(void)
{
	if (status.st_uid != STRANGER)
		skip();
}

/* A child finds what this process finds itself. */
static void the_plan_is_the_same(void **state)
{
	struct hook_image expected, found;
	(void)state;
	need_root();
	assert_int_equal(image_parse(&expected, own, &own_status, false), 0);
	assert_int_equal(image_parse(&found, theirs, &status, false), 0);
	assert_true(found.target_count > 0 && found.defines_malloc);
	assert_int_equal(found.target_count, expected.target_count);
	for (uint32_t i = 0; i < found.target_count; i++) {
		struct hook_target left = expected.targets[i], right = found.targets[i];
		assert_int_equal(!left.reason, !right.reason);
		if (left.reason)
			assert_string_equal(left.reason, right.reason);
		left.reason = right.reason = NULL;
		assert_memory_equal(&left, &right, sizeof(left));
	}
	hook_image_fini(&expected);
	hook_image_fini(&found);
}

/* A file that its owner cuts ends the child, and not this process. */
static void a_file_that_is_cut_ends_the_child(void **state)
{
	struct hook_image image;
	(void)state;
	need_root();
	int cut = memfd_create("cut", MFD_CLOEXEC);
	char head[CUT_BYTES];
	assert_int_equal(file_read(theirs, head, sizeof(head), 0), sizeof(head));
	assert_true(file_write(cut, head, sizeof(head), 0));
	assert_int_equal(image_parse(&image, cut, &status, false), -EPIPE);
	close(cut);
}

static void *parse_on(void *is_enough)
{
	struct hook_image image;
	while (!__atomic_load_n((bool *)is_enough, __ATOMIC_RELAXED))
		if (image_parse(&image, theirs, &status, false) == 0)
			hook_image_fini(&image);
	return NULL;
}

/* Whether a child that has its filter was seen; it must have nothing else. */
static bool was_seen;

static void look(void *cookie, pid_t child)
{
	(void)cookie;
	char path[40], text[4096];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)child);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = fd >= 0 ? file_read(fd, text, sizeof(text) - 1, 0) : 0;
	text[size] = 0;
	close(fd);
	if (strncmp(text, "Name:\txheap-parser\n", 19) != 0 || !strstr(text, "\nSeccomp:\t2\n"))
		return;
	was_seen = true;
	static const char *const none[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		char row[40];
		snprintf(row, sizeof(row), "\n%s:\t0000000000000000\n", none[i]);
		assert_non_null(strstr(text, row));
	}
	assert_non_null(strstr(text, "\nNoNewPrivs:\t1\n"));
}

static void the_child_has_no_rights(void **state)
{
	pthread_t thread;
	bool is_enough = false;
	(void)state;
	need_root();
	assert_int_equal(pthread_create(&thread, NULL, parse_on, &is_enough), 0);
	for (int i = 0; i < LOOKS && !was_seen; i++)
		proc_children(getpid(), look, NULL);
	__atomic_store_n(&is_enough, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(was_seen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_plan_is_the_same),
					   cmocka_unit_test(a_file_that_is_cut_ends_the_child),
					   cmocka_unit_test(the_child_has_no_rights)};
	return cmocka_run_group_tests(tests, prepare, NULL);
}
