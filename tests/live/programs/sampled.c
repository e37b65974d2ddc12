/* SPDX-License-Identifier: MIT */
/*
 * A program that knows what it allocates: for each of its sites, blocks and bytes in all, and of those that it keeps.
 * Sites: small and short-lived, of mixed sizes, large, by calloc, by aligned_alloc, grown by realloc, leaked; in
 * several threads, which free each other's blocks; a forked child gives back what it inherited. Prints "site blocks
 * bytes kept_blocks kept_bytes" for each.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 60000, SLOTS = 512, SITES = 6 };
struct tally {
	const char *name;
	uint64_t blocks, bytes, kept_blocks, kept_bytes;
};

static struct tally tallies[SITES] = {{.name = "site_small"},   {.name = "site_mixed"}, {.name = "site_zeroed"},
				      {.name = "site_aligned"}, {.name = "site_grown"}, {.name = "site_leaked"}};
static void *volatile exchange[SLOTS];

static void tally(int site, uint64_t blocks, uint64_t bytes, int is_kept)
{
	__atomic_fetch_add(&tallies[site].blocks, blocks, __ATOMIC_RELAXED);
	__atomic_fetch_add(&tallies[site].bytes, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&tallies[site].kept_blocks, is_kept ? blocks : 0, __ATOMIC_RELAXED);
	__atomic_fetch_add(&tallies[site].kept_bytes, is_kept ? bytes : 0, __ATOMIC_RELAXED);
}

static uint32_t next(uint32_t *state, uint32_t limit)
{
	*state = *state * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)(*state >> 4) * limit >> 28);
}

/* Functions of one body would become one; their comments make them differ. */
#define SITE __attribute__((noinline)) static void *
SITE site_small(size_t size)
{
	void *block = malloc(size);
	__asm__ volatile("# small" : : "r"(block) : "memory");
	return block;
}

SITE site_mixed(size_t size)
{
	void *block = malloc(size);
	__asm__ volatile("# mixed" : : "r"(block) : "memory");
	return block;
}

SITE site_zeroed(size_t size)
{
	void *block = calloc(size / 8 + 1, 8);
	__asm__ volatile("# zeroed" : : "r"(block) : "memory");
	return block;
}

SITE site_aligned(size_t size)
{
	void *block = NULL;
	if (posix_memalign(&block, 64, size))
		abort();
	__asm__ volatile("# aligned" : : "r"(block) : "memory");
	return block;
}

SITE site_grown(void *block, size_t size)
{
	block = realloc(block, size);
	__asm__ volatile("# grown" : : "r"(block) : "memory");
	return block;
}

SITE site_leaked(size_t size)
{
	void *block = malloc(size);
	__asm__ volatile("# leaked" : : "r"(block) : "memory");
	return block;
}

/* Hand a block to whoever comes next, and give back what lay there. */
static void hand_on(uint32_t *state, void *block)
{
	free(__atomic_exchange_n(&exchange[next(state, SLOTS)], block, __ATOMIC_ACQ_REL));
}

static void *work(void *argument)
{
	uint32_t state = (uint32_t)(uintptr_t)argument * 7919 + 1;
	for (int i = 0; i < ROUNDS; i++) {
		size_t small = 1 + next(&state, 48), mixed = 1 + next(&state, 2000), zeroed = 8 * next(&state, 60);
		free(site_small(small));
		tally(0, 1, small, 0);
		hand_on(&state, site_mixed(mixed));
		tally(1, 1, mixed, 0);
		free(site_zeroed(zeroed));
		tally(2, 1, (zeroed / 8 + 1) * 8, 0);
		if (i % 8 == 0) {
			size_t size = 64 + next(&state, 4000);
			free(site_aligned(size));
			tally(3, 1, size, 0);
		}
		if (i % 100 == 0) {
			void *block = NULL;
			for (size_t size = 24; size < 20000; size *= 2) {
				block = site_grown(block, size);
				tally(4, 1, size, 0);
			}
			free(block);
			size_t size = 100 + next(&state, 5000);
			site_leaked(size);
			tally(5, 1, size, 1);
		}
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pid_t child = fork();
	for (int i = 0; i < SLOTS; i++)
		free(exchange[i]);
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	for (int i = 0; i < SITES; i++)
		printf("%s %llu %llu %llu %llu\n", tallies[i].name, (unsigned long long)tallies[i].blocks,
		       (unsigned long long)tallies[i].bytes, (unsigned long long)tallies[i].kept_blocks,
		       (unsigned long long)tallies[i].kept_bytes);
	return 0;
}
