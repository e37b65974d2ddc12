/* SPDX-License-Identifier: MIT */
/* A program's own malloc that tells of its pool, from within malloc and free: both are events. */
#include <stddef.h>

#include <xheap/heap.h>

enum { POOL_BYTES = 1 << 20, CELL_BYTES = 64, CALLS = 500 };

static char pool[POOL_BYTES] __attribute__((aligned(64)));
static size_t used;
static void *last;

void *malloc(size_t size)
{
	void *cell = last;

	if (size > CELL_BYTES || (!cell && used + CELL_BYTES > POOL_BYTES))
		return NULL;
	if (!cell) {
		cell = pool + used;
		used += CELL_BYTES;
	}
	last = NULL;
	xheap_heap_alloc(pool, cell, CELL_BYTES);
	return cell;
}

void free(void *pointer)
{
	if (!pointer)
		return;
	xheap_heap_free(pool, pointer);
	last = pointer;
}

void *calloc(size_t count, size_t size)
{
	(void)count, (void)size;
	return NULL;
}

void *realloc(void *pointer, size_t size)
{
	(void)pointer, (void)size;
	return NULL;
}

int main(void)
{
	void *volatile kept;

	xheap_heap_create(pool, "beneath malloc");
	for (int i = 0; i < CALLS; i++) {
		kept = malloc(10);
		if (i % 5)
			free(kept);
	}
	return 0;
}
