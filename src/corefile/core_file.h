/* SPDX-License-Identifier: MIT */
/** The files of a core's images: a core has only the memory that a process has written to. */
#ifndef XHEAP_COREFILE_CORE_FILE_H
#define XHEAP_COREFILE_CORE_FILE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core_image;

/** The file of an image. */
struct core_file {
	int fd;
	Elf *elf;
};

/** Open a file that a core names, which may be any: no device, and nothing that waits. Return -1 on failure. */
int core_file_open(const char *path);

/** Open the image's file. Return false if it is not there any more, or its build-id is another one. */
bool core_file_begin(struct core_file *file, const struct core_image *image);

/** Copy what the file has of the image from an offset to its base on. Return the number of bytes. */
size_t core_file_read(const struct core_file *file, uint64_t offset, void *to, size_t size);

/** Close it. */
void core_file_end(struct core_file *file);

#endif
