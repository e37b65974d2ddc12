/* SPDX-License-Identifier: MIT */
/*
 * crashes KIND COUNTERS BLOCKS: two threads ask for so many blocks each, of 100000, 100001, ... and of 200000, 200001,
 * ... bytes, give each back, and say in the file COUNTERS, in a number each, how many that were. Then the process ends
 *   in one of these ways. exit      by itself
 *   segv      a write to nowhere; thread: by the second thread; busy: while the second thread goes on with its blocks
 *   abort fpe term kill: as their names say
 *   twice     a block is given back twice, which glibc ends the process for
 *   overflow  the stack is used up
 *   again     its own handler of the fault makes a block more, and lets the fault end the process
 *   leave     its own handler of the fault ends the process by an exit with status 3
 *   jump      its own handler of the fault goes on elsewhere, with as many blocks again and an exit
 *   grow      it keeps as many blocks of 1 MiB and writes to each, counted in place of the first thread's others; then
 *   it waits for a signal waits     it says so on its standard output, waits for its standard input to end, makes as
 *   many blocks again, and exits child     the fault is a forked process's, which has made one block; the process
 *   itself exits when that is over
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2, FIRST = 100000, LEFT = 3, STACK_BYTES = 1 << 20, LARGE = 1 << 20 };

static volatile uint64_t *counters;
static uint64_t blocks;
static const char *kind;
static pthread_barrier_t barrier;
static sigjmp_buf place;
static int *volatile nowhere;
static volatile int is_for_ever;

static int is(const char *name)
{
	return !strcmp(kind, name);
}

static void make_block(uint64_t thread)
{
	char *block = malloc((thread + 1) * FIRST + counters[thread]);
	*block = 1;
	free(block);
	counters[thread]++;
}

static void make_blocks(uint64_t thread)
{
	for (uint64_t i = 0; i < blocks; i++)
		make_block(thread);
}

static void *second_thread(void *argument)
{
	make_blocks(1);
	pthread_barrier_wait(&barrier);
	if (is("thread"))
		*nowhere = 1;
	while (is_for_ever)
		make_block(1);
	pause();
	return argument;
}

static void again(int number)
{
	signal(number, SIG_DFL);
	make_block(0);
}

static void leave(int number)
{
	(void)number;
	_exit(LEFT);
}

static void jump(int number)
{
	(void)number;
	siglongjmp(place, 1);
}

static int overflow(volatile char *outer)
{
	volatile char more[4096];
	more[0] = outer ? outer[0] : 0;
	return overflow(more) + more[0];
}

static void fault(void)
{
	*nowhere = 1;
}

static void grow(void)
{
	counters[0] = 0;
	for (uint64_t i = 0; i < blocks; i++) {
		memset(malloc(LARGE + i), 1, LARGE);
		counters[0]++;
	}
	pause();
}

static int end(void)
{
	static const struct {
		const char *kind;
		int signal;
	} signals[] = {{"fpe", SIGFPE}, {"term", SIGTERM}, {"kill", SIGKILL}};
	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (is(signals[i].kind))
			raise(signals[i].signal);
	if (is("abort"))
		abort();
	if (is("twice")) {
		char *volatile block = malloc(FIRST + counters[0]);
		free(block);
		free(block);
	}
	if (is("overflow"))
		overflow(NULL);
	if (is("child")) {
		pid_t child = fork();
		if (!child) {
			free(malloc((THREADS + 1) * FIRST));
			fault();
		}
		waitpid(child, NULL, 0);
	}
	if (is("grow"))
		grow();
	if (is("waits")) {
		char byte;
		if (write(STDOUT_FILENO, "waits\n", 6) != 6 || read(STDIN_FILENO, &byte, 1) != 0)
			return 1;
		make_blocks(0);
	}
	if (is("thread"))
		pause();
	if (is("jump") && sigsetjmp(place, 1)) {
		make_blocks(0);
		return 0;
	}
	if (is("segv") || is("busy") || is("again") || is("leave") || is("jump"))
		fault();
	return 0;
}

int main(int count, char **arguments)
{
	pthread_t thread;
	const struct rlimit no_core = {0, 0}, small = {STACK_BYTES, STACK_BYTES};
	int file = count > 3 ? open(arguments[2], O_RDWR) : -1;
	if (file < 0)
		return 2;
	kind = arguments[1];
	counters = mmap(NULL, THREADS * sizeof(*counters), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	blocks = strtoull(arguments[3], NULL, 10);
	setrlimit(RLIMIT_CORE, &no_core);
	setrlimit(RLIMIT_STACK, &small);
	is_for_ever = is("busy");
	signal(SIGSEGV, is("again") ? again : is("leave") ? leave : is("jump") ? jump : SIG_DFL);
	pthread_barrier_init(&barrier, NULL, THREADS);
	pthread_create(&thread, NULL, second_thread, NULL);
	make_blocks(0);
	pthread_barrier_wait(&barrier);
	return end();
}
