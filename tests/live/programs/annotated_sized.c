/* SPDX-License-Identifier: MIT */
/* Heaps that say where their memory lies: of the usual size, of more than 32 bits, and unknown. Print each. */
#include <stdint.h>
#include <stdio.h>

#include "xheap/heap.h"

static char small[64], large[64], unknown[64];

static void begin(const char *heap, const char *name, uintptr_t base, uintptr_t reserve, uintptr_t commit)
{
	xheap_heap_create_sized(heap, name, (const void *)base, reserve, commit);
	printf("heap=0x%lx;base=0x%lx;reserve=%lu;commit=%lu\n", (unsigned long)(uintptr_t)heap, (unsigned long)base,
	       (unsigned long)reserve, (unsigned long)commit);
}

int main(void)
{
	begin(small, "small", (uintptr_t)small, sizeof(small), 16);
	begin(large, "large", 0x7f0000000000u, (uintptr_t)1 << 40, ((uintptr_t)1 << 33) + 5);
	begin(unknown, "unknown", 0, 0, 0);
	xheap_heap_alloc(large, large, 24);
	xheap_heap_destroy(large);
	xheap_heap_create_sized(NULL, "none", small, 1, 1);
	return 0;
}
