/* SPDX-License-Identifier: MIT */
/*
 * The oracle for dynamic programs: LD_PRELOAD=oracle.so logs every call of the malloc family (calls.h) and passes it
 * on to whatever allocator comes next. It exports only what glibc offers, so that nobody finds a function more.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void *fail(size_t count, size_t size)
{
	(void)count;
	(void)size;
	return NULL;
}

/* Looking for a function calls calloc in glibc before 2.34, which does without; dlsym() is declared as one that does
   not come back here. */
static __thread volatile int is_searching __attribute__((tls_model("initial-exec")));

static void *next(void **function, const char *name)
{
	if (is_searching && !strcmp(name, "calloc"))
		return fail;
	if (*function)
		return *function;
	is_searching = 1;
	*function = dlsym(RTLD_NEXT, name);
	is_searching = 0;
	return *function;
}

#define OUR(name) oracle_##name
#define REAL(name) \
	({ \
		static void *function; \
		(__typeof__(&name))next(&function, #name); \
	})

#pragma GCC visibility push(hidden)
#include "allocator.h"
#pragma GCC visibility pop

/*
 * What it exports are labels without a type, which the loader takes and xheap does not: to it they are no functions of
 * an allocator, so that it sees only the allocator beneath, and the log knows of a call before it and longer.
 */
#define EXPORT(name) __asm__(".globl " #name "\n" #name ":\n\tjmp oracle_" #name "\n")

__asm__(".text\n");
EXPORT(malloc);
EXPORT(calloc);
EXPORT(realloc);
EXPORT(reallocarray);
EXPORT(free);
EXPORT(memalign);
EXPORT(aligned_alloc);
EXPORT(posix_memalign);
EXPORT(valloc);
EXPORT(pvalloc);
