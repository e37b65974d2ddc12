/* SPDX-License-Identifier: MIT */
/* A shared object that allocates at PLUGIN_DEPTH frames; two builds differ in depth, so that the same addresses hold
   other functions. */
#include <stdlib.h>

void *plugin_run(int count);

static void *volatile kept;

__attribute__((noinline)) static void *plugin_nest(int depth, size_t size)
{
	char fill[PLUGIN_DEPTH * 48];

	__asm__ volatile("" : : "r"(fill) : "memory");
	void *block = depth ? plugin_nest(depth - 1, size) : malloc(size);
	__asm__ volatile("" : : "r"(fill) : "memory");
	return block;
}

void *plugin_run(int count)
{
	for (int i = 0; i < count; i++) {
		kept = plugin_nest(PLUGIN_DEPTH, 10 + (size_t)i);
		free(kept);
	}
	return plugin_nest(PLUGIN_DEPTH, 5000);
}
