/* SPDX-License-Identifier: MIT */
#include "base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

/* Set once, when the program begins and has one thread; later only read. */
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
	if (file->path)
		close(file->place.directory);
	free(file->path);
	free(file->temporary);
	*file = (struct whole_file){.fd = -1};
}

/* Return the name of the temporary file in its directory. */
static const char *temporary_name(const struct whole_file *file)
{
	const char *slash = strrchr(file->temporary, '/');
	return slash ? slash + 1 : file->temporary;
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
		file->fd = openat(file->place.directory, temporary_name(file),
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
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

/* Return the path of the place: below its directory's own path, or, without /proc, below that of `path`. */
static char *path_of(const struct output_place *place, const char *path)
{
	char link[64], directory[PATH_MAX], *found;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place->directory);
	ssize_t size = readlink(link, directory, sizeof(directory) - 1);
	const char *slash = strrchr(path, '/');
	if (size < 0)
		return strdup(path);
	directory[size] = 0;
	/* A path that is as short as the user has given it is better to read. */
	struct stat named, opened;
	char *parent = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	bool is_named = parent && stat(parent, &named) == 0 && fstat(place->directory, &opened) == 0 &&
			named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
	free(parent);
	if (is_named && strcmp(slash ? slash + 1 : path, place->name) == 0)
		return strdup(path);
	return asprintf(&found, "%s/%s", size == 1 ? "" : directory, place->name) < 0 ? NULL : found;
}

/* Open what is no regular file: a terminal, a device, a pipe. */
static int special_open(struct whole_file *file, const struct stat *status, const char *path, struct diag *diag)
{
	bool is_pipe = !file->place.is_open_file && !S_ISCHR(status->st_mode) && !S_ISBLK(status->st_mode);
	if (is_pipe && status->st_uid != geteuid())
		return diag_fail(diag, EPERM, "cannot write %s: it belongs to another user", path);
	file->fd = openat(file->place.directory, file->place.name,
			  O_WRONLY | O_CLOEXEC | O_NOCTTY | (file->place.is_open_file ? 0 : O_NOFOLLOW));
	return file->fd < 0 ? diag_errno(diag, "cannot write %s", path) : 0;
}

/* Return whether only this user changes the directory: a file of another user in it was put there knowingly. */
static bool is_own_directory(const struct output_place *place)
{
	struct stat directory;
	return fstat(place->directory, &directory) == 0 && directory.st_uid == geteuid() &&
	       !(directory.st_mode & (S_IWGRP | S_IWOTH));
}

static int file_open(struct whole_file *file, const char *path, mode_t mode, bool keeps_mode, struct diag *diag)
{
	struct stat status;
	int error = output_place_find(&file->place, path, diag);
	if (error)
		return error;
	file->path = path_of(&file->place, path);
	if (!file->path) {
		close(file->place.directory);
		return diag_fail(diag, ENOMEM, "cannot write %s: %s", path, strerror(ENOMEM));
	}
	bool is_there = fstatat(file->place.directory, file->place.name, &status, AT_SYMLINK_NOFOLLOW) == 0;
	if (is_there && !S_ISREG(status.st_mode))
		return special_open(file, &status, path, diag);
	if (is_there && status.st_uid != geteuid() && !is_own_directory(&file->place))
		return diag_fail(diag, EPERM, "cannot write %s: it belongs to another user", path);
	/* A file that may not be written is not replaced either. */
	if (is_there && faccessat(file->place.directory, file->place.name, W_OK, 0) != 0)
		return diag_errno(diag, "cannot write %s", path);
	error = temporary_open(file, mode);
	if (!error && is_there && keeps_mode && fchmod(file->fd, status.st_mode & 0777) != 0)
		error = -errno;
	return error ? diag_fail(diag, -error, "cannot write %s: %s", path, strerror(-error)) : 0;
}

static int file_begin(struct whole_file *file, const char *path, mode_t mode, bool keeps_mode, struct diag *diag)
{
	*file = (struct whole_file){.fd = -1};
	int error = file_open(file, path, mode, keeps_mode, diag);
	if (error)
		whole_file_abandon(file);
	return error;
}

int whole_file_open(struct whole_file *file, const char *path, mode_t mode, struct diag *diag)
{
	return file_begin(file, path, mode, false, diag);
}

int whole_file_open_as_is(struct whole_file *file, const char *path, mode_t mode, struct diag *diag)
{
	return file_begin(file, path, mode, true, diag);
}

int whole_file_commit(struct whole_file *file, struct diag *diag)
{
	bool is_bad = file->fd >= 0 && close(file->fd) != 0;
	file->fd = -1;
	is_bad = is_bad || (file->temporary && renameat(file->place.directory, temporary_name(file),
							file->place.directory, file->place.name) != 0);
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
		unlinkat(file->place.directory, temporary_name(file), 0);
	file_fini(file);
}
