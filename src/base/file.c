/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output_place.h"

enum { COPY_CHUNK = 1 << 24 };

bool file_is_locked(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	bool is_locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	if (fd >= 0)
		close(fd);
	return is_locked;
}

int file_check_owner(int fd, const char *path, struct diag *diag)
{
	struct stat status;
	if (fstat(fd, &status) != 0)
		return diag_errno(diag, "cannot write %s", path);
	bool has_owner = S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode);
	return !has_owner || status.st_uid == geteuid()
		       ? 0
		       : diag_fail(diag, EPERM, "cannot write %s: it belongs to another user", path);
}

/* Open a file by its name in a directory, or make it. */
static int open_in(const struct output_place *place, const char *path, int flags, mode_t mode, struct diag *diag)
{
	struct stat status;
	int fd = openat(place->directory, place->name,
			flags | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, mode);
	if (fd >= 0)
		return fd;
	if (errno == ELOOP)
		return diag_fail(diag, ELOOP, "cannot write %s: it is a symbolic link", path);
	if (errno == ENOENT && fstat(place->directory, &status) == 0)
		return diag_fail(diag, EPERM, "cannot write %s: no file can be made in its directory", path);
	return diag_errno(diag, "cannot write %s", path);
}

int file_open_own(const char *path, int flags, mode_t mode, struct diag *diag)
{
	struct output_place place;
	int error = output_place_find_unlinked(&place, path, diag);
	if (error)
		return error;
	int fd = open_in(&place, path, flags, mode, diag);
	close(place.directory);
	error = fd < 0 ? fd : file_check_owner(fd, path, diag);
	if (error && fd >= 0)
		close(fd);
	return error ? error : fd;
}

int file_make(const char *path, mode_t permissions, struct diag *diag)
{
	struct stat status;
	int fd = file_open_own(path, O_RDWR, FILE_PERMISSIONS, diag), error = 0;
	if (fd < 0)
		return fd;
	if (!error && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && fchmod(fd, permissions) != 0)
		error = diag_errno(diag, "cannot set the mode of %s", path);
	if (!error)
		return fd;
	close(fd);
	return error;
}

int file_open_found(int found, struct stat *status)
{
	char again[40];
	snprintf(again, sizeof(again), "/proc/self/fd/%d", found);
	if (fstat(found, status) != 0)
		return -errno;
	if (!S_ISREG(status->st_mode))
		return -EINVAL;
	int fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

/* Open the path again where no /proc leads to the file that was found. */
static int open_again(const char *path, const struct stat *found)
{
	struct stat opened;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || (fstat(fd, &opened) == 0 && opened.st_dev == found->st_dev && opened.st_ino == found->st_ino))
		return fd < 0 ? -errno : fd;
	close(fd);
	return -ENOENT;
}

int file_open_regular(const char *path, struct stat *status)
{
	int found = open(path, O_PATH | O_CLOEXEC);
	if (found < 0)
		return -errno;
	int fd = file_open_found(found, status);
	close(found);
	return fd == -ENOENT && access("/proc/self/fd", F_OK) != 0 ? open_again(path, status) : fd;
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
