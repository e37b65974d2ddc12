/* SPDX-License-Identifier: MIT */
/*
 * A program that works when it is told to: worker [THREADS]. Each line of its input is a kind of work and how much of
 * it each thread does:
 *
 *     pairs N     malloc and free, N times
 *     steps N     arithmetic, without a heap call
 *
 * When all threads are through it answers "wall NS cpu NS".
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS_MAX = 64 };

static int (*work)(uint64_t count);
static uint64_t work_count;

static int do_pairs(uint64_t count)
{
	static const unsigned short sizes[4] = {24, 48, 120, 200};
	for (uint64_t i = 0; i < count; i++) {
		volatile unsigned char *block = malloc(sizes[i & 3]);
		if (block == NULL)
			abort();
		*block = (unsigned char)i;
		free((void *)block);
	}
	return 0;
}

static int do_steps(uint64_t count)
{
	uint64_t state = 88172645463325252u;
	for (uint64_t i = 0; i < count; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
	}
	return (int)state;
}

static const struct {
	const char *name;
	int (*work)(uint64_t count);
} kinds[] = {{"pairs", do_pairs}, {"steps", do_steps}};

static void *run_thread(void *argument)
{
	volatile int result = work(work_count);
	(void)result;
	return argument;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void run(unsigned thread_count)
{
	pthread_t threads[THREADS_MAX];
	uint64_t wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned i = 1; i < thread_count; i++)
		if (pthread_create(&threads[i], NULL, run_thread, NULL) != 0)
			abort();
	run_thread(NULL);
	for (unsigned i = 1; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	printf("wall %lu cpu %lu\n", now_ns(CLOCK_MONOTONIC) - wall, now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned thread_count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
	char line[64], name[16];
	if (thread_count < 1 || thread_count > THREADS_MAX) {
		fprintf(stderr, "worker: 1 to %d threads\n", THREADS_MAX);
		return 2;
	}
	while (fgets(line, sizeof(line), stdin)) {
		work = NULL;
		if (sscanf(line, "%15s %lu", name, &work_count) == 2)
			for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
				if (!strcmp(kinds[i].name, name))
					work = kinds[i].work;
		if (!work) {
			fprintf(stderr, "worker: %s: not known\n", line);
			return 2;
		}
		run(thread_count);
	}
	return 0;
}
