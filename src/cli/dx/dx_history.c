/* SPDX-License-Identifier: MIT */
#include "cli/dx/dx_history.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "base/memory.h"

/* The file is shortened when it is twice as long as it should be. */
enum { LINES_MAX = 1000, FILE_MODE = 0600, OTHERS = 077 };

static bool history_path(char path[CACHE_PATH_BYTES], bool makes)
{
	struct diag ignored = {""};
	if (state_directory(path, makes, &ignored))
		return false;
	strcat(path, "dx-history");
	return true;
}

/* Only a plain file of this user, which others may not read. */
static int history_open(const char *path, int flags)
{
	struct stat status;
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, FILE_MODE);
	if (fd < 0)
		return fd;
	bool is_own = !fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_uid == geteuid();
	if (is_own && (!(status.st_mode & OTHERS) || !fchmod(fd, FILE_MODE)))
		return fd;
	close(fd);
	return -1;
}

/* Put the last lines into a new file in the place of this one. */
static void history_shorten(const char *path, char *const *lines, size_t count)
{
	char fresh[CACHE_PATH_BYTES + 8];
	snprintf(fresh, sizeof(fresh), "%s.XXXXXX", path);
	int fd = mkostemp(fresh, O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return;
	for (size_t i = count - LINES_MAX; i < count; i++)
		fprintf(file, "%s\n", lines[i]);
	if (fclose(file) || rename(fresh, path))
		unlink(fresh);
}

void dx_history_read(void (*take)(const char *line))
{
	char path[CACHE_PATH_BYTES], **lines = NULL, *line = NULL;
	size_t count = 0, capacity = 0, room = 0;
	int fd = history_path(path, false) ? history_open(path, O_RDONLY) : -1;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	while (file && getline(&line, &room, file) >= 0) {
		line[strcspn(line, "\r\n")] = 0;
		memory_grow(lines, count, capacity);
		lines[count++] = line;
		line = NULL;
		room = 0;
	}
	free(line);
	if (file)
		fclose(file);
	for (size_t i = count > LINES_MAX ? count - LINES_MAX : 0; i < count; i++)
		take(lines[i]);
	if (count > 2 * (size_t)LINES_MAX)
		history_shorten(path, lines, count);
	for (size_t i = 0; i < count; i++)
		free(lines[i]);
	free(lines);
}

/* One write, so that lines of two prompts do not mix. */
void dx_history_append(const char *line)
{
	char path[CACHE_PATH_BYTES];
	size_t length = strlen(line);
	int fd = history_path(path, true) ? history_open(path, O_WRONLY | O_APPEND | O_CREAT) : -1;
	char *whole = fd < 0 ? NULL : malloc(length + 1);
	if (whole) {
		memcpy(whole, line, length);
		whole[length] = '\n';
		ssize_t ignored = write(fd, whole, length + 1);
		(void)ignored;
	}
	free(whole);
	if (fd >= 0)
		close(fd);
}
