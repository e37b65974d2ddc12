/* SPDX-License-Identifier: MIT */
/* Two threads in one arena, whose reallocs move: what one gives up the other gets at once. Order is all here. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>

#include "expect.h"

enum { ROUNDS = 60000, SLOTS = 8 };

static void *run(void *argument)
{
	unsigned seed = (unsigned)(uintptr_t)argument;
	char *blocks[SLOTS] = {0};

	for (int i = 0; i < ROUNDS; i++) {
		char **block = &blocks[random_below(&seed, SLOTS)];
		size_t size = 1100 + 64 * random_below(&seed, 12);
		if (*block && random_below(&seed, 4) == 0) {
			free(*block);
			*block = NULL;
		} else {
			*block = (char *)block_mark(realloc(*block, size), size, 1);
		}
	}
	for (int i = 0; i < SLOTS; i++)
		free(blocks[i]);
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	EXPECT(mallopt(M_ARENA_MAX, 1));
	for (int i = 0; i < 2; i++)
		EXPECT(!pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)(i + 1)));
	for (int i = 0; i < 2; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	puts("ok");
	return 0;
}
