/* SPDX-License-Identifier: MIT */
#include "inject/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hook/inspect.h"
#include "os/fd.h"
#include "os/proc_text.h"

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
enum { OPTION_COUNT = sizeof(options) / sizeof(options[0]), NAME_BYTES = 4096 };

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

/* Get the program's name as the arguments have it; "": the loader starts none. */
static void program_name(pid_t pid, char *name, size_t size)
{
	size_t bytes = 0;
	char *arguments = proc_arguments(pid, &bytes);
	const char *found = arguments ? program_in_arguments(arguments, bytes) : NULL;
	snprintf(name, size, "%s", found ? found : "");
	free(arguments);
}

bool program_path(pid_t pid, char *path, size_t size)
{
	char name[NAME_BYTES];
	program_name(pid, name, sizeof(name));
	if (!strchr(name, '/') || foreign_find_named(pid, name, path, size) != 0)
		snprintf(path, size, "%s", name);
	return name[0] != 0;
}

void program_open(struct foreign_file *file, pid_t pid, char *path, size_t size)
{
	char name[NAME_BYTES];
	program_name(pid, name, sizeof(name));
	*file = (struct foreign_file){.fd = -1};
	if (!strchr(name, '/') || foreign_open_named(file, pid, name, path, size) != 0)
		snprintf(path, size, "%s", name);
}

int program_check(pid_t pid, struct diag *diag)
{
	struct foreign_file file;
	foreign_open_executed(&file, pid);
	int error = hook_inspect_running(file.fd, diag);
	fd_close(&file.fd);
	return error;
}
