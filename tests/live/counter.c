/* SPDX-License-Identifier: MIT */
/*
 * LD_PRELOAD=counter.so COUNTS=FILE counts the calls of the malloc family in FILE, one slot for each executed or forked
 * process (tests/tested-with reads it). It knows nothing of xheap, and passes each call on to the allocator that comes
 * next.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

enum { SLOTS = 16384, NAME_BYTES = 64 };

/* 128 bytes: pid, then counts as xheap has them (docs/semantics.md), then the bytes asked for. */
struct slot {
	_Atomic int64_t pid, allocs, reallocs, frees, failed, bytes;
	char name[NAME_BYTES], unused[16];
};
_Static_assert(sizeof(struct slot) == 128, "tests/tested-with reads this");

/* For calls before the file is there, and for programs that may not open the file. */
static struct slot early, *slots, *own = &early;

static void own_claim(void)
{
	int64_t pid = syscall(SYS_getpid);

	for (int i = 0; slots && i < SLOTS; i++) {
		int64_t none = 0;
		if (!__atomic_compare_exchange_n((int64_t *)&slots[i].pid, &none, pid, 0, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED))
			continue;
		int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			ssize_t count = read(fd, slots[i].name, NAME_BYTES - 1);
			if (count > 0 && slots[i].name[count - 1] == '\n')
				slots[i].name[count - 1] = '\0';
			close(fd);
		}
		own = &slots[i];
		return;
	}
}

__attribute__((constructor)) static void counter_begin(void)
{
	const char *path = getenv("COUNTS");
	int error = errno, fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd >= 0) {
		void *all = mmap(NULL, SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		slots = all == MAP_FAILED ? NULL : all;
		close(fd);
	}
	own_claim();
	if (own != &early) {
		own->allocs += early.allocs;
		own->reallocs += early.reallocs;
		own->frees += early.frees;
		own->failed += early.failed;
		own->bytes += early.bytes;
	}
	pthread_atfork(NULL, NULL, own_claim);
	errno = error;
}

/* The calls that an allocator's function makes itself, as reallocarray calls realloc, are none of the program's. */
static __thread int depth __attribute__((tls_model("initial-exec")));

static void *count_new(void *block, size_t size)
{
	if (depth)
		return block;
	if (block) {
		own->allocs++;
		own->bytes += (int64_t)size;
	} else
		own->failed++;
	return block;
}

static void *count_resized(void *old, void *block, size_t size)
{
	if (!old || depth)
		return count_new(block, size);
	if (block) {
		own->reallocs++;
		own->bytes += (int64_t)size;
	} else if (size == 0)
		own->frees++;
	else
		own->failed++;
	return block;
}

/* The search is no part of the call: it may give back the text of an error that the program made before. */
#define COUNTED(name, ...) \
	({ \
		__typeof__(&name) real = REAL(name); \
		depth++; \
		__typeof__(real(__VA_ARGS__)) answer = real(__VA_ARGS__); \
		depth--; \
		answer; \
	})

__attribute__((used)) static void *counter_malloc(size_t size)
{
	return count_new(COUNTED(malloc, size), size);
}

__attribute__((used)) static void *counter_calloc(size_t count, size_t size)
{
	return count_new(COUNTED(calloc, count, size), count * size);
}

__attribute__((used)) static void *counter_realloc(void *old, size_t size)
{
	return count_resized(old, COUNTED(realloc, old, size), size);
}

__attribute__((used)) static void *counter_reallocarray(void *old, size_t count, size_t size)
{
	return count_resized(old, COUNTED(reallocarray, old, count, size), count * size);
}

__attribute__((used)) static void counter_free(void *block)
{
	void (*real)(void *) = REAL(free);

	if (block && !depth)
		own->frees++;
	depth++;
	real(block);
	depth--;
}

__attribute__((used)) static void *counter_memalign(size_t alignment, size_t size)
{
	return count_new(COUNTED(memalign, alignment, size), size);
}

__attribute__((used)) static void *counter_aligned_alloc(size_t alignment, size_t size)
{
	return count_new(COUNTED(aligned_alloc, alignment, size), size);
}

__attribute__((used)) static int counter_posix_memalign(void **place, size_t alignment, size_t size)
{
	int error = COUNTED(posix_memalign, place, alignment, size);

	count_new(error ? NULL : *place, size);
	return error;
}

__attribute__((used)) static void *counter_valloc(size_t size)
{
	return count_new(COUNTED(valloc, size), size);
}

__attribute__((used)) static void *counter_pvalloc(size_t size)
{
	return count_new(COUNTED(pvalloc, size), size);
}

EXPORT_ALLOCATOR(counter_);
