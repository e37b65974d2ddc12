/* SPDX-License-Identifier: MIT */
/*
 * Many live blocks: each of some threads keeps its share of them and replaces one at random, again and again, in the
 * end all of them by none. Sizes are of 16 to 215 bytes.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { THREADS_MAX = 64, SIZE_MIN = 16, SIZES = 200 };

static unsigned long block_count = 1000000, pair_count = 5000000, thread_count = 1;

static void *run_thread(void *argument)
{
	unsigned long share = block_count / thread_count;
	uint64_t state = ((uintptr_t)argument + 1) * 0x9e3779b97f4a7c15u;
	void **blocks = calloc(share, sizeof(*blocks));
	for (unsigned long i = 0; blocks && i < pair_count / thread_count; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		unsigned long at = state % share;
		free(blocks[at]);
		blocks[at] = malloc(SIZE_MIN + (state >> 40) % SIZES);
	}
	for (unsigned long i = 0; blocks && i < share; i++)
		free(blocks[i]);
	free(blocks);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"blocks", required_argument, NULL, 'b'},
		{"pairs", required_argument, NULL, 'p'},
		{"threads", required_argument, NULL, 't'},
		{0},
	};
	pthread_t threads[THREADS_MAX];
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (option) {
		case 'b':
			block_count = strtoul(optarg, NULL, 10);
			break;
		case 'p':
			pair_count = strtoul(optarg, NULL, 10);
			break;
		case 't':
			thread_count = strtoul(optarg, NULL, 10);
			break;
		default:
			return 2;
		}
	}
	if (thread_count < 1 || thread_count > THREADS_MAX || block_count < thread_count)
		return 2;
	for (unsigned long i = 0; i < thread_count; i++)
		if (pthread_create(&threads[i], NULL, run_thread, (void *)i) != 0)
			return 1;
	for (unsigned long i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
