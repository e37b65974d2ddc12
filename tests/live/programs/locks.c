/* SPDX-License-Identifier: MIT */
/*
 * Threads that begin, each with its first heap calls, while the rest of the program does its worst to whoever holds a
 * lock meanwhile:
 *
 *     locks timer ROUNDS    a timer's signal interrupts them, and its handler allocates
 *     locks cancel ROUNDS   they are cancelled asynchronously
 *     locks vfork ROUNDS    children that share this memory begin as they do, and are killed
 *     locks fifo ROUNDS     a real-time thread preempts them on one processor; exit status 77 where that is not allowed
 *
 * The allocator is this program's own: it only ever counts up, so it may be called by a handler, and by whoever is
 * killed. The program prints its calls by kind.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 1 << 28, SMALL = 20, SMALL_ROOM = 1 << 20, THREADS = 8, CALLS = 20, DEEP = 300 };

static _Alignas(16) char room[ROOM], small_room[SMALL_ROOM];
static atomic_ulong used, small_used, allocs;

/* Blocks of up to SMALL bytes are only ours: they come round again. */
__attribute__((noipa)) void *malloc(size_t size)
{
	unsigned long bytes = (size + 31) & ~15ul, at = atomic_fetch_add(size <= SMALL ? &small_used : &used, bytes);
	atomic_fetch_add(&allocs, 1);
	if (size <= SMALL)
		return small_room + (at & (SMALL_ROOM - 1)) / 64 * 64;
	return at + bytes <= ROOM ? room + at : NULL;
}

__attribute__((noipa)) void free(void *block)
{
	(void)block;
}

__attribute__((noipa)) void *calloc(size_t count, size_t size)
{
	void *block = malloc(count * size);
	return block ? memset(block, 0, count * size) : NULL;
}

__attribute__((noipa)) void *realloc(void *block, size_t size)
{
	void *larger = malloc(size);
	if (block && larger)
		memcpy(larger, block, size);
	return larger;
}

/* A stack that no thread's first room for frames holds, so that more is taken. */
static __attribute__((noinline)) int deeply(int depth)
{
	volatile int keep = depth;
	if (depth == 0)
		free(malloc(10));
	else
		deeply(depth - 1);
	return keep;
}

static void *thread_run(void *unused)
{
	for (int i = 0; i < CALLS; i++)
		free(malloc(10));
	deeply(DEEP);
	return unused;
}

static void *thread_run_for_ever(void *unused)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;)
		thread_run(unused);
	return unused;
}

static void threads_once(void *(*run)(void *), int is_cancelled)
{
	pthread_t thread[THREADS];
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, run, NULL) != 0)
			abort();
	for (int i = 0; i < THREADS; i++) {
		if (is_cancelled)
			pthread_cancel(thread[i]);
		pthread_join(thread[i], NULL);
	}
}

static void on_timer(int signal)
{
	(void)signal;
	int before = errno;
	free(malloc(20));
	deeply(DEEP);
	errno = before;
}

static void timer_rounds(int rounds)
{
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
	const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < rounds; i++)
		threads_once(thread_run, 0);
	/* What is counted from here on is what is printed. */
	setitimer(ITIMER_REAL, &never, NULL);
}

static void cancel_rounds(int rounds)
{
	for (int i = 0; i < rounds; i++)
		threads_once(thread_run_for_ever, 1);
}

/* A child that shares memory as a vfork child does, but whose parent goes on: as one whose parent was let go of by a
   tracer. */
static int child_run(void *unused)
{
	for (;;)
		thread_run(unused);
	return 0;
}

static void vfork_rounds(int rounds)
{
	enum { STACK = 1 << 20, STEP_NS = 7919, LONGEST_NS = 1000000 };
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < rounds; i++) {
		const struct timespec pause = {0, (long)i * STEP_NS % LONGEST_NS};
		pid_t child = clone(child_run, stack + STACK, CLONE_VM | SIGCHLD, NULL);
		nanosleep(&pause, NULL);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		threads_once(thread_run, 0);
	}
}

static void *fifo_run(void *stop)
{
	const struct timespec pause = {0, 200000};
	while (!atomic_load((atomic_int *)stop)) {
		threads_once(thread_run, 0);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static int fifo_rounds(int rounds)
{
	static atomic_int stop;
	const struct sched_param first = {.sched_priority = 10};
	cpu_set_t one;
	pthread_attr_t attributes;
	pthread_t thread;
	sched_getaffinity(0, sizeof(one), &one);
	for (int i = 0, is_found = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &one) && is_found++)
			CPU_CLR(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &first);
	if (pthread_create(&thread, &attributes, fifo_run, &stop) != 0)
		return 77;
	for (int i = 0; i < rounds; i++)
		threads_once(thread_run, 0);
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	return 0;
}

int main(int count, char **words)
{
	int rounds = count == 3 ? atoi(words[2]) : 0, status = 0;
	if (rounds && !strcmp(words[1], "timer"))
		timer_rounds(rounds);
	else if (rounds && !strcmp(words[1], "cancel"))
		cancel_rounds(rounds);
	else if (rounds && !strcmp(words[1], "vfork"))
		vfork_rounds(rounds);
	else if (rounds && !strcmp(words[1], "fifo"))
		status = fifo_rounds(rounds);
	else
		return 2;
	char text[64];
	int size = snprintf(text, sizeof(text), "%lu\n", atomic_load(&allocs));
	return write(1, text, (size_t)size) == size ? status : 1;
}
