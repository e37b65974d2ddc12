/* SPDX-License-Identifier: MIT */
/*
 * orphan COUNT STATUS [stay]: makes COUNT blocks, forks a child that makes 500 and exits with STATUS, or kills itself
 * with signal -STATUS, and ends without waiting for it; with "stay", at the end of its input. Events that are still to
 * be read when it ends keep the logger busy while the child comes and goes.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void work(int count)
{
	for (int i = 0; i < count; i++) {
		void *volatile block = malloc((size_t)i % 1000);
		free(block);
	}
}

int main(int argc, char **argv)
{
	char byte;
	if (argc < 3)
		return 2;
	work(atoi(argv[1]));
	pid_t child = fork();
	if (child < 0)
		return 2;
	if (child > 0)
		return argc > 3 && read(0, &byte, 1) != 0;
	work(500);
	int status = atoi(argv[2]);
	if (status < 0)
		kill(getpid(), -status);
	_exit(status);
}
