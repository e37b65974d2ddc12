/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_CHUNK = 1 << 24 };

int file_check_owner(int fd, const char *path, struct diag *diag)
{
	struct stat status;
	if (fstat(fd, &status) != 0)
		return diag_errno(diag, "cannot write %s", path);
	return !S_ISREG(status.st_mode) || status.st_uid == geteuid()
		       ? 0
		       : diag_fail(diag, EPERM, "cannot write %s: it belongs to another user", path);
}

/* Return whether the directory of the path exists. */
static bool has_directory(const char *path)
{
	struct stat status;
	char directory[4096] = ".";
	const char *slash = strrchr(path, '/');
	if (slash)
		snprintf(directory, sizeof(directory), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return stat(directory, &status) == 0 && S_ISDIR(status.st_mode);
}

int file_make(const char *path, mode_t permissions, struct diag *diag)
{
	struct stat status;
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, FILE_PERMISSIONS);
	if (fd < 0 && errno == ELOOP)
		return diag_fail(diag, ELOOP, "cannot write %s: it is a symbolic link", path);
	if (fd < 0 && errno == ENOENT && has_directory(path))
		return diag_fail(diag, EPERM, "cannot write %s: no file can be made in its directory", path);
	if (fd < 0)
		return diag_errno(diag, "cannot write %s", path);
	int error = file_check_owner(fd, path, diag);
	if (!error && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && fchmod(fd, permissions) != 0)
		error = diag_errno(diag, "cannot set the mode of %s", path);
	if (!error)
		return fd;
	close(fd);
	return error;
}

bool file_write(int fd, const void *data, size_t size, uint64_t offset)
{
	const uint8_t *at = data;
	while (size) {
		ssize_t written = pwrite(fd, at, size, (off_t)offset);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			errno = written ? errno : EIO;
			return false;
		}
		at += written;
		size -= (size_t)written;
		offset += (uint64_t)written;
	}
	return true;
}

size_t file_read(int fd, void *data, size_t size, uint64_t offset)
{
	size_t got = 0;
	while (got < size) {
		ssize_t part = pread(fd, (uint8_t *)data + got, size - got, (off_t)(offset + got));
		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0)
			break;
		got += (size_t)part;
	}
	return got;
}

int file_temporary(const char *directory)
{
	char path[4096];
	directory = directory ? directory : getenv("TMPDIR");
	directory = directory && *directory ? directory : "/tmp";
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, FILE_PERMISSIONS);
	if (fd >= 0 || (size_t)snprintf(path, sizeof(path), "%s/xheap-XXXXXX", directory) >= sizeof(path))
		return fd;
	/* A file system without files that have no name. */
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

bool file_copy(int to, int from)
{
	ssize_t moved = 1;
	while (moved > 0 || (moved < 0 && errno == EINTR))
		moved = sendfile(to, from, NULL, COPY_CHUNK);
	return moved == 0;
}
