/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a logger: lets its allocations fail, from the one on that the first number in the file NO_MEMORY says
 * (1: the next; 0: none), which counts down; or that one alone, if the second number is not 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static uint64_t *left;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("NO_MEMORY");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *mapping = fd >= 0 ? mmap(NULL, 2 * sizeof(*left), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (fd >= 0)
		close(fd);
	left = mapping != MAP_FAILED ? mapping : NULL;
}

static bool is_over(void)
{
	uint64_t now = left ? __atomic_load_n(left, __ATOMIC_RELAXED) : 0;
	while ((now > 1 || (now && left[1])) &&
	       !__atomic_compare_exchange_n(left, &now, now - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	if (now == 1)
		errno = ENOMEM;
	return now == 1;
}

void *malloc(size_t size)
{
	return is_over() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return is_over() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return is_over() ? NULL : __libc_realloc(old, size);
}
