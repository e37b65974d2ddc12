/* SPDX-License-Identifier: MIT */
/* Makes calls of which a file keeps many bytes each: of four threads, as many as are asked for in all, of an annotated
 * heap, with addresses and sizes by chance; with a second word each block is given back at once. A block of malloc that
 * it holds from before that is never given back. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "xheap/heap.h"

enum { THREADS = 4, KEPT_BYTES = 4242 };

static long rounds;
static int is_giving_back;
static char heap;

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void *call(void *seed)
{
	uint64_t state = (uint64_t)(uintptr_t)seed;
	for (long i = 0; i < rounds; i++) {
		void *block = (void *)(uintptr_t)next(&state);
		xheap_heap_alloc(&heap, block, (size_t)next(&state));
		if (is_giving_back)
			xheap_heap_free(&heap, block);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	rounds = argc > 1 ? atol(argv[1]) / THREADS : 0;
	is_giving_back = argc > 2;
	void *kept = malloc(KEPT_BYTES);
	xheap_heap_create(&heap, "dense");
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, call, (void *)(i * 7919 + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return kept == NULL;
}
