/* SPDX-License-Identifier: MIT */
#include "os/selinux.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1200 };

/* Read a text of one line, without its end. Return false if there is none, or it does not fit. */
static bool read_line(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t length = fd >= 0 ? read(fd, text, size) : -1;
	if (fd >= 0)
		close(fd);
	if (length <= 0 || (size_t)length == size)
		return false;
	text[length] = 0;
	text[strcspn(text, "\n")] = 0;
	return text[0] != 0;
}

bool selinux_is_enforcing(const char *root)
{
	char path[PATH_BYTES], text[16];
	snprintf(path, sizeof(path), "%s/sys/fs/selinux/enforce", root);
	return read_line(path, text, sizeof(text)) && text[0] == '1';
}

bool selinux_context(const char *root, pid_t tid, char context[SELINUX_CONTEXT_BYTES])
{
	char path[PATH_BYTES];
	snprintf(path, sizeof(path), "%s/proc/%d/attr/current", root, (int)tid);
	return read_line(path, context, SELINUX_CONTEXT_BYTES);
}

bool selinux_asked_context(const char *root, pid_t tid, char context[SELINUX_CONTEXT_BYTES])
{
	char path[PATH_BYTES];
	snprintf(path, sizeof(path), "%s/proc/%d/attr/exec", root, (int)tid);
	return read_line(path, context, SELINUX_CONTEXT_BYTES);
}

/* One write asks the file, and one read of the same descriptor gets the answer. */
bool selinux_executed(const char *root, const char *process, const char *file, char context[SELINUX_CONTEXT_BYTES])
{
	char path[PATH_BYTES], number[16], request[2 * SELINUX_CONTEXT_BYTES + 32];
	snprintf(path, sizeof(path), "%s/sys/fs/selinux/class/process/index", root);
	if (!read_line(path, number, sizeof(number)))
		return false;
	int length = snprintf(request, sizeof(request), "%s %s %lu", process, file, strtoul(number, NULL, 10));
	snprintf(path, sizeof(path), "%s/sys/fs/selinux/create", root);
	int fd = length < (int)sizeof(request) ? open(path, O_RDWR | O_CLOEXEC | O_NOCTTY) : -1;
	if (fd < 0)
		return false;
	ssize_t got = write(fd, request, (size_t)length) == length ? read(fd, context, SELINUX_CONTEXT_BYTES - 1) : -1;
	close(fd);
	if (got <= 0)
		return false;
	context[got] = 0;
	return true;
}
