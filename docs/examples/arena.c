/* SPDX-License-Identifier: MIT */
/* An arena: blocks are cut one after the other from chunks, and all freed at once. Compiles as C and as C++. */
#include <stdio.h>
#include <stdlib.h>

#include <xheap/heap.h>

enum { CHUNK_BYTES = 4096, ALIGNMENT = 16 };

struct chunk {
	struct chunk *next;
	size_t used;
	char bytes[CHUNK_BYTES];
};

struct arena {
	struct chunk *chunks;
};

static struct arena *arena_new(const char *name)
{
	struct arena *arena = (struct arena *)calloc(1, sizeof(*arena));

	if (arena)
		xheap_heap_create(arena, name);
	return arena;
}

static void *arena_alloc(struct arena *arena, size_t size)
{
	size_t bytes = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	struct chunk *chunk = arena->chunks;
	void *block = NULL;

	if (bytes <= CHUNK_BYTES && (!chunk || bytes > CHUNK_BYTES - chunk->used)) {
		chunk = (struct chunk *)malloc(sizeof(*chunk));
		if (chunk) {
			chunk->next = arena->chunks;
			chunk->used = 0;
			arena->chunks = chunk;
		}
	}
	if (bytes <= CHUNK_BYTES && chunk) {
		block = chunk->bytes + chunk->used;
		chunk->used += bytes;
	}
	/* NULL reports a failed call. */
	xheap_heap_alloc(arena, block, size);
	return block;
}

/* The first chunk stays for the next blocks. */
static void arena_reset(struct arena *arena)
{
	xheap_heap_reset(arena);
	while (arena->chunks && arena->chunks->next) {
		struct chunk *next = arena->chunks->next;
		free(arena->chunks);
		arena->chunks = next;
	}
	if (arena->chunks)
		arena->chunks->used = 0;
}

static void arena_free(struct arena *arena)
{
	/* Before the memory of the blocks is freed. */
	xheap_heap_destroy(arena);
	while (arena->chunks) {
		struct chunk *next = arena->chunks->next;
		free(arena->chunks);
		arena->chunks = next;
	}
	free(arena);
}

/* 3 rounds of 100 blocks of 100 bytes; the last round's stay until the arena is freed. */
int main(void)
{
	struct arena *arena = arena_new("rounds");
	unsigned sum = 0;

	for (int round = 0; arena && round < 3; round++) {
		arena_reset(arena);
		for (int i = 0; i < 100; i++) {
			unsigned char *block = (unsigned char *)arena_alloc(arena, 100);
			if (!block)
				return 1;
			block[99] = (unsigned char)i;
			sum += block[99];
		}
	}
	if (!arena)
		return 1;
	arena_free(arena);
	printf("%u\n", sum);
	return 0;
}
