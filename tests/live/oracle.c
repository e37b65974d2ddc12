/* SPDX-License-Identifier: MIT */
/*
 * The oracle for dynamic programs: LD_PRELOAD=oracle.so logs every call of the malloc family (calls.h) and passes it
 * on to whatever allocator comes next. It exports only what glibc offers, so that nobody finds a function more.
 */
#include <dlfcn.h>
#include <stddef.h>

static void *next(void **function, const char *name)
{
	if (!*function)
		*function = dlsym(RTLD_NEXT, name);
	return *function;
}

#define OUR(name) name
#define REAL(name)                                                                                             \
	({                                                                                                     \
		static void *function;                                                                         \
		(__typeof__(&name))next(&function, #name);                                                     \
	})

#include "allocator.h"
