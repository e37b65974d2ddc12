/* SPDX-License-Identifier: MIT */
/*
 * Many short threads, each of which allocates and frees ten times: what a thread costs beside its events.
 * `--at-once 2` keeps two of them alive at any time.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 10, AT_ONCE_MAX = 64 };

static void *run_thread(void *argument)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		void *volatile block = malloc(32 + 16 * i);
		if (block == NULL)
			abort();
		memset(block, 1, 32);
		free(block);
	}
	return argument;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"threads", required_argument, NULL, 't'},
		{"at-once", required_argument, NULL, 'a'},
		{0},
	};
	unsigned long thread_count = 20000, at_once = 1;
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (option) {
		case 't':
			thread_count = strtoul(optarg, NULL, 10);
			break;
		case 'a':
			at_once = strtoul(optarg, NULL, 10);
			break;
		default:
			return 2;
		}
	}
	if (at_once < 1 || at_once > AT_ONCE_MAX) {
		fprintf(stderr, "churn: 1 to %d threads at once\n", AT_ONCE_MAX);
		return 2;
	}

	/* The oldest is joined before the next begins, so that at_once - 1 others go on meanwhile. */
	pthread_t threads[AT_ONCE_MAX];
	for (unsigned long i = 0; i < thread_count + at_once; i++) {
		if (i >= at_once && i - at_once < thread_count)
			pthread_join(threads[i % at_once], NULL);
		if (i < thread_count && pthread_create(&threads[i % at_once], NULL, run_thread, NULL) != 0)
			abort();
	}
	printf("threads=%lu\n", thread_count);
	return 0;
}
