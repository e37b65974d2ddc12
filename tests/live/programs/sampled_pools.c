/* SPDX-License-Identifier: MIT */
/*
 * A program that knows what its own allocators hand out, each with a heap and a site of its own, in several threads:
 *   arenas   in a block of malloc's, which each thread has one after another; reset and destroyed
 *   cells    one pool in static memory for all threads, which give back each other's blocks
 *   grown    in memory of the system: resized, in place or not
 *   kept     in memory of the system, never given back
 * A forked child gives back what it inherited. Prints "heap site blocks bytes kept_blocks kept_bytes" for each, and for
 * the arenas' own blocks.
 */
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <xheap/heap.h>

#include "expect.h"

enum {
	THREADS = 3,
	ROUNDS = 20000,
	CELLS = 2048,
	CELL_BYTES = 512,
	ARENA_BYTES = 16 << 10,
	ARENA_ROUNDS = 200,
	KEPT_BYTES = 64 << 20,
	GROWN_BYTES = 1 << 20
};
enum { SITE_CHUNK, SITE_ARENA, SITE_CELL, SITE_GROWN, SITE_KEPT, SITES };
struct tally {
	const char *heap, *name;
	uint64_t blocks, bytes, kept_blocks, kept_bytes;
};

static struct tally tallies[SITES] = {{.heap = "-", .name = "site_chunk"},
				      {.heap = "arenas", .name = "site_arena"},
				      {.heap = "cells", .name = "site_cell"},
				      {.heap = "grown", .name = "site_grown"},
				      {.heap = "kept", .name = "site_kept"}};
static char cells[CELLS][CELL_BYTES] __attribute__((aligned(16)));
static int cell_is_used[CELLS];
static pthread_mutex_t cell_lock = PTHREAD_MUTEX_INITIALIZER;
static char *kept;
static size_t kept_used;

static void tally(int site, uint64_t bytes, int is_kept)
{
	__atomic_fetch_add(&tallies[site].blocks, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&tallies[site].bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&tallies[site].kept_blocks, (uint64_t)is_kept, __ATOMIC_RELAXED);
	__atomic_fetch_add(&tallies[site].kept_bytes, is_kept ? bytes : 0, __ATOMIC_RELAXED);
}

static uint32_t next(uint32_t *state, uint32_t limit)
{
	*state = *state * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(*state >> 4) * limit >> 28);
}

/* What comes after the call keeps the site's frame. */
#define SITE(name, ...) __attribute__((noinline)) static void name(__VA_ARGS__)
#define STAY(what) __asm__ volatile("# " what : : : "memory")

SITE(site_arena, const char *arena, char *block, size_t size)
{
	xheap_heap_alloc(arena, block, size);
	STAY("arena");
}

SITE(site_cell, char *block, size_t size)
{
	xheap_heap_alloc(cells, block, size);
	STAY("cell");
}

SITE(site_grown, const char *heap, char *old, char *block, size_t size)
{
	xheap_heap_realloc(heap, old, block, size);
	STAY("grown");
}

SITE(site_kept, char *block, size_t size)
{
	xheap_heap_alloc(kept, block, size);
	STAY("kept");
}

__attribute__((noinline)) static char *site_chunk(void)
{
	char *block = (char *)malloc(ARENA_BYTES);
	STAY("chunk");
	return block;
}

/* The first block lies where the arena's own does. */
static void run_arena(uint32_t *state)
{
	char *arena = site_chunk();
	EXPECT(arena);
	tally(SITE_CHUNK, ARENA_BYTES, 0);
	xheap_heap_create(arena, "arenas");
	for (int reset = 0; reset < 3; reset++) {
		for (size_t used = 0; used < ARENA_BYTES - 1024;) {
			size_t size = 1 + next(state, 900);
			site_arena(arena, arena + used, size);
			tally(SITE_ARENA, size, 0);
			used += (size + 15) & ~15u;
		}
		if (reset < 2)
			xheap_heap_reset(arena);
	}
	xheap_heap_destroy(arena);
	free(arena);
}

/* Take one's place, or give back what is there. */
static void run_cell(uint32_t *state)
{
	uint32_t cell = next(state, CELLS), size = 1 + next(state, CELL_BYTES);
	EXPECT(pthread_mutex_lock(&cell_lock) == 0);
	if (cell_is_used[cell]) {
		xheap_heap_free(cells, cells[cell]);
	} else {
		site_cell(cells[cell], size);
		tally(SITE_CELL, size, 0);
	}
	cell_is_used[cell] = !cell_is_used[cell];
	EXPECT(pthread_mutex_unlock(&cell_lock) == 0);
}

static void run_grown(uint32_t *state, char *memory)
{
	char *block = NULL;
	for (size_t size = 16; size < 20000; size += size / 2 + next(state, 16)) {
		/* Here or there. */
		char *to = memory + (next(state, 2) ? GROWN_BYTES / 2 : 0);
		site_grown(memory, block, to, size);
		block = to;
		tally(SITE_GROWN, size, 0);
	}
	xheap_heap_free(memory, block);
}

static char *map(size_t size)
{
	char *memory = (char *)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(memory != MAP_FAILED);
	return memory;
}

static void *work(void *argument)
{
	uint32_t state = (uint32_t)(uintptr_t)argument * 7919 + 1;
	char *memory = map(GROWN_BYTES);
	xheap_heap_create(memory, "grown");
	for (int i = 0; i < ROUNDS; i++) {
		run_cell(&state);
		if (i % 10 == 0)
			run_grown(&state, memory);
		if (i % (ROUNDS / ARENA_ROUNDS) == 0)
			run_arena(&state);
		if (i % 8 == 0) {
			size_t size = 1 + next(&state, 3000),
			       at = __atomic_fetch_add(&kept_used, (size + 15) & ~15ul, __ATOMIC_RELAXED);
			EXPECT(at + size <= KEPT_BYTES);
			site_kept(kept + at, size);
			tally(SITE_KEPT, size, 1);
		}
	}
	xheap_heap_destroy(memory);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	int status;
	kept = map(KEPT_BYTES);
	xheap_heap_create(kept, "kept");
	xheap_heap_create(cells, "cells");
	for (uintptr_t i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
	for (int i = 0; i < THREADS; i++)
		EXPECT(pthread_join(threads[i], NULL) == 0);
	pid_t child = fork();
	EXPECT(child >= 0);
	for (int i = 0; i < CELLS; i++)
		if (cell_is_used[i])
			xheap_heap_free(cells, cells[i]);
	if (!child)
		_exit(0);
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	for (int i = 0; i < SITES; i++)
		printf("%s %s %llu %llu %llu %llu\n", tallies[i].heap, tallies[i].name,
		       (unsigned long long)tallies[i].blocks, (unsigned long long)tallies[i].bytes,
		       (unsigned long long)tallies[i].kept_blocks, (unsigned long long)tallies[i].kept_bytes);
	return 0;
}
