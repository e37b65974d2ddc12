/* SPDX-License-Identifier: MIT */
/* A library with a pool in it. */
#include <xheap/heap.h>

static char bytes[4096];

__attribute__((visibility("default"))) void plugin_work(int count);

void plugin_work(int count)
{
	xheap_heap_create(bytes, "plugin");
	for (int i = 0; i < count; i++)
		xheap_heap_alloc(bytes, bytes + 16 * i, 10);
	xheap_heap_destroy(bytes);
}
