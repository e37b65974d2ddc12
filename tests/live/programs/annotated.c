/* SPDX-License-Identifier: MIT */
/*
 * Calls of xheap/heap.h where they could be missed. Compiled by tests/live/api/annotations.py, which knows what each way
 * must give.
 *
 *     threads N   N threads, each with a pool in a block of its own, and one that they share
 *     fork        a child goes on with its parent's pool
 *     renamed     one address is two heaps in turn, again and again
 *     many        more heaps than there is room for
 *     plugin P    in a library that is loaded later
 *     wait        once before anybody looks, and once after a line of input
 *     jump        a malloc that is left by longjmp, then calls as ever
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>

#include <xheap/heap.h>

#include "expect.h"

enum { ROUNDS = 1000, BLOCK_BYTES = 24 };

static char shared[1 << 20] __attribute__((aligned(16)));
static size_t shared_used;

static void *shared_take(void)
{
	void *block = shared + __atomic_fetch_add(&shared_used, 32, __ATOMIC_RELAXED);

	xheap_heap_alloc(&shared, block, BLOCK_BYTES);
	return block;
}

/* Each thread: 1000 blocks at one place of its own, one after the other, and 100 of the shared pool. */
static void *thread_run(void *argument)
{
	char *own = (char *)malloc(4096);

	(void)argument;
	EXPECT(own);
	xheap_heap_create(own, "own");
	for (int i = 0; i < ROUNDS; i++) {
		xheap_heap_alloc(own, own + 16, (size_t)i);
		xheap_heap_free(own, own + 16);
	}
	for (int i = 0; i < 100; i++)
		EXPECT(shared_take());
	xheap_heap_destroy(own);
	free(own);
	return NULL;
}

static void run_threads(int count)
{
	pthread_t threads[16];

	EXPECT(count > 0 && count <= 16);
	xheap_heap_create(&shared, "shared");
	for (int i = 0; i < count; i++)
		EXPECT(pthread_create(&threads[i], NULL, thread_run, NULL) == 0);
	for (int i = 0; i < count; i++)
		EXPECT(pthread_join(threads[i], NULL) == 0);
}

static void run_fork(void)
{
	void *blocks[10];
	int status;

	xheap_heap_create(&shared, "family");
	for (int i = 0; i < 10; i++)
		blocks[i] = shared_take();
	pid_t child = fork();
	EXPECT(child >= 0);
	if (!child) {
		for (int i = 0; i < 5; i++)
			xheap_heap_free(&shared, blocks[i]);
		for (int i = 0; i < 3; i++)
			shared_take();
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	xheap_heap_free(&shared, blocks[0]);
}

static void run_renamed(void)
{
	for (int i = 0; i < 5000; i++) {
		xheap_heap_create(&shared, i % 2 ? "odd" : "even");
		xheap_heap_alloc(&shared, shared, 1);
		xheap_heap_alloc(&shared, shared + 16, 2);
		xheap_heap_destroy(&shared);
	}
	/* Neither a text nor an end. */
	xheap_heap_create(&shared_used, (const char *)8);
	xheap_heap_alloc(&shared_used, shared, 3);
}

/* Slowly at first, so that room is made for those that there can be. */
static void run_many(void)
{
	for (size_t i = 0; i < 40000; i++) {
		xheap_heap_create(&shared[16 * i], "one of many");
		xheap_heap_alloc(&shared[16 * i], &shared[16 * i], 16);
		if (i % 1000 == 0)
			usleep(20000);
	}
}

static void run_plugin(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*work)(int) = library ? (void (*)(int))dlsym(library, "plugin_work") : NULL;

	EXPECT(work);
	work(7);
	EXPECT(dlclose(library) == 0);
	library = dlopen(path, RTLD_NOW);
	work = library ? (void (*)(int))dlsym(library, "plugin_work") : NULL;
	EXPECT(work);
	work(5);
}

static void run_wait(void)
{
	char line[16];

	xheap_heap_create(&shared, "before");
	shared_take();
	EXPECT(write(1, "ready\n", 6) == 6);
	EXPECT(fgets(line, sizeof(line), stdin));
	for (int i = 0; i < 20; i++)
		shared_take();
	xheap_heap_destroy(&shared);
	xheap_heap_create(&shared, "after");
	shared_take();
	EXPECT(write(1, "done\n", 5) == 5);
	EXPECT(fgets(line, sizeof(line), stdin));
}

static sigjmp_buf place;
static volatile sig_atomic_t jump_count;

static void on_alarm(int number)
{
	(void)number;
	xheap_heap_alloc(&shared, shared + 64 + 16 * jump_count, 1);
	jump_count++;
	if (jump_count % 2)
		siglongjmp(place, 1);
}

/* The signal comes anywhere, also in a heap call; each second time it does not return there. */
static void run_jump(void)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct timespec tick = {0, 200000};
	timer_t timer;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec times = {tick, tick};

	EXPECT(sigaction(SIGUSR1, &action, NULL) == 0);
	xheap_heap_create(&shared, "signals");
	EXPECT(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &times, NULL) == 0);
	sigsetjmp(place, 1);
	while (jump_count < 200)
		xheap_heap_lock(&shared), xheap_heap_unlock(&shared);
	EXPECT(timer_delete(timer) == 0);
	xheap_heap_alloc(&shared, shared, 77);
	printf("%d\n", (int)jump_count);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";

	if (!strcmp(way, "threads") && argc > 2)
		run_threads(atoi(argv[2]));
	else if (!strcmp(way, "fork"))
		run_fork();
	else if (!strcmp(way, "renamed"))
		run_renamed();
	else if (!strcmp(way, "many"))
		run_many();
	else if (!strcmp(way, "plugin") && argc > 2)
		run_plugin(argv[2]);
	else if (!strcmp(way, "wait"))
		run_wait();
	else if (!strcmp(way, "jump"))
		run_jump();
	else
		return 2;
	return 0;
}
