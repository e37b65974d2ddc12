/* SPDX-License-Identifier: MIT */
/** Whole reads and writes at a place of a file, whatever interrupts them, and files that hold what others may not
    see. */
#ifndef XHEAP_BASE_FILE_H
#define XHEAP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

/** What a trace may be done with if nothing else is said: its user alone reads and writes it. */
enum { FILE_PERMISSIONS = 0600 };

/**
 * Make a file with these permissions, or open the one that is there for writing and give them to it; it is not cut.
 * Never through a link, and never one of another user, who could read it. The descriptor, for reading and writing, or a
 * negative errno.
 */
int file_make(const char *path, mode_t permissions, struct diag *diag);

/** Refuse the open file where it is another user's. 0 or -EPERM. */
int file_check_owner(int fd, const char *path, struct diag *diag);

/** Write all of it at the offset. False with errno. */
bool file_write(int fd, const void *data, size_t size, uint64_t offset);

/** Read up to `size` bytes from the offset on; how many there were. */
size_t file_read(int fd, void *data, size_t size, uint64_t offset);

/** Write all that can be read from `from` on to `to`. False with errno. */
bool file_copy(int to, int from);

#endif
