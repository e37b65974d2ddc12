/* SPDX-License-Identifier: MIT */
#include "base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_MAX = 100 };

static void do_nothing(void)
{
}

static void add_nothing(void (*undo)(const void *context), const void *context)
{
	(void)undo;
	(void)context;
}

static void remove_nothing(const void *context)
{
	(void)context;
}

static struct whole_file_guard guard = {do_nothing, do_nothing, add_nothing, remove_nothing};

void whole_file_set_guard(const struct whole_file_guard *set)
{
	guard = *set;
}

bool whole_file_is(const char *path, const struct stat *status)
{
	struct stat found;
	return path && stat(path, &found) == 0 && found.st_dev == status->st_dev && found.st_ino == status->st_ino;
}

int whole_file_check(const char *path, const char *const *read, unsigned count, struct diag *diag)
{
	struct stat status;
	if (stat(path, &status) != 0)
		return 0;
	for (unsigned i = 0; i < count; i++)
		if (whole_file_is(read[i], &status))
			return diag_fail(diag, EINVAL, "cannot write %s: it is one of the files that are read", path);
	return 0;
}

static void temporary_remove(const void *path)
{
	unlink(path);
}

static void file_fini(struct whole_file *file)
{
	if (file->temporary)
		guard.remove(file->temporary);
	free(file->path);
	free(file->temporary);
	*file = (struct whole_file){.fd = -1};
}

/* Make the temporary file. Its name is short, however long the file's own is, and unique. */
static int temporary_open(struct whole_file *file, mode_t mode)
{
	static unsigned counter;
	const char *slash = strrchr(file->path, '/');
	for (int i = 0; i < NAMES_MAX; i++) {
		unsigned number = __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
		if (asprintf(&file->temporary, "%.*s.xheap.%d.%u.new", slash ? (int)(slash - file->path) + 1 : 0,
			     file->path, (int)getpid(), number) < 0) {
			file->temporary = NULL;
			return -ENOMEM;
		}
		guard.hold();
		file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		int error = file->fd < 0 ? errno : 0;
		if (!error)
			guard.add(temporary_remove, file->temporary);
		guard.release();
		if (!error)
			return 0;
		free(file->temporary);
		file->temporary = NULL;
		if (error != EEXIST)
			return -error;
	}
	return -EEXIST;
}

static int file_open(struct whole_file *file, const char *path, mode_t mode)
{
	struct stat status;
	bool is_there = stat(path, &status) == 0;
	if (is_there && !S_ISREG(status.st_mode)) {
		file->path = strdup(path);
		file->fd = file->path ? open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY) : -1;
		return file->fd < 0 ? -errno : 0;
	}
	/* A file that may not be written is not replaced either. */
	if (is_there && access(path, W_OK) != 0)
		return -errno;
	file->path = is_there ? realpath(path, NULL) : strdup(path);
	if (!file->path)
		return -errno;
	int error = temporary_open(file, mode);
	if (!error && is_there && fchmod(file->fd, status.st_mode & 0777) != 0)
		error = -errno;
	return error;
}

int whole_file_open(struct whole_file *file, const char *path, mode_t mode, struct diag *diag)
{
	*file = (struct whole_file){.fd = -1};
	int error = file_open(file, path, mode);
	if (!error)
		return 0;
	whole_file_abandon(file);
	return diag_fail(diag, -error, "cannot write %s: %s", path, strerror(-error));
}

int whole_file_commit(struct whole_file *file, struct diag *diag)
{
	bool is_bad = file->fd >= 0 && close(file->fd) != 0;
	file->fd = -1;
	is_bad = is_bad || (file->temporary && rename(file->temporary, file->path) != 0);
	int error = is_bad ? diag_errno(diag, "cannot write %s", file->path) : 0;
	if (error)
		whole_file_abandon(file);
	else
		file_fini(file);
	return error;
}

void whole_file_abandon(struct whole_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->temporary)
		unlink(file->temporary);
	file_fini(file);
}
