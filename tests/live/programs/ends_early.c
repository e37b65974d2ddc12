/* SPDX-License-Identifier: MIT */
/* Makes a known number of calls: in four threads, in a forked child, and after an exec. A block that it holds from
   before that is never given back. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, SIZES = 977, KEPT_BYTES = 4242 };

static int rounds;

static void *call(void *unused)
{
	for (int i = 0; i < rounds; i++)
		free(malloc((size_t)(i % SIZES) + 1));
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	rounds = atoi(argv[1]);
	void *kept = malloc(KEPT_BYTES);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, call, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pid_t child = fork();
	if (child == 0) {
		call(NULL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	if (argc > 2 && !strcmp(argv[2], "exec"))
		execl("/proc/self/exe", argv[0], argv[1], (char *)NULL);
	return kept == NULL;
}
