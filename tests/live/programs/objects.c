/* SPDX-License-Identifier: MIT */
/*
 * objects THREADS CALLS SEED: each thread makes, fills, deletes and destroys heaps of mimalloc, in a random order. Print
 * each call behind the last one: the thread's id, the function, its arguments, its result.
 */
#include <mimalloc.h>
#include <pthread.h>
#include <stdint.h>

#include "expect.h"

enum { THREADS_MAX = 8, HEAPS = 3, BLOCKS = 200, SIZE_MAX_BYTES = 3000, DEFAULT = HEAPS };

struct call {
	const char *name;
	uint64_t argument[4], result;
	int count;
};

struct owner {
	pthread_t thread;
	int tid;
	unsigned seed;
	struct call *calls;
	int made, wanted;
	mi_heap_t *heap[HEAPS];
	struct {
		void *address;
		int heap;
	} block[BLOCKS];
};

static uint64_t note(struct owner *owner, const char *name, int count, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		     uint64_t result)
{
	owner->calls[owner->made++] = (struct call){name, {a, b, c, d}, result, count};
	return result;
}

#define AS(value) ((uint64_t)(uintptr_t)(value))

static void *take(struct owner *owner, mi_heap_t *heap)
{
	size_t size = 1 + random_below(&owner->seed, SIZE_MAX_BYTES), count = 1 + random_below(&owner->seed, 5);
	switch (random_below(&owner->seed, 6)) {
	case 0:
		return (void *)note(owner, "mi_heap_zalloc", 2, AS(heap), size, 0, 0, AS(mi_heap_zalloc(heap, size)));
	case 1:
		return (void *)note(owner, "mi_heap_calloc", 3, AS(heap), count, size, 0,
				    AS(mi_heap_calloc(heap, count, size)));
	case 2:
		return (void *)note(owner, "mi_heap_malloc_aligned", 3, AS(heap), size, 64, 0,
				    AS(mi_heap_malloc_aligned(heap, size, 64)));
	case 3:
		return (void *)note(owner, "mi_heap_mallocn", 3, AS(heap), count, size, 0,
				    AS(mi_heap_mallocn(heap, count, size)));
	default:
		return (void *)note(owner, "mi_heap_malloc", 2, AS(heap), size, 0, 0, AS(mi_heap_malloc(heap, size)));
	}
}

static void *resize(struct owner *owner, mi_heap_t *heap, void *old)
{
	size_t size = 1 + random_below(&owner->seed, SIZE_MAX_BYTES), count = 1 + random_below(&owner->seed, 5);
	switch (random_below(&owner->seed, 3)) {
	case 0:
		return (void *)note(owner, "mi_heap_reallocn", 4, AS(heap), AS(old), count, size,
				    AS(mi_heap_reallocn(heap, old, count, size)));
	case 1:
		return (void *)note(owner, "mi_heap_realloc_aligned", 4, AS(heap), AS(old), size, 128,
				    AS(mi_heap_realloc_aligned(heap, old, size, 128)));
	default:
		return (void *)note(owner, "mi_heap_realloc", 3, AS(heap), AS(old), size, 0,
				    AS(mi_heap_realloc(heap, old, size)));
	}
}

/* End a heap. Its blocks end with it, or go on in the default heap. */
static void end(struct owner *owner, int i)
{
	int is_deleted = random_below(&owner->seed, 2) == 0;
	note(owner, is_deleted ? "mi_heap_delete" : "mi_heap_destroy", 1, AS(owner->heap[i]), 0, 0, 0, 0);
	(is_deleted ? mi_heap_delete : mi_heap_destroy)(owner->heap[i]);
	owner->heap[i] = NULL;
	for (int b = 0; b < BLOCKS; b++)
		if (owner->block[b].address && owner->block[b].heap == i) {
			owner->block[b].heap = DEFAULT;
			if (!is_deleted)
				owner->block[b].address = NULL;
		}
}

static void step(struct owner *owner)
{
	int i = (int)random_below(&owner->seed, HEAPS), b = (int)random_below(&owner->seed, BLOCKS);
	void *old = owner->block[b].address;
	if (!owner->heap[i]) {
		owner->heap[i] = mi_heap_new();
		EXPECT(owner->heap[i]);
		note(owner, "mi_heap_new", 0, 0, 0, 0, 0, AS(owner->heap[i]));
	} else if (random_below(&owner->seed, 40) == 0) {
		end(owner, i);
	} else if (!old) {
		owner->block[b].address = take(owner, owner->heap[i]);
		owner->block[b].heap = i;
	} else if (random_below(&owner->seed, 3) == 0) {
		/* A block that is resized in place stays in its heap. */
		owner->block[b].address = resize(owner, owner->heap[i], old);
		owner->block[b].heap = owner->block[b].address == old ? owner->block[b].heap : i;
	} else {
		note(owner, "mi_free", 1, AS(old), 0, 0, 0, 0);
		mi_free(old);
		owner->block[b].address = NULL;
	}
}

static void *run(void *argument)
{
	struct owner *owner = argument;
	owner->tid = gettid();
	while (owner->made < owner->wanted)
		step(owner);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct owner owners[THREADS_MAX];
	EXPECT(argc == 4);
	int threads = atoi(argv[1]), wanted = atoi(argv[2]);
	EXPECT(threads <= THREADS_MAX);
	for (int i = 0; i < threads; i++) {
		owners[i].seed = (unsigned)(atoi(argv[3]) + i);
		owners[i].wanted = wanted;
		owners[i].calls = calloc((size_t)wanted + 1, sizeof(struct call));
		EXPECT(!pthread_create(&owners[i].thread, NULL, run, &owners[i]));
	}
	for (int i = 0; i < threads; i++)
		pthread_join(owners[i].thread, NULL);
	for (int i = 0; i < threads; i++)
		for (const struct call *call = owners[i].calls; call < owners[i].calls + owners[i].made; call++) {
			printf("%d %s", owners[i].tid, call->name);
			for (int a = 0; a < call->count; a++)
				printf(" %llu", (unsigned long long)call->argument[a]);
			printf(" = %llu\n", (unsigned long long)call->result);
		}
	return 0;
}
