/* SPDX-License-Identifier: MIT */
/*
 * Many threads, one after another, each of which calls from many stacks and keeps a block of every hundredth thread:
 * what a long recording must not keep sums of for each thread.
 *
 *     crowded THREADS DEPTH
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *volatile kept;

__attribute__((noinline)) static int descend(int depth)
{
	void *block = malloc(16 + (size_t)depth % 64);
	if (!block)
		abort();
	memset(block, 1, 16);
	int below = depth > 1 ? descend(depth - 1) : 0;
	free(block);
	return below + 1;
}

static void *run(void *number)
{
	static __thread int depth;
	depth = descend(*(int *)number);
	return depth == *(int *)number ? number : NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[1]) : 0, depth = argc > 2 ? atoi(argv[2]) : 0;
	for (int i = 0; i < threads; i++) {
		pthread_t thread;
		void *result;
		if (pthread_create(&thread, NULL, run, &depth) || pthread_join(thread, &result) || !result)
			return 1;
		if (i % 100 == 0)
			kept = malloc(5000);
	}
	return threads && depth ? 0 : 2;
}
