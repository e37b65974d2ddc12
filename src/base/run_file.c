/* SPDX-License-Identifier: MIT */
#include "base/run_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

/* Threads may find errors beside each other: any of them is one. */
static void fail(struct run_file *file, int error)
{
	__atomic_store_n(&file->error, error, __ATOMIC_RELAXED);
}

static bool has_failed(const struct run_file *file)
{
	return __atomic_load_n(&file->error, __ATOMIC_RELAXED);
}

/* ---- writing ---- */

void run_begin(struct run_writer *writer, struct run_file *file, uint64_t bytes)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	*writer = (struct run_writer){.file = file, .buffer = memory_resize(NULL, RUN_BUFFER_BYTES, 1)};
	pthread_mutex_lock(&lock);
	if (file->fd < 0 && !has_failed(file) && (file->fd = file_temporary(file->directory)) < 0)
		fail(file, errno);
	writer->place.offset = __atomic_fetch_add(&file->end, bytes, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

static void put(struct run_writer *writer, const void *data, size_t size)
{
	errno = 0;
	if (size && !has_failed(writer->file) &&
	    !file_write(writer->file->fd, data, size, writer->place.offset + writer->place.bytes))
		fail(writer->file, errno ? errno : EIO);
	writer->place.bytes += size;
}

void run_write_through(struct run_writer *writer, const void *data, size_t size)
{
	put(writer, writer->buffer, writer->used);
	writer->used = 0;
	if (size > RUN_BUFFER_BYTES) {
		put(writer, data, size);
		return;
	}
	memcpy(writer->buffer, data, size);
	writer->used = size;
}

struct run_place run_end(struct run_writer *writer)
{
	struct run_file *file = writer->file;
	put(writer, writer->buffer, writer->used);
	free(writer->buffer);
	writer->buffer = NULL;
	uint64_t end = writer->place.offset + writer->place.bytes,
		 present = __atomic_load_n(&file->end, __ATOMIC_RELAXED);
	/* Of a run whose size was not known: nobody else writes. */
	if (writer->place.offset == present)
		file->end = present = end;
	assert(end <= present);
	return writer->place;
}

/* ---- reading ---- */

void run_open(struct run_reader *reader, struct run_file *file, struct run_place place, size_t buffer_bytes)
{
	assert(buffer_bytes && place.offset + place.bytes <= file->end);
	*reader = (struct run_reader){.file = file,
				      .offset = place.offset,
				      .end = place.offset + place.bytes,
				      .buffer = memory_resize(NULL, buffer_bytes, 1),
				      .capacity = buffer_bytes};
}

void run_open_memory(struct run_reader *reader, struct run_file *file, const void *data, size_t bytes)
{
	/* Without a capacity nothing is written to it. */
	*reader = (struct run_reader){.file = file, .buffer = (uint8_t *)data, .size = bytes};
}

bool run_fill(struct run_reader *reader)
{
	uint64_t left = reader->end - reader->offset;
	reader->size = left < reader->capacity ? (size_t)left : reader->capacity;
	reader->at = 0;
	if (reader->size && !has_failed(reader->file) &&
	    file_read(reader->file->fd, reader->buffer, reader->size, reader->offset) != reader->size)
		fail(reader->file, EIO);
	if (has_failed(reader->file))
		reader->size = 0;
	reader->offset += reader->size;
	return reader->size;
}

bool run_read(struct run_reader *reader, void *to, size_t size)
{
	for (uint8_t *at = to; size;) {
		if (reader->at == reader->size && !run_fill(reader))
			return false;
		size_t left = reader->size - reader->at, part = size < left ? size : left;
		memcpy(at, reader->buffer + reader->at, part);
		reader->at += part;
		at += part;
		size -= part;
	}
	return true;
}

void run_close(struct run_reader *reader)
{
	if (reader->capacity)
		free(reader->buffer);
	reader->buffer = NULL;
}

void run_file_fini(struct run_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}
