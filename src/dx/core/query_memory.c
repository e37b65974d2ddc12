/* SPDX-License-Identifier: MIT */
#include "dx/core/query_memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

enum { CHUNK_BYTES = 1 << 14, ALIGNMENT = 16 };

struct dx_chunk {
	struct dx_chunk *before;
	size_t size_bytes;
	_Alignas(ALIGNMENT) char data[];
};

struct dx_cleanup {
	struct dx_cleanup *before;
	void (*end)(void *context);
	void *context;
};

void dx_arena_init(struct dx_arena *arena, struct dx_budget *budget)
{
	*arena = (struct dx_arena){.budget = budget};
}

static void chunk_enter(struct dx_arena *arena, struct dx_chunk *chunk)
{
	chunk->before = arena->chunks;
	arena->chunks = chunk;
	arena->chunk_bytes += chunk->size_bytes;
	arena->next = chunk->data;
	arena->end = chunk->data + chunk->size_bytes;
}

static void chunk_add(struct dx_arena *arena, size_t size_bytes)
{
	struct dx_chunk *chunk = arena->spare;
	if (chunk && chunk->size_bytes >= size_bytes) {
		arena->spare = NULL;
		chunk_enter(arena, chunk);
		return;
	}
	size_t want = size_bytes > CHUNK_BYTES ? size_bytes : CHUNK_BYTES;
	chunk = memory_resize(NULL, 1, sizeof(*chunk) + want);
	chunk->size_bytes = want;
	arena->budget->used_bytes += want;
	arena->budget->is_exceeded |= arena->budget->used_bytes > arena->budget->limit_bytes;
	chunk_enter(arena, chunk);
}

bool dx_has_room(struct dx_arena *arena, size_t size_bytes)
{
	const struct dx_budget *budget = arena->budget;
	bool has_room =
		budget->used_bytes <= budget->limit_bytes && size_bytes <= budget->limit_bytes - budget->used_bytes;
	arena->budget->is_exceeded |= !has_room;
	return has_room;
}

void *dx_alloc(struct dx_arena *arena, size_t size_bytes)
{
	size_t rounded = (size_bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (rounded < size_bytes)
		memory_exhausted(size_bytes);
	if ((size_t)(arena->end - arena->next) < rounded || !arena->next)
		chunk_add(arena, rounded);
	void *made = arena->next;
	arena->next += rounded;
	memset(made, 0, size_bytes);
	return made;
}

char *dx_copy_text(struct dx_arena *arena, const char *text, size_t length)
{
	char *copy = dx_alloc(arena, length + 1);
	memcpy(copy, text, length);
	return copy;
}

char *dx_format(struct dx_arena *arena, const char *format, ...)
{
	assert(format);
	va_list arguments, again;
	va_start(arguments, format);
	va_copy(again, arguments);
	int length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	char *text = dx_alloc(arena, (size_t)(length < 0 ? 0 : length) + 1);
	if (length > 0)
		vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	return text;
}

void dx_on_release(struct dx_arena *arena, void (*end)(void *context), void *context)
{
	assert(end);
	struct dx_cleanup *cleanup = dx_new(arena, struct dx_cleanup, 1);
	*cleanup = (struct dx_cleanup){arena->cleanups, end, context};
	arena->cleanups = cleanup;
}

struct dx_mark dx_mark(const struct dx_arena *arena)
{
	return (struct dx_mark){arena->chunks, arena->next, arena->cleanups};
}

/* The newest chunk that is given back is kept for the next step of a loop. */
static void chunk_leave(struct dx_arena *arena)
{
	struct dx_chunk *chunk = arena->chunks;
	assert(arena->budget->used_bytes >= chunk->size_bytes);
	arena->chunks = chunk->before;
	arena->chunk_bytes -= chunk->size_bytes;
	if (!arena->spare && chunk->size_bytes == CHUNK_BYTES) {
		arena->spare = chunk;
		return;
	}
	arena->budget->used_bytes -= chunk->size_bytes;
	free(chunk);
}

void dx_release(struct dx_arena *arena, struct dx_mark mark)
{
	CHECK_VALID(dx_arena_is_valid(arena));
	while (arena->cleanups != mark.cleanups) {
		assert(arena->cleanups);
		struct dx_cleanup *cleanup = arena->cleanups;
		arena->cleanups = cleanup->before;
		cleanup->end(cleanup->context);
	}
	while (arena->chunks != mark.chunk) {
		assert(arena->chunks);
		chunk_leave(arena);
	}
	arena->next = mark.next;
	arena->end = mark.chunk ? mark.chunk->data + mark.chunk->size_bytes : NULL;
}

bool dx_arena_is_valid(const struct dx_arena *arena)
{
	const struct dx_chunk *last = arena->chunks;
	size_t spare_bytes = arena->spare ? arena->spare->size_bytes : 0, bytes = 0;
	bool is_valid = last ? arena->next >= last->data && arena->next <= arena->end &&
					arena->end == last->data + last->size_bytes
			     : !arena->next && !arena->end;
	is_valid &= (uintptr_t)arena->next % ALIGNMENT == 0 && (!arena->spare || spare_bytes == CHUNK_BYTES);
	for (const struct dx_chunk *chunk = last; chunk; chunk = chunk->before)
		bytes += chunk->size_bytes;
	for (const struct dx_cleanup *cleanup = arena->cleanups; cleanup; cleanup = cleanup->before)
		is_valid &= cleanup->end != NULL;
	return is_valid && bytes == arena->chunk_bytes && bytes + spare_bytes <= arena->budget->used_bytes;
}

void dx_arena_clear(struct dx_arena *arena)
{
	dx_release(arena, (struct dx_mark){NULL, NULL, NULL});
}

void dx_arena_fini(struct dx_arena *arena)
{
	dx_arena_clear(arena);
	if (arena->spare) {
		arena->budget->used_bytes -= arena->spare->size_bytes;
		free(arena->spare);
	}
	arena->spare = NULL;
}
