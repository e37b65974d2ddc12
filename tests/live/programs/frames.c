/* SPDX-License-Identifier: MIT */
/* frames deep: 5,000 frames; frames jump: longjmp out of nested calls; frames wide: alloca, aligned and variable
   frames */
#include <setjmp.h>
#include <stdint.h>

#include "expect.h"

static void *volatile kept;

__attribute__((noinline)) static int descend(int depth)
{
	volatile int here = depth;

	if (depth % 100 == 0) {
		kept = malloc(64 + (size_t)depth);
		free(kept);
	}
	if (depth < 5000)
		descend(depth + 1);
	if (depth % 50 == 0) {
		kept = malloc(32);
		free(kept);
	}
	return here;
}

static void test_deep(void)
{
	for (int i = 0; i < 5; i++)
		descend(1);
}

static jmp_buf home;

__attribute__((noinline)) static int climb(int depth, int leave)
{
	volatile int here = depth;

	kept = malloc(10 + (size_t)depth);
	free(kept);
	if (depth == leave)
		longjmp(home, 1);
	return climb(depth + 1, leave) + here;
}

static void test_jump(void)
{
	for (volatile int i = 0; i < 500; i++) {
		if (!setjmp(home))
			climb(0, i % 60);
		kept = malloc(5);
		free(kept);
	}
}

__attribute__((noinline)) static void wide(int depth)
{
	char *area = __builtin_alloca((size_t)(depth * 37 % 500 + 1));
	char lengths[depth % 13 + 1];
	volatile char aligned[64] __attribute__((aligned(64)));

	EXPECT(((uintptr_t)aligned & 63) == 0);
	memset(lengths, 1, sizeof(lengths));
	area[0] = lengths[0];
	aligned[0] = area[0];
	kept = malloc(100);
	free(kept);
	if (depth)
		wide(depth - 1);
	aligned[1] = area[0];
}

static void test_wide(void)
{
	for (int i = 0; i < 60; i++)
		wide(i);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {{"deep", test_deep}, {"jump", test_jump}, {"wide", test_wide}};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(tests) / sizeof(tests[0]); i++)
		if (!strcmp(tests[i].name, argv[1])) {
			tests[i].run();
			puts("ok");
			return 0;
		}
	return 2;
}
