/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Most arenas hold little: the first chunk is small. */
enum { ARENA_FIRST_BYTES = 4 << 10, ARENA_CHUNK_BYTES = 64 << 10, ARENA_ALIGNMENT = 16 };

struct arena_chunk {
	struct arena_chunk *before;
	char *padding; /* keeps the bytes after it aligned */
};

static void arena_add_chunk(struct arena *arena, size_t bytes)
{
	size_t usual = arena->chunks ? ARENA_CHUNK_BYTES : ARENA_FIRST_BYTES, room = bytes > usual ? bytes : usual;
	struct arena_chunk *chunk = memory_zeroed(1, sizeof(*chunk) + room);
	chunk->before = arena->chunks;
	arena->chunks = chunk;
	arena->next = (char *)(chunk + 1);
	arena->end = arena->next + room;
}

void *arena_alloc(struct arena *arena, size_t size, size_t count)
{
	assert(arena->next <= arena->end);
	size_t bytes;
	if (__builtin_mul_overflow(size, count, &bytes) || bytes > SIZE_MAX / 2)
		memory_exhausted(SIZE_MAX);
	bytes = (bytes + ARENA_ALIGNMENT - 1) & ~(size_t)(ARENA_ALIGNMENT - 1);
	if (bytes > (size_t)(arena->end - arena->next))
		arena_add_chunk(arena, bytes);
	void *memory = arena->next;
	arena->next += bytes;
	return memory;
}

char *arena_text(struct arena *arena, const char *text)
{
	size_t bytes = strlen(text) + 1;
	return memcpy(arena_alloc(arena, 1, bytes), text, bytes);
}

char *arena_format(struct arena *arena, const char *format, ...)
{
	va_list arguments, again;
	va_start(arguments, format);
	va_copy(again, arguments);
	int length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	char *text = arena_alloc(arena, 1, length < 0 ? 1 : (size_t)length + 1);
	if (length > 0)
		vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	return text;
}

void arena_fini(struct arena *arena)
{
	for (struct arena_chunk *chunk = arena->chunks, *before; chunk; chunk = before) {
		before = chunk->before;
		free(chunk);
	}
	*arena = (struct arena){0};
}
