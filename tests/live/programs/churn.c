/* SPDX-License-Identifier: MIT */
/*
 * Random calls of every function that all libcs have, by some threads, with the blocks' content checked:
 * churn [THREADS [CALLS [PAUSE]]], with a pause of so many milliseconds after each thousand calls.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>

#include "expect.h"

enum { SLOTS = 257 };

struct block {
	unsigned char *bytes;
	size_t size;
	unsigned char mark;
};

static unsigned call_count = 2000, pause_ms;

static void block_check(const struct block *block)
{
	EXPECT(block->bytes[0] == block->mark && block->bytes[block->size - 1] == block->mark);
}

__attribute__((noinline)) static void *block_new(unsigned *seed, size_t size)
{
	void *aligned = NULL;

	switch (random_below(seed, 5)) {
	case 0:
		return calloc(1 + random_below(seed, 4), size);
	case 1:
		EXPECT(!posix_memalign(&aligned, 64, size));
		EXPECT(((uintptr_t)aligned & 63) == 0);
		return aligned;
	case 2:
		aligned = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
		EXPECT(((uintptr_t)aligned & 4095) == 0);
		return aligned;
	default:
		return malloc(size);
	}
}

static size_t size_next(unsigned *seed)
{
	return random_below(seed, 50) ? 1 + random_below(seed, 600) : 100000 + random_below(seed, 300000);
}

static void block_change(struct block *block, unsigned *seed)
{
	unsigned char mark = (unsigned char)random_below(seed, 256);
	size_t size = size_next(seed);

	if (!block->bytes) {
		block->bytes = block_new(seed, size);
	} else {
		block_check(block);
		if (random_below(seed, 3)) {
			free(block->bytes);
			block->bytes = NULL;
			return;
		}
		block->bytes = realloc(block->bytes, size);
		EXPECT(block->bytes && block->bytes[0] == block->mark);
	}
	block_mark(block->bytes, size, mark);
	block->size = size;
	block->mark = mark;
}

static void *churn(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument + 1;
	struct block blocks[SLOTS] = {{0}};

	for (unsigned i = 0; i < call_count; i++) {
		block_change(&blocks[random_below(&seed, SLOTS)], &seed);
		if (pause_ms && i % 1000 == 999)
			usleep(pause_ms * 1000);
	}
	for (int i = 0; i < SLOTS; i += 2)
		free(blocks[i].bytes);
	return NULL;
}

int main(int argc, char **argv)
{
	int thread_count = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t threads[64];

	if (argc > 2)
		call_count = (unsigned)atoi(argv[2]);
	if (argc > 3)
		pause_ms = (unsigned)atoi(argv[3]);
	EXPECT(thread_count >= 1 && thread_count <= 64);
	for (int i = 1; i < thread_count; i++)
		EXPECT(!pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)i));
	churn(NULL);
	for (int i = 1; i < thread_count; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	puts("ok");
	return 0;
}
