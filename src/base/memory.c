/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void memory_exhausted(size_t size_bytes)
{
	fprintf(stderr, "xheap: out of memory: %zu bytes were needed\n", size_bytes);
	exit(2);
}

void *memory_resize(void *old, size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes))
		memory_exhausted(SIZE_MAX);
	void *memory = realloc(old, bytes ? bytes : 1);
	if (!memory)
		memory_exhausted(bytes);
	return memory;
}

void *memory_zeroed(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);
	if (!memory)
		memory_exhausted(count);
	return memory;
}

size_t memory_capacity(size_t capacity, size_t needed)
{
	if (capacity < 16)
		capacity = 16;
	while (capacity < needed)
		capacity *= 2;
	return capacity;
}
