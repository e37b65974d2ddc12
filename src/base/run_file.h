/* SPDX-License-Identifier: MIT */
/** The file of an external sort. What has no memory is written to it in sorted runs. They are read beside each other,
    and merged by a priority queue (priority_queue.h). */
#ifndef XHEAP_BASE_RUN_FILE_H
#define XHEAP_BASE_RUN_FILE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Begin with RUN_FILE_NONE, and the directory. Threads may share it, while each of them knows the size of its runs. */
struct run_file {
	const char *directory; /**< NULL: $TMPDIR, else /tmp */
	int fd;                /**< -1: nothing was written yet */
	int error;             /**< a positive errno; 0: none. What is written or read after an error is nothing */
	uint64_t end;          /**< of what was written */
};
#define RUN_FILE_NONE .fd = -1

/** A run, in a file. */
struct run_place {
	uint64_t offset, bytes;
};

enum { RUN_BUFFER_BYTES = 1 << 16 };

/** A run that is written. */
struct run_writer {
	struct run_file *file;
	struct run_place place; /**< bytes: written so far */
	uint8_t *buffer;
	size_t used;
};

/** Begin a run of so many bytes; 0: any number, and nothing else is written before its end. */
void run_begin(struct run_writer *writer, struct run_file *file, uint64_t bytes);

/** Add bytes to the run, of which more are coming than its buffer has room for. */
void run_write_through(struct run_writer *writer, const void *data, size_t size);

/** Add bytes to the run. */
static inline void run_write(struct run_writer *writer, const void *data, size_t size)
{
	if (size > RUN_BUFFER_BYTES - writer->used) {
		run_write_through(writer, data, size);
		return;
	}
	memcpy(writer->buffer + writer->used, data, size);
	writer->used += size;
}

/** End the run. Return its place; if something could not be written, the file has an error. */
struct run_place run_end(struct run_writer *writer);

/** A run that is read. */
struct run_reader {
	struct run_file *file;
	uint64_t offset, end; /**< of what is not in the buffer yet */
	uint8_t *buffer;
	size_t capacity, at, size;
};

/** Begin to read a run, so many bytes at a time. */
void run_open(struct run_reader *reader, struct run_file *file, struct run_place place, size_t buffer_bytes);

/** Read more. Return false at the end, or if it cannot be read: then the file has an error. */
bool run_fill(struct run_reader *reader);

/** Copy the next bytes. Return as run_fill(). */
bool run_read(struct run_reader *reader, void *to, size_t size);

/** Return the next bytes, where they lie until the next call; NULL: as run_fill(). The buffer holds items of this size,
    a whole number of them. */
static inline const void *run_next(struct run_reader *reader, size_t size)
{
	if (reader->at == reader->size && !run_fill(reader))
		return NULL;
	assert(reader->size - reader->at >= size);
	const void *next = reader->buffer + reader->at;
	reader->at += size;
	return next;
}

void run_close(struct run_reader *reader);

/** Close the file, which has no name. */
void run_file_fini(struct run_file *file);

#endif
