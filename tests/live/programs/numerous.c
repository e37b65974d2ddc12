/* SPDX-License-Identifier: MIT */
/*
 * numerous WHAT COUNT [ARGUMENT...]: a great number of forks, threads, loads or execs, one after the other, each with
 * calls of its own. A sleeping thread and a sleeping child go on only when all is over.
 *
 * Before and after that, and after it in the two sleepers, a block of a size of its own is allocated some frames deep.
 * The program prints the size and the stack as another unwinder sees it, from the caller of the function that allocates:
 * IMAGE+OFFSET of each frame, with a tab before it.
 *
 *     forks N CALLS SITES      children that call so many functions of the shared object SITES (sites.c), and use arenas
 *     threads N                threads that allocate and free
 *     loads N CALLS SITES...   loads of the shared objects in turn, with so many calls each
 *     execs N                  children that execute this program again, which then allocates once
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { FIRST_SIZE = 100000, FRAMES_MAX = 64 };

static sem_t *over;

__attribute__((noinline)) static void mark(size_t size)
{
	void *frame[FRAMES_MAX];
	void *volatile block = malloc(size);
	int count = backtrace(frame, FRAMES_MAX);
	char line[65536];
	int length = snprintf(line, sizeof(line), "%zu", size);

	for (int i = 1; i < count; i++) {
		Dl_info info;
		EXPECT(dladdr(frame[i], &info));
		length += snprintf(line + length, sizeof(line) - (size_t)length, "\t%s+%#lx", info.dli_fname,
				   (unsigned long)frame[i] - (unsigned long)info.dli_fbase);
	}
	line[length++] = '\n';
	EXPECT(write(STDOUT_FILENO, line, (size_t)length) == length);
	free(block);
}

__attribute__((noinline)) static void nest(int depth, size_t size)
{
	if (depth)
		nest(depth - 1, size);
	else
		mark(size);
	__asm__ volatile("");
}

/* The second block comes after a wait amid the stack of the first. */
__attribute__((noinline)) static void nest_asleep(int depth, size_t size)
{
	if (depth) {
		nest_asleep(depth - 1, size);
	} else {
		mark(size);
		while (sem_wait(over) != 0)
			;
		mark(size + 1);
	}
	__asm__ volatile("");
}

static void *sleeping_thread(void *cookie)
{
	(void)cookie;
	nest_asleep(9, FIRST_SIZE + 10);
	return NULL;
}

typedef void run_sites(int first, int count);

static run_sites *load_sites(const char *path, void **handle)
{
	*handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!*handle)
		fprintf(stderr, "%s\n", dlerror());
	EXPECT(*handle);
	run_sites *run = (run_sites *)dlsym(*handle, "sites_run");
	EXPECT(run);
	return run;
}

static void wait_for(pid_t child)
{
	int status;
	EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void *together(void *cookie)
{
	free(malloc(40));
	pthread_barrier_wait(cookie);
	return NULL;
}

/* One of three threads at once has an arena that the parent made, two make their own. */
static void use_arenas(void)
{
	pthread_barrier_t barrier;
	pthread_t id[3];
	EXPECT(!pthread_barrier_init(&barrier, NULL, 3));
	for (int i = 0; i < 3; i++)
		EXPECT(!pthread_create(&id[i], NULL, together, &barrier));
	for (int i = 0; i < 3; i++)
		EXPECT(!pthread_join(id[i], NULL));
}

static void do_forks(int count, char **sites)
{
	void *handle;
	run_sites *run = load_sites(sites[1], &handle);
	for (int i = 0; i < count; i++) {
		pid_t child = fork();
		if (!child) {
			run(i * 7, atoi(sites[0]));
			use_arenas();
			_exit(0);
		}
		wait_for(child);
	}
}

static void *thread(void *cookie)
{
	free(malloc((size_t)(long)cookie));
	return NULL;
}

static void do_threads(int count, char **none)
{
	(void)none;
	for (long i = 0; i < count; i++) {
		pthread_t id;
		EXPECT(!pthread_create(&id, NULL, thread, (void *)(i % 100 + 1)));
		EXPECT(!pthread_join(id, NULL));
	}
}

static void do_loads(int count, char **sites)
{
	int each = 1;
	while (sites[each])
		each++;
	for (int i = 0; i < count; i++) {
		void *handle;
		load_sites(sites[1 + i % (each - 1)], &handle)(i * 7, atoi(sites[0]));
		EXPECT(!dlclose(handle));
	}
}

static void do_execs(int count, char **none)
{
	char *const words[] = {"numerous", "once", NULL};
	(void)none;
	for (int i = 0; i < count; i++) {
		pid_t child;
		EXPECT(!posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environ));
		wait_for(child);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(int count, char **arguments);
	} ways[] = {{"forks", do_forks}, {"threads", do_threads}, {"loads", do_loads}, {"execs", do_execs}};

	if (argc == 2) {
		free(malloc(33));
		return 0;
	}
	/* It loads its library with its first call. */
	void *frame[1];
	backtrace(frame, 1);
	over = mmap(NULL, sizeof(*over), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	EXPECT(over != MAP_FAILED && !sem_init(over, 1, 0));
	nest(7, FIRST_SIZE);
	pthread_t sleeper;
	EXPECT(!pthread_create(&sleeper, NULL, sleeping_thread, NULL));
	pid_t child = fork();
	if (!child) {
		nest_asleep(8, FIRST_SIZE + 20);
		_exit(0);
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(argv[1], ways[i].name))
			ways[i].run(atoi(argv[2]), argv + 3);
	nest(7, FIRST_SIZE + 1);
	EXPECT(!sem_post(over) && !sem_post(over));
	EXPECT(!pthread_join(sleeper, NULL));
	wait_for(child);
	puts("end");
	return 0;
}
