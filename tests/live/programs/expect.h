/* SPDX-License-Identifier: MIT */
/** What every program here needs: to say what is wrong with it, and calls that the compiler keeps. */
#ifndef EXPECT_H
#define EXPECT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** The program misbehaves, traced or not: say where, and end. */
#define EXPECT(condition) \
	do { \
		if (!(condition)) { \
			static const char text[] = "expected: " #condition "\n"; \
			ssize_t ignored = write(2, text, sizeof(text) - 1); \
			(void)ignored; \
			_exit(1); \
		} \
	} while (0)

/** A pseudo random number below limit; the same in every run. */
static inline unsigned random_below(unsigned *seed, unsigned limit)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % limit;
}

/** A test of a program that has several, by the word that chooses it. */
struct named_test {
	const char *name;
	int (*run)(void);
};

/** Run the test that the first argument names. Return the exit status; 2: there is no such test. */
static inline int named_test_run(const struct named_test *tests, size_t count, int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < count; i++)
		if (!strcmp(tests[i].name, argv[1])) {
			EXPECT(!tests[i].run());
			puts("ok");
			return 0;
		}
	return 2;
}

/** A block with its first and last byte set, and the check of it. */
static inline unsigned char *block_mark(void *pointer, size_t size, unsigned char mark)
{
	unsigned char *block = (unsigned char *)pointer;

	EXPECT(block != NULL && size > 0);
	block[0] = block[size - 1] = mark;
	return block;
}

#endif
