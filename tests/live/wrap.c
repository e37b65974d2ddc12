/* SPDX-License-Identifier: MIT */
/*
 * The oracle for programs that cannot be preloaded: linked with -Wl,--wrap=malloc and so on, it logs every call
 * that the linker resolves, libc's own from a static libc included.
 */
#include <stddef.h>

#define OUR(name) __wrap_##name
#define REAL(name) __real_##name

#define DECLARE(result, name, ...) extern result __real_##name(__VA_ARGS__)
DECLARE(void *, malloc, size_t);
DECLARE(void *, calloc, size_t, size_t);
DECLARE(void *, realloc, void *, size_t);
DECLARE(void *, reallocarray, void *, size_t, size_t);
DECLARE(void, free, void *);
DECLARE(void *, memalign, size_t, size_t);
DECLARE(void *, aligned_alloc, size_t, size_t);
DECLARE(int, posix_memalign, void **, size_t, size_t);
DECLARE(void *, valloc, size_t);
/* Not every libc has it; nobody calls it where it is missing. */
extern void *__real_pvalloc(size_t) __attribute__((weak));

#include "allocator.h"
