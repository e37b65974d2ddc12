/* SPDX-License-Identifier: MIT */
#include "inject/program.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/proc.h"

/* The options of glibc's loader and musl's before a program. With others, such as --list and --verify, a loader starts
   none. */
static const struct {
	const char *name;
	bool has_value;
} options[] = {
	{"--argv0", true},
	{"--audit", true},
	{"--glibc-hwcaps-mask", true},
	{"--glibc-hwcaps-prepend", true},
	{"--inhibit-cache", false},
	{"--inhibit-rpath", true},
	{"--library-path", true},
	{"--preload", true},
	{"--", false},
};
enum { OPTION_COUNT = sizeof(options) / sizeof(options[0]) };

/* Return how many arguments an option takes, itself included; 0: it is none before a program. For musl, a value may
   also follow a "=". */
static int option_words(const char *argument)
{
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		size_t length = strlen(options[i].name);
		if (strcmp(argument, options[i].name) == 0)
			return options[i].has_value ? 2 : 1;
		if (options[i].has_value && strncmp(argument, options[i].name, length) == 0 && argument[length] == '=')
			return 1;
	}
	return 0;
}

/* Return what follows the argument `at`. */
static const char *behind(const char *at, const char *end)
{
	return at < end ? at + strlen(at) + 1 : end;
}

const char *program_in_arguments(const char *arguments, size_t size)
{
	const char *end = arguments + size, *at;
	bool has_ended = false;
	if (size == 0 || end[-1] != 0)
		return NULL;
	at = behind(arguments, end);
	while (!has_ended && at < end && strncmp(at, "--", 2) == 0) {
		int words = option_words(at);
		if (!words)
			return NULL;
		has_ended = strcmp(at, "--") == 0;
		for (; words; words--)
			at = behind(at, end);
	}
	return at < end ? at : NULL;
}

/* Return a descriptor of the file as the process sees it, not opened for reading. */
static int find_file(pid_t pid, const char *name)
{
	char from[40];
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = name[0] == '/' ? RESOLVE_IN_ROOT : 0};
	snprintf(from, sizeof(from), "/proc/%d/%s", (int)pid, name[0] == '/' ? "root" : "cwd");
	int directory = open(from, O_PATH | O_CLOEXEC);
	int fd = directory >= 0 ? (int)syscall(SYS_openat2, directory, name, &how, sizeof(how)) : -1;
	if (directory >= 0)
		close(directory);
	return fd;
}

/* Write the program's path. Return a descriptor of its file, not opened for reading; -1: unknown. */
static int find_program(pid_t pid, char *path, size_t size, bool *is_named)
{
	char link[40];
	size_t bytes = 0;
	char *arguments = proc_arguments(pid, &bytes);
	const char *name = arguments ? program_in_arguments(arguments, bytes) : NULL;
	int fd = name && strchr(name, '/') ? find_file(pid, name) : -1;
	snprintf(path, size, "%s", name ? name : "");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = fd >= 0 ? readlink(link, path, size - 1) : -1;
	if (length >= 0)
		path[length] = 0;
	free(arguments);
	*is_named = name != NULL;
	return fd;
}

bool program_path(pid_t pid, char *path, size_t size)
{
	bool is_named;
	int fd = find_program(pid, path, size, &is_named);
	if (fd >= 0)
		close(fd);
	return is_named;
}

int program_open(pid_t pid, char *path, size_t size, struct stat *status)
{
	char again[40];
	bool is_named;
	int found = find_program(pid, path, size, &is_named), fd = -1;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
	if (found >= 0 && fstat(found, status) == 0 && S_ISREG(status->st_mode))
		fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (found >= 0)
		close(found);
	return fd;
}
