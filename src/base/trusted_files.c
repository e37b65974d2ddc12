/* SPDX-License-Identifier: MIT */
#include "base/trusted_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Files that are not complete yet: the number of the process that writes them follows. */
#define TEMPORARY ".new."

const char *trusted_doubt(const struct stat *status)
{
	if (status->st_uid != geteuid() && status->st_uid != 0)
		return "it belongs to another user";
	if (status->st_mode & (S_IWGRP | S_IWOTH))
		return "others may write to it";
	return NULL;
}

const char *trusted_root(void)
{
	const char *root = getenv(TRUSTED_ROOT_VARIABLE);
	struct stat status;
	bool is_own = root && root[0] == '/' && stat(root, &status) == 0 && S_ISDIR(status.st_mode) &&
		      status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH));
	return is_own ? root : "";
}

/* ---- directories ---- */

int trusted_directory_make(const char *path, mode_t mode, struct diag *diag)
{
	char above[PATH_MAX];
	struct stat status;
	snprintf(above, sizeof(above), "%s", path);
	for (char *at = strchr(above + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		if (mkdir(above, 0755) != 0 && errno != EEXIST)
			return diag_errno(diag, "cannot make %s", above);
		*at = '/';
	}
	if (mkdir(path, mode) != 0 && errno != EEXIST)
		return diag_errno(diag, "cannot make %s", path);
	if (stat(path, &status) != 0)
		return diag_errno(diag, "cannot use %s", path);
	const char *doubt = !S_ISDIR(status.st_mode) ? "it is no directory" : trusted_doubt(&status);
	return doubt ? diag_fail(diag, EPERM, "cannot use %s: %s", path, doubt) : 0;
}

/* Return a descriptor of the directory, or a negative errno. */
static int directory_open(const char *path, struct diag *diag)
{
	int error = trusted_directory_make(path, 0755, diag);
	if (error)
		return error;
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return directory >= 0 ? directory : diag_errno(diag, "cannot open %s", path);
}

/* ---- reading ---- */

static int has_suffix(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name), tail = sizeof(TRUSTED_SUFFIX) - 1;
	return entry->d_name[0] != '.' && length > tail && !strcmp(entry->d_name + length - tail, TRUSTED_SUFFIX);
}

int trusted_files_visit(const char *path, void (*visit)(void *cookie, int directory, const char *name), void *cookie,
			struct diag *diag)
{
	struct dirent **entries = NULL;
	struct stat status;
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return errno == ENOENT ? 0 : diag_errno(diag, "cannot read %s", path);
	const char *doubt = fstat(directory, &status) == 0 ? trusted_doubt(&status) : strerror(errno);
	int count = doubt ? 0 : scandirat(directory, ".", &entries, has_suffix, alphasort);
	int error = doubt       ? diag_fail(diag, EPERM, "no file in %s is in force: %s", path, doubt)
		    : count < 0 ? diag_errno(diag, "cannot read %s", path)
				: 0;
	for (int i = 0; i < count; i++) {
		visit(cookie, directory, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	close(directory);
	return error;
}

int trusted_file_open(int directory, const char *name, const char *path, FILE **file, struct diag *why)
{
	struct stat status;
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), error = 0;
	if (fd < 0)
		return diag_errno(why, "cannot open %s", path);
	if (fstat(fd, &status) != 0)
		error = diag_errno(why, "cannot read %s", path);
	const char *doubt = error ? NULL : S_ISREG(status.st_mode) ? trusted_doubt(&status) : "it is not a file";
	if (doubt)
		error = diag_fail(why, EPERM, "%s is not in force: %s", path, doubt);
	*file = error ? NULL : fdopen(fd, "re");
	if (!error && !*file)
		error = diag_errno(why, "cannot read %s", path);
	if (error)
		close(fd);
	return error;
}

/* ---- writing ---- */

static int is_temporary(const struct dirent *entry)
{
	return !strncmp(entry->d_name, TEMPORARY, sizeof(TEMPORARY) - 1);
}

/* Remove what processes left that ended, or lost their power, before they could rename it. */
static void remove_stale(int directory)
{
	struct dirent **entries = NULL;
	int count = scandirat(directory, ".", &entries, is_temporary, NULL);
	for (int i = 0; i < count; i++) {
		long writer = strtol(entries[i]->d_name + sizeof(TEMPORARY) - 1, NULL, 10);
		if (writer > 0 && writer <= INT_MAX && kill((pid_t)writer, 0) != 0 && errno == ESRCH)
			unlinkat(directory, entries[i]->d_name, 0);
		free(entries[i]);
	}
	free(entries);
}

/* Write the temporary file, down to the disk. */
static int write_temporary(int directory, const char *name, void (*print)(const void *content, FILE *file),
			   const void *content, struct diag *why)
{
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	FILE *file = fd >= 0 ? fdopen(fd, "we") : NULL;
	if (!file) {
		int error = diag_errno(why, "cannot make a file");
		if (fd >= 0)
			close(fd);
		return error;
	}
	print(content, file);
	bool is_written = fchmod(fd, 0644) == 0 && fflush(file) == 0 && fsync(fd) == 0;
	int error = is_written ? 0 : diag_errno(why, "cannot write a file");
	fclose(file);
	return error;
}

/* Say whose the settings are where the system refuses to change them. Return the error. */
static int change_refused(int error, struct diag *diag)
{
	if ((error == -EACCES || error == -EPERM) && geteuid() != 0)
		diag_prefix(diag, "only root may change what its services read");
	return error;
}

int trusted_file_write(const char *directory_path, const char *name, void (*print)(const void *content, FILE *file),
		       const void *content, struct diag *diag)
{
	char temporary[40];
	struct diag why = {""};
	int directory = directory_open(directory_path, diag);
	if (directory < 0)
		return change_refused(directory, diag);
	remove_stale(directory);
	snprintf(temporary, sizeof(temporary), TEMPORARY "%d", (int)getpid());
	unlinkat(directory, temporary, 0);
	int error = write_temporary(directory, temporary, print, content, &why);
	if (!error && renameat(directory, temporary, directory, name) != 0)
		error = diag_errno(&why, "cannot make it");
	if (error) {
		unlinkat(directory, temporary, 0);
		diag_fail(diag, -error, "%s/%s: %s", directory_path, name, why.text);
	} else if (fsync(directory) != 0) {
		error = diag_errno(diag, "%s/%s may not survive a power loss", directory_path, name);
	}
	close(directory);
	return change_refused(error, diag);
}

int trusted_file_remove(const char *directory_path, const char *name, struct diag *diag)
{
	int directory = directory_open(directory_path, diag), error = 0;
	if (directory < 0)
		return change_refused(directory, diag);
	remove_stale(directory);
	if (unlinkat(directory, name, 0) != 0)
		error = diag_errno(diag, "cannot remove %s/%s", directory_path, name);
	else if (fsync(directory) != 0)
		error = diag_errno(diag, "the removal of %s/%s may not survive a power loss", directory_path, name);
	close(directory);
	return change_refused(error, diag);
}
