/* SPDX-License-Identifier: MIT */
/* Ways to end: ends _exit|abort|kill|double|overflow|quick|segv|core|return, with the last calls just before. */
#include <signal.h>
#include <sys/resource.h>

#include "expect.h"

static void *volatile kept;

__attribute__((noinline)) static int recurse(int depth)
{
	volatile char fill[200];

	fill[0] = (char)depth;
	kept = malloc(16);
	return recurse(depth + 1) + fill[0];
}

static void end_overflow(void)
{
	struct rlimit limit = {512 * 1024, 512 * 1024};

	setrlimit(RLIMIT_STACK, &limit);
	recurse(0);
}

static void end_double(void)
{
	void *block = malloc(100);

	free(block);
	__asm__ volatile("" : "+r"(block));
	free(block);
}

static void end_segv(void)
{
	*(volatile int *)16 = 1;
}

static void end_exit(void)
{
	_exit(9);
}

static void end_quick(void)
{
	quick_exit(8);
}

static void end_kill(void)
{
	kill(getpid(), SIGKILL);
}

static const struct {
	const char *name;
	void (*end)(void);
} ends[] = {
	{"_exit", end_exit},        {"abort", abort},     {"kill", end_kill}, {"double", end_double},
	{"overflow", end_overflow}, {"quick", end_quick}, {"segv", end_segv}, {"core", end_segv},
};

int main(int argc, char **argv)
{
	struct rlimit none = {0, 0};

	if (argc < 2 || strcmp(argv[1], "core"))
		setrlimit(RLIMIT_CORE, &none);
	for (int i = 0; i < 1000; i++) {
		kept = malloc((size_t)i);
		if (i % 3)
			free(kept);
	}
	for (size_t i = 0; argc > 1 && i < sizeof(ends) / sizeof(ends[0]); i++)
		if (!strcmp(ends[i].name, argv[1]))
			ends[i].end();
	return 0;
}
