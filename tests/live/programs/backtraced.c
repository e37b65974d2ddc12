/* SPDX-License-Identifier: MIT */
/* Waits, then allocates for a debugger that has stopped in the middle of that: main, outer, inner, malloc, and inside()
   or what libc calls. */
#include "expect.h"

#ifndef BACKTRACED_LIBC
static _Alignas(16) char room[1 << 20];
static size_t used;

__attribute__((noipa)) static size_t inside(size_t size)
{
	return (size + 15) & -16ul;
}

void *malloc(size_t size)
{
	size_t whole = inside(size);

	EXPECT(used + whole < sizeof(room));
	used += whole;
	return room + used - whole;
}

void free(void *block)
{
	(void)block;
}
#endif

__attribute__((noipa)) static char *inner(int size)
{
	char *block = malloc(size);
	EXPECT(block);
	block[0] = 1;
	return block;
}

__attribute__((noipa)) static char *outer(int size)
{
	char *block = inner(size + 1);
	block[1] = 2;
	return block;
}

int main(void)
{
	char byte;

	EXPECT(write(1, "ready\n", 6) == 6 && read(0, &byte, 1) == 1);
	char *block = outer(100000);
	EXPECT(block[0] == 1 && block[1] == 2);
	free(block);
	EXPECT(write(1, "ok\n", 3) == 3);
	return 0;
}
