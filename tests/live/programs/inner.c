/* SPDX-License-Identifier: MIT */
/*
 * inner COUNT [wait]: so many children, each the first process of a pid namespace of its own, so that all have the same
 * pid and thread ids to themselves. They allocate at the same time, with two threads each; with "wait" when a line has
 * come from its standard input.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *blocks(void *unused)
{
	for (int i = 0; i < 1000; i++) {
		void *volatile block = malloc(20 + (size_t)(i % 700));
		free(block);
	}
	return unused;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 4, good = 0;
	char line[8];

	if (argc > 2 && read(0, line, sizeof(line)) < 0)
		return 2;

	for (int i = 0; i < count; i++) {
		long child = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
		if (child < 0)
			return 77;
		if (child == 0) {
			pthread_t thread;
			pthread_create(&thread, NULL, blocks, NULL);
			blocks(NULL);
			pthread_join(thread, NULL);
			_exit(getpid() == 1 ? 0 : 1);
		}
	}
	for (int i = 0, status; i < count; i++)
		good += wait(&status) > 0 && status == 0;
	printf("%d good\n", good);
	return 0;
}
