/* SPDX-License-Identifier: MIT */
/** Complete reads and writes at an offset of a file, despite interruptions; files that other users must not read. */
#ifndef XHEAP_BASE_FILE_H
#define XHEAP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/diag.h"

/** The default mode of a trace: only its user reads and writes it. */
enum { FILE_PERMISSIONS = 0600 };

/** Make a file with these permissions, or open an existing one and give them to it; its contents stay. Links and files
    of other users, who could read it, are refused. Return a descriptor for reading and writing, or a negative errno. */
int file_make(const char *path, mode_t permissions, struct diag *diag);

/** Open a file for writing, or make it with this mode, less the umask. flags: O_WRONLY or O_RDWR, and O_APPEND,
    O_NONBLOCK as wanted. Links (base/output_place.h) and files of other users are refused. Return a descriptor, or a
    negative errno. */
int file_open_own(const char *path, int flags, mode_t mode, struct diag *diag);

/** Return whether a process holds the file's lock (flock(2)), as a session does while it writes a trace. */
bool file_is_locked(const char *path);

/** Check the owner of an open file or pipe. Return 0, or -EPERM if it is another user's. */
int file_check_owner(int fd, const char *path, struct diag *diag);

/** Open a regular file for reading, by a path that a stranger may have chosen. Its type is asked before it is opened:
    devices and pipes act by being opened. *status: of the file, if it exists. Return a descriptor, or a negative errno;
    -EINVAL: it is no regular file. */
int file_open_regular(const char *path, struct stat *status);

/** As file_open_regular(), of the file that the O_PATH descriptor `found` leads to, which stays the caller's. */
int file_open_found(int found, struct stat *status);

/** Write all bytes at the offset. Return false with errno set on failure. */
bool file_write(int fd, const void *data, size_t size, uint64_t offset);

/** Read up to `size` bytes at the offset. Return how many there were. */
size_t file_read(int fd, void *data, size_t size, uint64_t offset);

/** Make a file without a name in the directory, NULL: $TMPDIR, else /tmp. Return a descriptor, or -1 with errno set. */
int file_temporary(const char *directory);

/** Copy the rest of `from` to `to`. Return false with errno set on failure. */
bool file_copy(int to, int from);

#endif
