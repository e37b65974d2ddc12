/* SPDX-License-Identifier: MIT */
/** What libraries share that are preloaded before an allocator: they find its functions, and stand before them. */
#ifndef PRELOAD_H
#define PRELOAD_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* Looking for a function calls calloc in glibc before 2.34, which does without; dlsym() is declared as one that does
   not come back here. */
static __thread volatile int is_searching __attribute__((tls_model("initial-exec")));

static void *fail(size_t count, size_t size)
{
	(void)count;
	(void)size;
	return NULL;
}

/** The function of that name that comes after this library, kept in *function. */
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

/** As next(), with the type of the function. */
#define REAL(name) \
	({ \
		static void *function; \
		(__typeof__(&name))next(&function, #name); \
	})

#define EXPORT(prefix, name) __asm__(".globl " #name "\n" #name ":\n\tjmp " #prefix #name "\n")

/**
 * Export the functions of malloc's family, and nothing else, each as a jump to PREFIX_NAME. They are labels without a
 * type, which the loader takes and xheap does not: to it they are no functions of an allocator, so that it records only
 * the allocator beneath.
 */
#define EXPORT_ALLOCATOR(prefix) \
	__asm__(".text\n"); \
	EXPORT(prefix, malloc); \
	EXPORT(prefix, calloc); \
	EXPORT(prefix, realloc); \
	EXPORT(prefix, reallocarray); \
	EXPORT(prefix, free); \
	EXPORT(prefix, memalign); \
	EXPORT(prefix, aligned_alloc); \
	EXPORT(prefix, posix_memalign); \
	EXPORT(prefix, valloc); \
	EXPORT(prefix, pvalloc)

#endif
