/* SPDX-License-Identifier: MIT */
#include "base/sink.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

/* ---- where it goes ---- */

void sink_to_function(struct sink *sink, sink_write *write, void *context, size_t buffer_bytes)
{
	*sink = (struct sink){.write = write,
			      .context = context,
			      .fd = -1,
			      .buffer = buffer_bytes ? memory_resize(NULL, buffer_bytes, 1) : NULL,
			      .capacity = buffer_bytes};
}

static int write_to_file(void *context, const char *data, size_t size)
{
	errno = 0;
	if (fwrite(data, 1, size, context) == size)
		return 0;
	return errno ? -errno : -EIO;
}

void sink_to_file(struct sink *sink, FILE *file, size_t buffer_bytes)
{
	sink_to_function(sink, write_to_file, file, buffer_bytes);
}

static int write_to_fd(void *context, const char *data, size_t size)
{
	const int *fd = context;
	while (size) {
		ssize_t written = write(*fd, data, size);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		data += written;
		size -= (size_t)written;
	}
	return 0;
}

void sink_to_fd(struct sink *sink, int fd, size_t buffer_bytes)
{
	sink_to_function(sink, write_to_fd, &sink->fd, buffer_bytes);
	sink->fd = fd;
}

void sink_to_memory(struct sink *sink)
{
	*sink = (struct sink){.fd = -1};
}

/* ---- writing ---- */

int sink_flush(struct sink *sink)
{
	if (sink->write && sink->used && !sink->error)
		sink->error = sink->write(sink->context, sink->buffer, sink->used);
	if (sink->write)
		sink->used = 0;
	return sink->error;
}

int sink_end(struct sink *sink)
{
	int error = sink_flush(sink);
	free(sink->buffer);
	sink_to_memory(sink);
	return error;
}

static bool memory_reserve(struct sink *sink, size_t size)
{
	size_t needed;
	bool is_possible = !__builtin_add_overflow(sink->used, size, &needed) && needed <= SIZE_MAX / 2;
	size_t capacity = is_possible ? memory_capacity(sink->capacity, needed) : 0;
	char *buffer = is_possible ? realloc(sink->buffer, capacity) : NULL;
	if (!buffer) {
		sink->error = -ENOMEM;
		return false;
	}
	sink->buffer = buffer;
	sink->capacity = capacity;
	return true;
}

/* Make room in the buffer for `size` bytes. Return false if the sink has an error or no such buffer. */
static bool reserve(struct sink *sink, size_t size)
{
	if (sink->error)
		return false;
	if (size <= sink->capacity - sink->used)
		return true;
	if (!sink->write)
		return memory_reserve(sink, size);
	return !sink_flush(sink) && size <= sink->capacity;
}

char *sink_take(struct sink *sink, size_t *length)
{
	size_t used = sink->used;
	if (!reserve(sink, 1)) {
		sink_end(sink);
		memory_exhausted(used);
	}
	char *text = sink->buffer;
	text[used] = 0;
	if (length)
		*length = used;
	sink_to_memory(sink);
	return text;
}

void sink_bytes(struct sink *sink, const char *data, size_t size)
{
	if (!size)
		return;
	if (reserve(sink, size)) {
		memcpy(sink->buffer + sink->used, data, size);
		sink->used += size;
	} else if (!sink->error) {
		/* More than the buffer holds: reserve() has written what came before. */
		sink->error = sink->write(sink->context, data, size);
	}
}

void sink_text(struct sink *sink, const char *text)
{
	sink_bytes(sink, text, strlen(text));
}

void sink_shell_word(struct sink *sink, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+-:,@%=";
	bool is_harmless = text_shown(text) == text;
	sink_text(sink, *text == '-' ? " ./" : " ");
	if (*text && !text[strspn(text, plain)]) {
		sink_text(sink, text);
		return;
	}
	sink_text(sink, is_harmless ? "'" : "$'");
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if (*at == '\'' || (*at == '\\' && !is_harmless))
			sink_format(sink, is_harmless ? "'\\%c'" : "\\%c", *at);
		else if (!is_harmless && (*at < ' ' || *at > '~'))
			sink_format(sink, "\\x%02x", *at);
		else
			sink_put(sink, (char)*at);
	}
	sink_put(sink, '\'');
}

void sink_vformat(struct sink *sink, const char *format, va_list arguments)
{
	enum { ROOM_BYTES = 512 };
	char room[ROOM_BYTES], *text = NULL;
	va_list again;
	va_copy(again, arguments);
	int length = vsnprintf(room, sizeof(room), format, arguments);
	if (length >= ROOM_BYTES)
		length = vasprintf(&text, format, again);
	va_end(again);
	if (length >= 0)
		sink_bytes(sink, text ? text : room, (size_t)length);
	else if (!sink->error)
		sink->error = -ENOMEM;
	free(text);
}

void sink_format(struct sink *sink, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	sink_vformat(sink, format, arguments);
	va_end(arguments);
}
