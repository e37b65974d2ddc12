/* SPDX-License-Identifier: MIT */
/*
 * A library to preload that counts a program's heap events and does nothing else: the number that time per
 * event is divided by, taken without any tool. The counts are added up in the file BENCH_COUNT, shared by all
 * processes, so that neither _exit() nor a kill loses them: allocations, reallocs, frees, one per successful
 * call of a new block, call that changed a block, and free of a block, each as 8 bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COUNT_ALLOC, COUNT_REALLOC, COUNT_FREE, COUNT_KINDS, COUNT_BYTES = 4096 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

/* Where calls are counted until the file is mapped. */
static uint64_t early[COUNT_KINDS];
static uint64_t *counts = early;

static void count(unsigned kind)
{
	__atomic_fetch_add(&counts[kind], 1, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void counts_open(void)
{
	const char *path = getenv("BENCH_COUNT");
	int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	uint64_t *shared = mmap(NULL, COUNT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (shared == MAP_FAILED)
		return;
	counts = shared;
	for (unsigned kind = 0; kind < COUNT_KINDS; kind++)
		__atomic_fetch_add(&shared[kind], early[kind], __ATOMIC_RELAXED);
}

static void *counted(void *block)
{
	if (block != NULL)
		count(COUNT_ALLOC);
	return block;
}

void *malloc(size_t size)
{
	return counted(__libc_malloc(size));
}

void *calloc(size_t number, size_t size)
{
	return counted(__libc_calloc(number, size));
}

void *memalign(size_t alignment, size_t size)
{
	return counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return counted(__libc_memalign(alignment, size));
}

void *valloc(size_t size)
{
	return counted(__libc_memalign((size_t)getpagesize(), size));
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
	if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0)
		return EINVAL;
	int saved = errno;
	void *block = counted(__libc_memalign(alignment, size));
	errno = saved;
	if (block == NULL)
		return ENOMEM;
	*result = block;
	return 0;
}

void *realloc(void *old, size_t size)
{
	void *block = __libc_realloc(old, size);
	if (old == NULL)
		return counted(block);
	if (block != NULL)
		count(COUNT_REALLOC);
	else if (size == 0)
		count(COUNT_FREE);
	return block;
}

void *reallocarray(void *old, size_t number, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(number, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(old, bytes);
}

void free(void *block)
{
	if (block == NULL)
		return;
	count(COUNT_FREE);
	__libc_free(block);
}
