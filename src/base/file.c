/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { COPY_CHUNK = 1 << 24 };

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

bool file_copy(int to, int from)
{
	ssize_t moved = 1;
	while (moved > 0 || (moved < 0 && errno == EINTR))
		moved = sendfile(to, from, NULL, COPY_CHUNK);
	return moved == 0;
}
