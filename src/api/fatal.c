/* SPDX-License-Identifier: MIT */
/*
 * Failed assertions, and libiberty without memory. They end the command. In the library they are errors of a call, so
 * their functions are defined here, for the library's own code only: its version script hides them from others.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/memory.h"

/* <assert.h> names it only where there are assertions. */
void __assert_fail(const char *claim, const char *file, unsigned line, const char *function);

void __assert_fail(const char *claim, const char *file, unsigned line, const char *function)
{
	(void)function;
	api_give_up(file, line, claim);
}

void *xmalloc(size_t size);
void *xrealloc(void *old, size_t size);
char *xstrdup(const char *text);

void *xmalloc(size_t size)
{
	return memory_resize(NULL, size, 1);
}

void *xrealloc(void *old, size_t size)
{
	return memory_resize(old, size, 1);
}

char *xstrdup(const char *text)
{
	size_t size = strlen(text) + 1;
	return memcpy(memory_resize(NULL, size, 1), text, size);
}
