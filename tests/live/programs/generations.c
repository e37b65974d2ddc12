/* SPDX-License-Identifier: MIT */
/*
 * generations MILLISECONDS: two threads allocate, while the first one forks children that allocate, and executes itself
 * again and again. Every child must end as it should, whatever becomes of those who watch.
 */
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>

#include "expect.h"

enum { LEAF_STATUS = 4, FORK_STATUS = 3 };

static volatile int stop;

__attribute__((noinline)) static void pairs(int count)
{
	for (int i = 0; i < count; i++) {
		void *block = malloc(40 + (size_t)i % 100);
		EXPECT(block);
		free(block);
	}
}

static void *busy(void *unused)
{
	while (!stop) {
		pairs(50);
		usleep(1000);
	}
	return unused;
}

static void child_expect(pid_t pid, int expected)
{
	int status = -1;
	EXPECT(pid > 0);
	EXPECT(waitpid(pid, &status, 0) == pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != expected) {
		fprintf(stderr, "generations: wait status %#x of the child that should exit with %d\n",
			(unsigned)status, expected);
		_exit(1);
	}
}

static int64_t now_ms(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	EXPECT(argc == 2);
	if (!strcmp(argv[1], "leaf")) {
		pairs(50);
		return LEAF_STATUS;
	}
	int64_t end = now_ms() + atoi(argv[1]);
	for (int i = 0; i < 2; i++)
		EXPECT(!pthread_create(&threads[i], NULL, busy, NULL));
	while (now_ms() < end) {
		pid_t pid = fork();
		if (!pid) {
			pairs(30);
			_exit(FORK_STATUS);
		}
		child_expect(pid, FORK_STATUS);
		pid = vfork();
		if (!pid) {
			execl("/proc/self/exe", "generations", "leaf", (char *)NULL);
			_exit(1);
		}
		child_expect(pid, LEAF_STATUS);
	}
	stop = 1;
	for (int i = 0; i < 2; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	puts("ok");
	return 0;
}
