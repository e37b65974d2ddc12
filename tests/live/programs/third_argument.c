/* SPDX-License-Identifier: MIT */
/* Functions of an allocator's own with three arguments: the hook must hand on all of them. Run with mimalloc
   preloaded. */
#include <dlfcn.h>
#include <stdint.h>

#include "expect.h"

int main(void)
{
	void *(*calloc_aligned)(size_t, size_t, size_t) = dlsym(RTLD_DEFAULT, "mi_calloc_aligned");
	void *(*realloc_aligned)(void *, size_t, size_t) = dlsym(RTLD_DEFAULT, "mi_realloc_aligned");
	void (*free_aligned)(void *, size_t, size_t) = dlsym(RTLD_DEFAULT, "mi_free_size_aligned");

	EXPECT(calloc_aligned && realloc_aligned && free_aligned);
	for (size_t alignment = 64; alignment <= 4096; alignment *= 2) {
		char *block = calloc_aligned(3, 100, alignment);
		EXPECT(block && (uintptr_t)block % alignment == 0 && !block[299]);
		block = realloc_aligned(block, 5000, alignment);
		EXPECT(block && (uintptr_t)block % alignment == 0);
		free_aligned(block, 5000, alignment);
	}
	puts("ok");
	return 0;
}
