/* SPDX-License-Identifier: MIT */
/**
 * Where text goes: to a file, a descriptor, memory, or a function of the caller. All that writes a report writes to a
 * sink. The first failed write ends a sink: it takes no more, and sink_end() returns the error. One thread at a time.
 */
#ifndef XHEAP_BASE_SINK_H
#define XHEAP_BASE_SINK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** Write all of the bytes. Return 0, or a negative errno. */
typedef int sink_write(void *context, const char *data, size_t size);

struct sink {
	sink_write *write; /**< NULL: the buffer grows and is the text */
	void *context;     /**< of write */
	int fd;            /**< of sink_to_fd(), which is its own context */
	int error;         /**< of the first failed write, a negative errno; 0: all is well */
	char *buffer;      /**< bytes that are not written yet */
	size_t used, capacity;
};

/** Begin a sink that calls write(context) with at most `buffer_bytes` at a time, or with each piece by itself if that
 *  is 0. End it with sink_end(). */
void sink_to_function(struct sink *sink, sink_write *write, void *context, size_t buffer_bytes);

/** Begin a sink that writes to the stream, which stays open. End it with sink_end(); the stream may have a buffer,
    too. */
void sink_to_file(struct sink *sink, FILE *file, size_t buffer_bytes);

/** Begin a sink that writes to the descriptor, which stays open. End it with sink_end(). The sink must stay where it
 *  is. */
void sink_to_fd(struct sink *sink, int fd, size_t buffer_bytes);

/** Begin a sink that keeps its text in memory. End it with sink_take() or sink_end(). */
void sink_to_memory(struct sink *sink);

/** Write what is in the buffer. Return 0, or the error of the sink. */
int sink_flush(struct sink *sink);

/** Write what is in the buffer and free the buffer. Return 0, or the first error as a negative errno. A second call
 *  does nothing and returns 0. */
int sink_end(struct sink *sink);

/** End a sink in memory and return its text, with a NUL behind it; the caller frees it. Set *length if that is not
 *  NULL. Without memory, give up (base/memory.h). */
char *sink_take(struct sink *sink, size_t *length);

/** Write the bytes. */
void sink_bytes(struct sink *sink, const char *data, size_t size);

/** Write the text, up to its NUL. */
void sink_text(struct sink *sink, const char *text);

/** Write a blank, and the text as a word that a shell takes as it is: quoted where necessary, and harmless on a
    terminal. A file's name that begins with a dash becomes "./-name". */
void sink_shell_word(struct sink *sink, const char *text);

/** Write as printf() does. */
__attribute__((format(printf, 2, 3))) void sink_format(struct sink *sink, const char *format, ...);

/** Write as vprintf() does. */
__attribute__((format(printf, 2, 0))) void sink_vformat(struct sink *sink, const char *format, va_list arguments);

/** Write one character. */
static inline void sink_put(struct sink *sink, char character)
{
	if (sink->used < sink->capacity && !sink->error)
		sink->buffer[sink->used++] = character;
	else
		sink_bytes(sink, &character, 1);
}

#endif
