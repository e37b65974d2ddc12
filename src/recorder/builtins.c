/* SPDX-License-Identifier: MIT */
/** The functions that a compiler may call on its own. */
#include <stddef.h>
#include <stdint.h>

__attribute__((used)) void *memcpy(void *restrict to, const void *restrict from, size_t size);
__attribute__((used)) void *memset(void *to, int value, size_t size);

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	void *result = to;
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
	return result;
}

void *memset(void *to, int value, size_t size)
{
	void *result = to;
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
	return result;
}
