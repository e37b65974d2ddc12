/* SPDX-License-Identifier: MIT */
/** The memory of a query: arenas with marks, all of them under one budget. A mark is released when a step of a loop is
    over; what began behind the mark (open iterators, references) ends then. */
#ifndef XHEAP_DX_QUERY_MEMORY_H
#define XHEAP_DX_QUERY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/** What all arenas of a query have together. */
struct dx_budget {
	size_t used_bytes, limit_bytes;
	bool is_exceeded;    /**< set once; the query ends at its next step, so the excess is small */
	unsigned copy_depth; /**< of values in values, while one is copied */
};

struct dx_chunk;
struct dx_cleanup;

/** Memory that is given back from its end. Begin it with dx_arena_init(). */
struct dx_arena {
	struct dx_budget *budget;
	struct dx_chunk *chunks, *spare;
	char *next, *end;
	size_t chunk_bytes; /**< of all chunks but the spare one */
	struct dx_cleanup *cleanups;
	bool is_lasting; /**< lives longer than queries: copies of values refer to nothing of a query */
};

/** A place in an arena. */
struct dx_mark {
	struct dx_chunk *chunk;
	char *next;
	struct dx_cleanup *cleanups;
};

/** Begin an empty arena. */
void dx_arena_init(struct dx_arena *arena, struct dx_budget *budget);

/** Return zeroed memory, aligned for any type. Never NULL: beyond the budget, is_exceeded is set. */
void *dx_alloc(struct dx_arena *arena, size_t size_bytes);

/** Return whether so many more bytes are in the budget; otherwise set is_exceeded. */
bool dx_has_room(struct dx_arena *arena, size_t size_bytes);

/** Return a copy of the first `length` bytes, with a NUL. */
char *dx_copy_text(struct dx_arena *arena, const char *text, size_t length);

/** Return a formatted text. */
__attribute__((format(printf, 2, 3))) char *dx_format(struct dx_arena *arena, const char *format, ...);

/** Have end(context) called when the arena ends, or is released to an earlier mark. */
void dx_on_release(struct dx_arena *arena, void (*end)(void *context), void *context);

/** Return the present end of the arena. */
struct dx_mark dx_mark(const struct dx_arena *arena);

/** Give back everything behind the mark. */
void dx_release(struct dx_arena *arena, struct dx_mark mark);

/** Give back everything. */
void dx_arena_clear(struct dx_arena *arena);

/** Give back everything. */
void dx_arena_fini(struct dx_arena *arena);

/** Return whether its chunks and its end fit together, and the budget has them (base/check.h). */
bool dx_arena_is_valid(const struct dx_arena *arena);

/** Return zeroed memory for `count` objects of a type; the product must not overflow. */
#define dx_new(arena, type, count) ((type *)dx_alloc((arena), sizeof(type) * (count)))

#endif
