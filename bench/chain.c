/* SPDX-License-Identifier: MIT */
/*
 * A deep chain of calls over malloc and free, the hard case for whoever takes a stack at each of them.
 *
 * Sixteen functions call one another, each from four places, so that a path is a list of choices. 200 random
 * paths part at the root: going from one to another changes every frame. At the end of a path `burst` blocks
 * are allocated and freed, one at a time; a burst of 1 makes each pair a wholly new stack, 4 is like ordinary
 * programs, 1000 is nearly one fixed stack. Built without frame pointers, with the registers of the callers
 * saved and frames of several sizes, as a distribution's code is.
 *
 * With --gate FILE it waits after the warm-up until someone (bench/steps) opens the gate, and calls
 * bench_marker() right before and right after the measured pairs.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define FRAME __attribute__((noipa))

enum { PATH_COUNT = 200, DEPTH_MAX = 250, THREADS_MAX = 64 };

static unsigned depth = 30, burst = 4, thread_count = 1;
static unsigned long pair_count = 5000000, warm_count;
static unsigned char paths[PATH_COUNT][DEPTH_MAX];
static volatile int gate;

/** Called around what is to be counted; does nothing. */
void bench_marker(void);

FRAME void bench_marker(void)
{
	__asm__ volatile("");
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* The innermost frame: one place that allocates, with four sizes, and one that frees. */
static FRAME unsigned leaf(unsigned count)
{
	static const unsigned short sizes[4] = {24, 48, 120, 200};
	unsigned sum = 0;
	for (unsigned i = 0; i < count; i++) {
		volatile unsigned char *block = malloc(sizes[i & 3]);
		if (block == NULL)
			abort();
		*block = (unsigned char)i;
		sum += *block;
		free((void *)block);
	}
	return sum;
}

/* X(ID, the four functions that it calls, bytes of its frame) */
/* clang-format off */
#define LINKS(X)                      \
	X(0, 1, 6, 11, 12, 8)         \
	X(1, 2, 7, 12, 5, 24)         \
	X(2, 3, 8, 13, 14, 40)        \
	X(3, 4, 9, 14, 1, 8)          \
	X(4, 5, 10, 15, 8, 72)        \
	X(5, 6, 11, 0, 13, 24)        \
	X(6, 7, 12, 1, 2, 8)          \
	X(7, 8, 13, 2, 15, 136)       \
	X(8, 9, 14, 3, 4, 24)         \
	X(9, 10, 15, 4, 7, 40)        \
	X(10, 11, 0, 5, 14, 8)        \
	X(11, 12, 1, 6, 3, 56)        \
	X(12, 13, 2, 7, 0, 24)        \
	X(13, 14, 3, 8, 9, 8)         \
	X(14, 15, 4, 9, 6, 104)       \
	X(15, 0, 5, 10, 11, 24)
/* clang-format on */

#define X(id, a, b, c, d, bytes) static unsigned link_##id(const unsigned char *path, unsigned left, unsigned count);
LINKS(X)
#undef X

/* What is added after the call keeps the call from becoming a jump, and `left` and `path` in saved registers. */
#define X(id, a, b, c, d, bytes) \
	static FRAME unsigned link_##id(const unsigned char *path, unsigned left, unsigned count) \
	{ \
		volatile unsigned char room[bytes]; \
		room[left & 7] = path[0]; \
		if (left == 0) \
			return leaf(count) + room[0]; \
		switch (path[0] & 3) { \
		case 0: \
			return link_##a(path + 1, left - 1, count) + left; \
		case 1: \
			return link_##b(path + 1, left - 1, count) + path[0]; \
		case 2: \
			return link_##c(path + 1, left - 1, count) + left + path[0]; \
		default: \
			return link_##d(path + 1, left - 1, count) + 1; \
		} \
	}
LINKS(X)
#undef X

#define X(id, a, b, c, d, bytes) link_##id,
static unsigned (*const links[])(const unsigned char *, unsigned, unsigned) = {LINKS(X)};
#undef X

static FRAME unsigned run_pairs(uint64_t *state, unsigned long pairs)
{
	unsigned sum = 0;
	while (pairs > 0) {
		uint64_t choice = random_next(state) >> 16;
		unsigned count = pairs < burst ? (unsigned)pairs : burst;
		const unsigned char *path = paths[choice % PATH_COUNT];
		sum += links[path[depth - 1] & 15](path, depth - 1, count);
		pairs -= count;
	}
	return sum;
}

static void *run_thread(void *argument)
{
	uint64_t state = 0x9e3779b97f4a7c15u + (uintptr_t)argument;
	run_pairs(&state, warm_count);
	volatile unsigned sum = run_pairs(&state, pair_count);
	(void)sum;
	return NULL;
}

static void run_gated(const char *file)
{
	static const struct timespec millisecond = {.tv_nsec = 1000000};
	uint64_t state = 0x9e3779b97f4a7c15u;
	run_pairs(&state, warm_count);
	FILE *out = fopen(file, "w");
	if (out == NULL) {
		perror(file);
		exit(1);
	}
	fprintf(out, "%d %p %p %lu\n", getpid(), (void *)&gate, (void *)bench_marker, 2 * pair_count);
	fclose(out);
	while (!gate)
		nanosleep(&millisecond, NULL);
	bench_marker();
	run_pairs(&state, pair_count);
	bench_marker();
}

static void run_threads(void)
{
	pthread_t threads[THREADS_MAX];
	for (uintptr_t i = 1; i < thread_count; i++) {
		if (pthread_create(&threads[i], NULL, run_thread, (void *)i) != 0)
			abort();
	}
	run_thread(NULL);
	for (unsigned i = 1; i < thread_count; i++)
		pthread_join(threads[i], NULL);
}

static void paths_make(void)
{
	uint64_t state = 88172645463325252u;
	for (unsigned i = 0; i < PATH_COUNT; i++) {
		for (unsigned j = 0; j < DEPTH_MAX; j++)
			paths[i][j] = (unsigned char)(random_next(&state) >> 24);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"depth", required_argument, NULL, 'd'},
		{"burst", required_argument, NULL, 'b'},
		{"pairs", required_argument, NULL, 'p'},
		{"warm", required_argument, NULL, 'w'},
		{"threads", required_argument, NULL, 't'},
		{"gate", required_argument, NULL, 'g'},
		{0},
	};
	const char *gate_file = NULL;
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (option) {
		case 'd':
			depth = (unsigned)atoi(optarg);
			break;
		case 'b':
			burst = (unsigned)atoi(optarg);
			break;
		case 'p':
			pair_count = strtoul(optarg, NULL, 10);
			break;
		case 'w':
			warm_count = strtoul(optarg, NULL, 10);
			break;
		case 't':
			thread_count = (unsigned)atoi(optarg);
			break;
		case 'g':
			gate_file = optarg;
			break;
		default:
			return 2;
		}
	}
	if (depth < 1 || depth > DEPTH_MAX || burst < 1 || thread_count < 1 || thread_count > THREADS_MAX) {
		fprintf(stderr, "chain: depth 1 to %d, burst from 1, threads 1 to %d\n", DEPTH_MAX, THREADS_MAX);
		return 2;
	}
	paths_make();
	if (gate_file != NULL)
		run_gated(gate_file);
	else
		run_threads();

	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	printf("events=%lu cpu_us=%ld\n", 2 * (warm_count + pair_count) * thread_count,
	       (long)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
		       usage.ru_stime.tv_usec);
	return 0;
}
