/* SPDX-License-Identifier: MIT */
/*
 * A program that runs long and leaks: the same calls whenever it is run with the same words.
 *
 *     leaking ROUNDS THREADS PAUSE_US [LEAKED_PER_MILLE]
 *
 * ROUNDS 0: as many as come until its input ends.
 *
 * Each thread has its own generator and 64 places. In each round it takes a place and gives back, reallocates, or fills
 * it; now and then a block is forgotten, by one of three functions, with the size 50,000 + 16 * its number + the
 * thread's, so that every leaked block tells whose it is. At the end each thread gives back what is in its places.
 */
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PLACES = 64, LEAK_FIRST = 50000, LEAK_STEP = 16 };

static unsigned long rounds, pause_us, per_mille = 2;
static void *volatile leaked;

struct worker {
	pthread_t thread;
	unsigned number, leak_count;
	uint64_t state;
	void *places[PLACES];
};

static uint32_t next(struct worker *worker)
{
	worker->state = worker->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(worker->state >> 33);
}

__attribute__((noinline)) static void forget_first(size_t size)
{
	leaked = malloc(size);
}
__attribute__((noinline)) static void forget_second(size_t size)
{
	leaked = calloc(1, size);
}
__attribute__((noinline)) static void forget_third(size_t size)
{
	leaked = realloc(malloc(10), size);
}

static void forget(struct worker *worker)
{
	static void (*const forgets[])(size_t) = {forget_first, forget_second, forget_third};
	forgets[worker->leak_count % 3](LEAK_FIRST + (size_t)LEAK_STEP * worker->leak_count + worker->number);
	worker->leak_count++;
}

__attribute__((noinline)) static void touch(struct worker *worker)
{
	void **place = &worker->places[next(worker) % PLACES];
	uint32_t what = next(worker) % 8, size = next(worker) % 5000;
	if (what < 4) {
		free(*place);
		*place = malloc(size);
	} else if (what < 6) {
		*place = realloc(*place, size + 1);
	} else {
		free(*place);
		*place = NULL;
		free(malloc(size));
	}
}

static bool is_over(unsigned long round)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};
	char ignored;
	if (rounds)
		return round >= rounds;
	return round % 64 == 0 && poll(&input, 1, 0) > 0 && read(0, &ignored, 1) <= 0;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	for (unsigned long i = 0; !is_over(i); i++) {
		touch(worker);
		if (next(worker) % 1000 < per_mille)
			forget(worker);
		if (pause_us && i % 64 == 0)
			usleep((useconds_t)pause_us);
	}
	for (int i = 0; i < PLACES; i++)
		free(worker->places[i]);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[16];
	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1, all = 0;
	pause_us = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	per_mille = argc > 4 ? strtoul(argv[4], NULL, 10) : per_mille;
	if (!count || count > 16)
		return 2;
	for (unsigned i = 0; i < count; i++) {
		workers[i].number = i;
		workers[i].state = i + 1;
	}
	for (unsigned i = 1; i < count; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 2;
	work(&workers[0]);
	for (unsigned i = 0; i < count; i++) {
		if (i)
			pthread_join(workers[i].thread, NULL);
		all += workers[i].leak_count;
	}
	/* Without the heap. */
	char text[64];
	int length = snprintf(text, sizeof(text), "leaked %u\n", all);
	return write(1, text, (size_t)length) == length ? 0 : 1;
}
