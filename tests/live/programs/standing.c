/* SPDX-License-Identifier: MIT */
/*
 * As many threads, or forked children, as are asked for, all alive at once, each of which holds a block and stands
 * still until all do.
 *
 *     standing threads|children COUNT
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK_BYTES = 24, STACK_BYTES = 1 << 16 };

static pthread_barrier_t all;

static void *thread_run(void *unused)
{
	void *volatile block = malloc(BLOCK_BYTES);
	(void)unused;
	pthread_barrier_wait(&all);
	free(block);
	return NULL;
}

static int threads_run(unsigned count)
{
	pthread_t *threads = calloc(count, sizeof(*threads));
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_barrier_init(&all, NULL, count);
	for (unsigned i = 0; i < count; i++)
		if (!threads || pthread_create(&threads[i], &attributes, thread_run, NULL) != 0)
			return EXIT_FAILURE;
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return 0;
}

static void child_run(int ready, int go)
{
	void *volatile block = malloc(BLOCK_BYTES);
	char byte = 0;
	if (write(ready, &byte, 1) != 1 || read(go, &byte, 1) < 0)
		_exit(EXIT_FAILURE);
	free(block);
	_exit(0);
}

static int children_run(unsigned count)
{
	int ready[2], go[2], status, failed = 0;
	char byte;
	if (pipe(ready) != 0 || pipe(go) != 0)
		return EXIT_FAILURE;
	for (unsigned i = 0; i < count; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return EXIT_FAILURE;
		if (pid == 0) {
			close(go[1]);
			child_run(ready[1], go[0]);
		}
	}
	for (unsigned i = 0; i < count; i++)
		failed |= read(ready[0], &byte, 1) != 1;
	close(go[1]);
	while (wait(&status) > 0)
		failed |= status;
	return failed ? EXIT_FAILURE : 0;
}

int main(int count, char **arguments)
{
	if (count != 3)
		return EXIT_FAILURE;
	return (strcmp(arguments[1], "threads") ? children_run : threads_run)((unsigned)atoi(arguments[2]));
}
