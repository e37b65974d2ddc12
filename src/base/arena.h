/* SPDX-License-Identifier: MIT */
/** Memory that is given back all at once. What an arena hands out lives until arena_fini(). */
#ifndef XHEAP_BASE_ARENA_H
#define XHEAP_BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

/** Zero it to begin. */
struct arena {
	struct arena_chunk *chunks;
	char *next, *end;
};

/** Zeroed memory for `count` objects of `size` bytes, aligned for any of them. There always is some (base/memory.h). */
void *arena_alloc(struct arena *arena, size_t size, size_t count);

/** A copy of the text. */
char *arena_text(struct arena *arena, const char *text);

/** A formatted text. */
__attribute__((format(printf, 2, 3))) char *arena_format(struct arena *arena, const char *format, ...);

/** Give everything back. */
void arena_fini(struct arena *arena);

#define arena_new(arena, type, count) ((type *)arena_alloc((arena), sizeof(type), (count)))

#endif
