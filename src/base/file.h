/* SPDX-License-Identifier: MIT */
/** Whole reads and writes at a place of a file, whatever interrupts them. */
#ifndef XHEAP_BASE_FILE_H
#define XHEAP_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Write all of it at the offset. False with errno. */
bool file_write(int fd, const void *data, size_t size, uint64_t offset);

/** Read up to `size` bytes from the offset on; how many there were. */
size_t file_read(int fd, void *data, size_t size, uint64_t offset);

/** Write all that can be read from `from` on to `to`. False with errno. */
bool file_copy(int to, int from);

#endif
