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

/** A block with its first and last byte set, and the check of it. */
static inline unsigned char *block_mark(void *pointer, size_t size, unsigned char mark)
{
	unsigned char *block = (unsigned char *)pointer;

	EXPECT(block != NULL && size > 0);
	block[0] = block[size - 1] = mark;
	return block;
}

#endif
