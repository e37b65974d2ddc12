/* SPDX-License-Identifier: MIT */
/*
 * threads short     10,000 threads of ten pairs each, eight at a time
 * threads together  100 threads that live at once
 * threads stacks    threads on stacks of ours, unmapped when they have ended
 * threads leader    the first thread ends long before the others
 * threads exec      a thread execs while others allocate
 */
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

#include "expect.h"

static pthread_barrier_t barrier;

__attribute__((noinline)) static void pairs(int count)
{
	for (int i = 0; i < count; i++) {
		void *block = malloc(24 + (size_t)i);
		EXPECT(block);
		free(block);
	}
}

static void *run_short(void *unused)
{
	pairs(10);
	return unused;
}

static int test_short(void)
{
	for (int batch = 0; batch < 1250; batch++) {
		pthread_t threads[8];
		for (int i = 0; i < 8; i++)
			EXPECT(!pthread_create(&threads[i], NULL, run_short, NULL));
		for (int i = 0; i < 8; i++)
			EXPECT(!pthread_join(threads[i], NULL));
	}
	return 0;
}

static void *run_together(void *unused)
{
	pairs(50);
	pthread_barrier_wait(&barrier);
	pairs(50);
	return unused;
}

static int test_together(void)
{
	pthread_t threads[100];

	EXPECT(!pthread_barrier_init(&barrier, NULL, 100));
	for (int i = 0; i < 100; i++)
		EXPECT(!pthread_create(&threads[i], NULL, run_together, NULL));
	for (int i = 0; i < 100; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	return 0;
}

static int test_stacks(void)
{
	enum { BYTES = 256 * 1024 };

	for (int i = 0; i < 200; i++) {
		pthread_t thread;
		pthread_attr_t attributes;
		void *stack = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		EXPECT(stack != MAP_FAILED);
		EXPECT(!pthread_attr_init(&attributes) && !pthread_attr_setstack(&attributes, stack, BYTES));
		EXPECT(!pthread_create(&thread, &attributes, run_short, NULL));
		EXPECT(!pthread_join(thread, NULL));
		EXPECT(!munmap(stack, BYTES));
		pairs(3);
	}
	return 0;
}

static void *run_late(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++) {
		pairs(20);
		usleep(5000);
	}
	puts("ok");
	exit(0);
}

static int test_leader(void)
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, run_late, NULL));
	pairs(10);
	pthread_exit(NULL);
}

static volatile int started;

static void *run_busy(void *unused)
{
	started = 1;
	for (;;)
		pairs(100);
	return unused;
}

static void *run_exec(void *unused)
{
	(void)unused;
	while (!started)
		usleep(100);
	pairs(5);
	execl("/proc/self/exe", "threads", "together", (char *)NULL);
	_exit(1);
}

static int test_exec(void)
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, run_busy, NULL));
	EXPECT(!pthread_create(&thread, NULL, run_exec, NULL));
	for (;;)
		pairs(100);
}

static const struct named_test tests[] = {
	{"short", test_short},   {"together", test_together}, {"stacks", test_stacks},
	{"leader", test_leader}, {"exec", test_exec},
};

int main(int argc, char **argv)
{
	return named_test_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
