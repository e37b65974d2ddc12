/* SPDX-License-Identifier: MIT */
/*
 * Limits its own address space to some MiB more than it has, and says what it can do then: a block of 50 MiB, threads.
 *
 *     address_space MIB [locked]     locked: all memory of now and later stays resident
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BLOCK = 50 << 20, THREADS = 4, PAIRS = 2000, STACK = 1 << 18 };

static void *thread_run(void *unused)
{
	for (int i = 0; i < PAIRS; i++)
		free(malloc((size_t)i));
	return unused;
}

int main(int count, char **words)
{
	rlim_t bytes = count > 1 ? strtoul(words[1], NULL, 0) << 20 : 0;
	const struct rlimit limit = {bytes, bytes};
	pthread_t thread[THREADS];
	pthread_attr_t attributes;
	int started = 0;
	if (count > 2 && mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
		return 77;
	if (!bytes || setrlimit(RLIMIT_AS, &limit) != 0)
		return 2;
	/* Arenas of glibc take 128 MiB each for as long as there are so many, and then less. */
	mallopt(M_ARENA_MAX, 1);
	void *block = malloc(BLOCK);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	while (started < THREADS && pthread_create(&thread[started], &attributes, thread_run, NULL) == 0)
		started++;
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	printf("%s %d\n", block ? "block" : "none", started);
	free(block);
	return 0;
}
