/* SPDX-License-Identifier: MIT */
/*
 * Maps known amounts of memory of each kind, and touches known parts of it: map_each_kind(). It prints the pid and the
 * stacks of its threads. For each line of its input it makes a heap call and touches 2 MiB more.
 *
 * usage: resident FILE [MAPPINGS]     FILE is made; MAPPINGS more mappings of a page each
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
enum { PAGE = 4096, THREADS = 3, BLOCKS = 160, BLOCK_BYTES = 64 * 1024 };

static pthread_barrier_t begun;
static volatile char sum;

static void touch(volatile char *at, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i += PAGE)
		at[i] = 1;
}

static void look(const volatile char *at, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i += PAGE)
		sum += at[i];
}

static char *map(uint64_t bytes, int protection, int flags, int fd)
{
	char *at = mmap(NULL, bytes, protection, flags, fd, 0);
	if (at == MAP_FAILED)
		abort();
	if (fd < 0)
		madvise(at, bytes, MADV_NOHUGEPAGE);
	return at;
}

/* One thread calls the heap, so that it is known by its storage; the others only by their stack pointers. */
static void *thread_run(void *argument)
{
	volatile char stack[3 * MIB / 4];
	touch(stack, sizeof(stack));
	if ((uintptr_t)argument == 0)
		free(malloc(100));
	pthread_barrier_wait(&begun);
	pause();
	return (void *)(uintptr_t)stack[0];
}

static char *growing;

static void map_each_kind(const char *path)
{
	const int both = PROT_READ | PROT_WRITE;
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), memory = memfd_create("resident", 0);
	if (file < 0 || memory < 0 || ftruncate(file, 8 * MIB) || ftruncate(memory, 6 * MIB))
		abort();
	touch(map(8 * MIB, both, MAP_SHARED, file), 3 * MIB);
	touch(map(6 * MIB, both, MAP_SHARED, memory), 5 * MIB);
	growing = map(20 * MIB, both, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	touch(growing, 12 * MIB);
	look(map(7 * MIB, both, MAP_PRIVATE | MAP_ANONYMOUS, -1), 7 * MIB); /* no memory of its own */
	touch(map(4 * MIB, both | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1), 2 * MIB);
	char *named = map(2 * MIB, both, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, named, 2 * MIB, "resident test");
	touch(named, MIB);
	touch(sbrk(2 * (intptr_t)MIB), MIB);
}

/* Every second page may only be read, so that each is a mapping of its own. */
static void map_many(uint64_t count)
{
	char *at = map(count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	touch(at, count * PAGE);
	for (uint64_t i = 0; i < count; i += 2)
		if (mprotect(at + i * PAGE, PAGE, PROT_READ))
			abort();
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	char *block[BLOCKS], line[16];
	if (argc < 2)
		return 2;
	pthread_barrier_init(&begun, NULL, THREADS + 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, thread_run, (void *)i);
	pthread_barrier_wait(&begun);
	map_each_kind(argv[1]);
	if (argc > 2)
		map_many(strtoull(argv[2], NULL, 10));
	for (int i = 0; i < BLOCKS; i++)
		touch(block[i] = malloc(BLOCK_BYTES), BLOCK_BYTES);
	for (int i = 0; i < BLOCKS; i += 2)
		free(block[i]);
	printf("%d\n", (int)getpid());
	for (int i = 0; i < THREADS; i++) {
		pthread_attr_t attributes;
		void *low;
		size_t size;
		pthread_getattr_np(thread[i], &attributes);
		pthread_attr_getstack(&attributes, &low, &size);
		printf("%lx %lx\n", (unsigned long)(uintptr_t)low, (unsigned long)(uintptr_t)low + size);
		pthread_attr_destroy(&attributes);
	}
	fflush(stdout);
	for (int i = 0; fgets(line, sizeof(line), stdin) && i < 4; i++) {
		free(malloc(1000));
		touch(growing + (12 + 2 * i) * MIB, 2 * MIB);
	}
	return 0;
}
