/* SPDX-License-Identifier: MIT */
/** Memory that is freed all at once. Everything from an arena is valid until arena_fini(). */
#ifndef XHEAP_BASE_ARENA_H
#define XHEAP_BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

/** An arena. Zero it to begin. */
struct arena {
	struct arena_chunk *chunks;
	char *next, *end;
};

/** Return zeroed memory for `count` objects of `size` bytes, aligned for any type. Never NULL (base/memory.h). */
void *arena_alloc(struct arena *arena, size_t size, size_t count);

/** Return a copy of the text. */
char *arena_text(struct arena *arena, const char *text);

/** Return a formatted text. */
__attribute__((format(printf, 2, 3))) char *arena_format(struct arena *arena, const char *format, ...);

/** Free everything. */
void arena_fini(struct arena *arena);

/** Return zeroed memory for `count` objects of a type. */
#define arena_new(arena, type, count) ((type *)arena_alloc((arena), sizeof(type), (count)))

#endif
