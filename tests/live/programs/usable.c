/* SPDX-License-Identifier: MIT */
/* Blocks of all kinds that glibc has, with what malloc says of each: a line of its address and its usable bytes. It
   keeps them until its input ends. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZES = 40 };

static void tell(const void *block)
{
	printf("%#zx %zu\n", (size_t)(uintptr_t)block, malloc_usable_size((void *)(uintptr_t)block));
}

int main(void)
{
	/* Each size is half as much again as the one before: the largest are mapped alone. */
	size_t size = 1;
	for (int i = 0; i < SIZES; i++, size = size * 3 / 2 + 1) {
		if (size > (size_t)16 << 20)
			break;
		tell(malloc(size));
		tell(calloc(3, size));
		tell(aligned_alloc((size_t)64 << i % 10, size));
		tell(realloc(malloc(size), size * 2));
	}
	puts("all");
	fflush(stdout);
	return getchar() != EOF;
}
