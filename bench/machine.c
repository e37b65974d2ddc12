/* SPDX-License-Identifier: MIT */
/*
 * What this machine takes for what every recorded call contains, in nanoseconds, the least of several trials: an
 * addition that waits for the one before it (a cycle), reading the time-stamp counter, malloc and free of a small
 * block. Virtual machines of one name differ in these by half and more, and one machine from minute to minute.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

enum { TRIALS = 15, TURNS = 200000 };

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void add(void)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < TURNS; i++)
		__asm__ volatile("add $1, %0" : "+r"(sum));
}

static void read_counter(void)
{
	for (uint32_t i = 0; i < TURNS; i++)
		__asm__ volatile("" : : "r"(__rdtsc()));
}

static void allocate(void)
{
	for (uint32_t i = 0; i < TURNS; i++) {
		void *block = malloc(32);
		__asm__ volatile("" : "+r"(block));
		free(block);
	}
}

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {{"cycle", add}, {"rdtsc", read_counter}, {"pair", allocate}};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		uint64_t least = UINT64_MAX;
		for (int trial = 0; trial < TRIALS; trial++) {
			uint64_t begin = now();
			parts[i].run();
			uint64_t took = now() - begin;
			least = took < least ? took : least;
		}
		printf("%s %.2f\n", parts[i].name, (double)least / TURNS);
	}
	return 0;
}
