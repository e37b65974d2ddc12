/* SPDX-License-Identifier: MIT */
/** The functions that a compiler may call on its own. */
#include "arch/cpu.h"

__attribute__((used)) void *memcpy(void *restrict to, const void *restrict from, size_t size);
__attribute__((used)) void *memset(void *to, int value, size_t size);

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	cpu_copy(to, from, size);
	return to;
}

void *memset(void *to, int value, size_t size)
{
	cpu_fill(to, value, size);
	return to;
}
