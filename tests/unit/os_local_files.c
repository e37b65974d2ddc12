/* SPDX-License-Identifier: MIT */
/* Files of overlays, and whether the logger may open them itself. The mounts are those of a namespace of each test's
   own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/local_files.h"

enum { NO_MOUNTS = 77 };

static char place[PATH_MAX - 64];

/* Return a path below the place, until the next call but three. */
static const char *at(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, PATH_MAX, "%s/%s", place, name);
	return path;
}

static void make_directory(const char *name)
{
	if (mkdir(at(name), 0755) != 0 && errno != EEXIST)
		_exit(2);
}

static void make_file(const char *name)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		_exit(2);
	close(fd);
}

static void mount_overlay(const char *name, const char *options)
{
	make_directory(name);
	if (mount("test", at(name), "overlay", 0, options) != 0)
		_exit(NO_MOUNTS);
}

/* Mounts of this process's own below the place: a tmpfs with three layers. */
static void mounts_begin(void)
{
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		_exit(NO_MOUNTS);
	if (mount("test", place, "tmpfs", 0, "mode=755") != 0 || chdir(place) != 0)
		_exit(NO_MOUNTS);
	static const char *const names[] = {"lower", "other", "upper", "work"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		make_directory(names[i]);
	make_file("lower/file");
	make_file("other/file");
}

static bool is_local(const char *path)
{
	struct stat status;
	/* The kernel has it in memory then. */
	stat(path, &status);
	int found = local_find(-1, path);
	bool is_good = found >= 0 && local_is(found, 0);
	if (found < 0)
		fprintf(stderr, "%s is not found: %d\n", path, found);
	close(found);
	return is_good;
}

/* Return what a function says of mounts of its own; skip if nobody may mount here. */
static bool says(bool (*function)(void))
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		mounts_begin();
		_exit(!function());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_MOUNTS)
		skip();
	return WEXITSTATUS(status) == 0;
}

static char options[3 * PATH_MAX];

static bool of_memory(void)
{
	return is_local(at("lower/file"));
}

static void mount_over(void)
{
	snprintf(options, sizeof(options), "lowerdir=%s:%s", at("lower"), at("other"));
	mount_overlay("over", options);
}

static bool of_overlay(void)
{
	mount_over();
	return is_local(at("over/file"));
}

/* The verdict of one overlay does not depend on what was judged before. */
static bool of_overlay_on_overlay(void)
{
	mount_over();
	snprintf(options, sizeof(options), "lowerdir=%s:%s", at("over"), at("other"));
	mount_overlay("upon", options);
	return is_local(at("upon/file")) && is_local(at("over/file")) && is_local(at("upon/file"));
}

/* As system extensions lie on /usr, and name /usr. */
static bool of_hidden_layer(void)
{
	snprintf(options, sizeof(options), "lowerdir=%s:%s", at("other"), at("lower"));
	mount_overlay("lower", options);
	return is_local(at("lower/file"));
}

static bool of_relative_layer(void)
{
	snprintf(options, sizeof(options), "lowerdir=lower,upperdir=%s,workdir=%s", at("upper"), at("work"));
	mount_overlay("over", options);
	return is_local(at("over/file"));
}

/* Nothing says where the layers of relative paths are. */
static bool of_relative_layers(void)
{
	mount_overlay("over", "lowerdir=lower:other");
	return is_local(at("over/file"));
}

/* The layers are behind the root of this process: those of its own root are no matter, and those of others unknown. */
static bool of_own_root(bool is_root)
{
	mount_over();
	snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s", at("lower"), at("upper"), at("work"));
	mount_overlay("root", options);
	static const char *const names[] = {"root/proc", "root/inner"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		make_directory(names[i]);
	if (mount("/proc", at("root/proc"), NULL, MS_BIND, NULL) != 0 ||
	    mount(at("over"), at("root/inner"), NULL, MS_BIND, NULL) != 0)
		_exit(NO_MOUNTS);
	if (chroot(at("root")) != 0 || chdir("/") != 0)
		_exit(NO_MOUNTS);
	return is_local(is_root ? "/file" : "/inner/file");
}

static bool of_own_root_itself(void)
{
	return of_own_root(true);
}

static bool of_other_below_root(void)
{
	return of_own_root(false);
}

static void test_local(void **state)
{
	(void)state;
	assert_true(says(of_memory));
	assert_true(says(of_overlay));
	assert_true(says(of_overlay_on_overlay));
	assert_true(says(of_hidden_layer));
	assert_true(says(of_relative_layer));
	assert_false(says(of_relative_layers));
}

static void test_roots(void **state)
{
	(void)state;
	assert_true(says(of_own_root_itself));
	/* Its layers' names lead elsewhere in this root. */
	assert_false(says(of_other_below_root));
}

/* Without descriptors nobody learns the device of files in memory: a device that is not known either is not it. */
static void test_unknown_device(void **state)
{
	struct rlimit usual;
	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_false(local_has_device(0, 0, 0));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, usual.rlim_max}), 0);
	bool is_good = local_has_device(0, 0, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_false(is_good);
}

/* Its mount is in no table. */
static void test_memory_device(void **state)
{
	struct stat status;
	int fd = memfd_create("x", MFD_CLOEXEC);
	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_true(local_has_device(0, major(status.st_dev), minor(status.st_dev)));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_local), cmocka_unit_test(test_roots),
					   cmocka_unit_test(test_unknown_device), cmocka_unit_test(test_memory_device)};
	char *own = getcwd(NULL, 0);
	snprintf(place, sizeof(place), "%s/mounts", own ? own : ".");
	free(own);
	mkdir(place, 0755);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
